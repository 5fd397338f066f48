"""What a name says: which quantities of differential privacy a parameter, attribute or variable carries."""

from __future__ import annotations

import re
from functools import cache

# The first pattern that matches the whole name decides; names are compared in lower case, without leading underscores.
ROLES: dict[str, str] = {
    "seed": r"(\w+_)?seeds?|random_state|rng_seed|prng_?key",
    "dimension": r"d|dim|dims|ndim|dimension|dimensions|n_features|num_features|n_dims|embedding_dim|"
    r"hidden_(size|dim)|k",
    "count": r"n|num|n_\w+|num_\w+|number_of_\w+|\w*batch_size|sample_size|population|\w+_count|size|length|n",
    "multiplier": r"noise_mult(iplier)?|\w*noise_multiplier|z|noise_level",
    "variance": r"(\w+_)?(var|variance)(_\w+)?|sigma2|sigma_?sq(uared)?|std2|std_?sq(uared)?|sigma_2",
    "epsilon": r"(\w+_)?(eps|epsilon|epsilons|ε)(\d|_?\w{0,9})?|(\w+_)?(privacy_)?budget|"
    r"privacy_param(eter)?|privacy_level",
    "delta": r"(target_|privacy_|dp_)?(delta|δ)(_?dp|_target|\d)?",
    "sensitivity": r"(\w+_)?(sens|sensitivity|sensitivities)(_\w+)?|(l[12]_)?delta_f|delta_q|gs|Δ\w*|df_sens",
    "clip": r"(\w+_)?clip(ping)?(_?(norm|bound|value|threshold|constant|c|range|l[12]|radius))?|"
    r"max_(grad_|l2_|l1_|update_)?norm|"
    r"norm_(bound|clip|limit)|(l[12]_)?(norm_)?clip|l[12]_(norm_)?(bound|clip)|"
    r"(\w+_)?clipping_norm|max_norm|grad_norm_bound|c|"
    r"radius|norm_max|max_(abs|magnitude)",
    "bound": r"lower(_\w+)?|upper(_\w+)?|low|high|lo|hi|(\w+_)?(lower|upper)(_bound)?|bounds?(_\w+)?|"
    r"min_(val|value|bound)|"
    r"max_(val|value|bound)|a_min|a_max|value_range|range_\w+|domain_(min|max)|(\w+_)?bounds?|max_contributions?\w*|"
    r"minimum|maximum|vmin|vmax|data_range|span|width|diameter|max_(rating|salary|age|income|"
    r"amount|count)|\w+_(min|max)|cap",
    "sigma": r"sigmas?|std|stddev|std_?dev|sd|stdev|stdv|noise_(std|sigma|stddev|scale|stdev)|"
    r"(\w+_)?(sigma|std|stddev|stdv)",
    "scale": r"scale|b|lam|lambda_?|beta|lap_?scale|(\w+_)?scale",
    "order": r"alpha|alphas|order|orders|renyi_order|rdp_order",
}
DATA = re.compile(
    r"x\d?|y\d?|xs|ys|(\w+_)?data(_?set|_?frame|points?)?s?|df|values?|vals|texts?|"
    r"(\w+_)?records?|rows?|series|arr(ay)?s?|"
    r"(\w+_)?vec(tor)?s?|(\w+_)?emb(eddings?|s)?|(\w+_)?grad(ient)?s?|(\w+_)?tensors?|inputs?|"
    r"(\w+_)?input|true_\w+|raw_?\w*|"
    r"columns?|col|(\w+_)?hist(ogram)?s?|(\w+_)?counts?|(\w+_)?updates?|(model_)?weights|params|"
    r"parameters|labels?|(\w+_)?(words?|tokens?|texts?|sentences?)|"
    r"tokens?|sentences?|documents?|docs|answers?|results?|scores?|votes?|samples?|users?|"
    r"points?|messages?|query_result|"
    r"(query_)?answer|features?|items?|v|u|h|hidden(_states?)?|representations?|logits|probs|"
    r"probabilities|database|db|table|"
    r"ratings?|incomes?|ages?|salar(y|ies)|responses?|bits?|secret|private_\w+|examples?|"
    r"stat(istic)?s?|signal|trajector(y|ies)|"
    r"measurements?|readings?|matrix|mat|batch|queries|query|numbers?|amounts?|purchases|"
    r"patients|graph|adj(acency)?|image|images|"
    r"index|state_dict|deltas?|activations?|outputs?|frequencies|totals?|mean|total|count|"
    r"element|private|user_\w+|visits|lst|"
    r"list_\w+|corpus|utility|utilities|client_\w+|bag|sequence|body|key_counts|names|"
    r"contributions|rewards?|votes_\w+"
)
CONFIG = re.compile(
    r"self|cls|config|cfg|args|kwargs|options?|opts?|mode|method|axis|device|dtype|verbose|"
    r"logger|"
    r"name|path|\w+_path|accountant|rng|generator|gen|key|random|prng|mechanism|kind|type|\w+_type|model|"
    r"optimizer|module|fn|func|function|shape|size"
)
GENERATOR = re.compile(
    r"_?(\w+_)?(rng|random|generator|prng|rs|random_?state|gen|rand|rnd|sysrand\w*|secure_?random|np_random)"
)
PRIVACY = re.compile(
    r"differential(ly)?[\s_-]*priva|\bpriva(cy|te|ti[sz])|\bdp[_-]|[_-]dp\b|\bldp\b|\bdp\b|"
    r"epsilon|\beps\b|sensitivity|laplace|"
    r"noise_multiplier|\bDP-?SGD|zcdp|renyi|rényi",
    re.IGNORECASE,
)
CLAIM = re.compile(
    r"differential(ly)?[\s-]+priva\w*|\(?\s*(ε|epsilon|eps)\s*(,\s*(δ|delta)\s*\))?\s*-?\s*(DP|LDP|differential)|"
    r"\b(local|metric)\s+(differential\s+privacy|DP)|\bLDP\b|\bzCDP\b|privati[sz]e|"
    r"\bDP[- ](noise|mechanism|SGD|release)|"
    r"\bprivacy (budget|guarantee|parameter|loss)|\b(is|are|satisf\w+|give\w*|under|with|by) \S{0,12}DP\b",
    re.IGNORECASE,
)


@cache
def role_of(name: str) -> str:
    """The role that a name states; empty if none.

    >>> role_of("epsilon"), role_of("self.max_grad_norm"), role_of("noise_multiplier"), role_of("colour")
    ('epsilon', 'clip', 'multiplier', '')
    """
    plain = name.rpartition(".")[2].lstrip("_")
    if plain == "C":
        return "clip"
    if len(plain) == 1 and plain not in "znbdckε":
        return ""
    for role, pattern in ROLES.items():
        if re.fullmatch(pattern, plain.lower()):
            return role if not (role == "epsilon" and plain.lower() in ("epsilon_greedy", "epsg")) else ""
    return ""


@cache
def is_data(name: str) -> bool:
    """Whether a parameter of this name usually holds what is to be protected."""
    return bool(DATA.fullmatch(name.lstrip("_").lower())) and role_of(name) in ("", "count", "dimension", "bound")


@cache
def is_configuration(name: str) -> bool:
    """Whether a parameter of this name steers the code rather than being protected."""
    return bool(CONFIG.fullmatch(name.lstrip("_").lower())) or bool(role_of(name))


def is_generator(name: str) -> bool:
    """Whether a name usually holds a generator of random numbers."""
    return bool(GENERATOR.fullmatch(name.rpartition(".")[2].lower()))


def claim_in(documentation: str) -> str:
    """The first sentence that claims differential privacy, in one line; empty if none does.

    >>> claim_in("Add noise. The result is epsilon-differentially private for one record. Fast.")
    'The result is epsilon-differentially private for one record.'
    """
    found = CLAIM.search(documentation)
    if found is None:
        return ""
    before = documentation[: found.start()]
    cuts = [one.end() for one in re.finditer(r"[.!?:]\s|\n\s*\n|\n\s*(?=[A-Z*-])", before)]
    start = cuts[-1] if cuts else 0
    end = re.compile(r"[.!?](\s|$)|\n\s*\n|\n\s*(?=\w+ ?:)|$").search(documentation, found.end())
    stop = len(documentation) if end is None else end.start() + 1
    return " ".join(documentation[start:stop].split())[:200]
