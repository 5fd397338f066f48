"""Everything that the documents describe: where, what, the command that does it, the published number and ours.

`page` writes docs/documents.md. What is in the last column is computed when the page is written, unless it is words.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpassay.claims.judge import quick_check
from dpassay.claims.registry import REGISTRY
from dpassay.core.guarantee import make_guarantee
from dpassay.core.interval import Interval, grouped
from dpassay.core.numbers import middle, number
from dpassay.exact.calibrate import gaussian
from dpassay.exact.composition import compose, compose_parallel, simple_group
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.regions import Ball
from dpassay.reproduce.adept import RELEASED, THEIRS, normal_curve, released
from dpassay.reproduce.sanity import exact_loss
from dpassay.reproduce.tables import subset_delta
from dpassay.text.corpora.statistics import CorpusStatistics


@dataclass(frozen=True)
class Entry:
    """One thing that a document describes. The commands are run in their order; later ones may read earlier files."""

    section: str
    what: str
    command: str
    published: str
    ours: str | Callable[[], str]
    takes_minutes: bool = False


def shown(value: float | Interval) -> str:
    """A number in four digits; an interval by one number if both ends agree in them.

    >>> shown(math.inf), shown(Interval(5.6568542, 5.6568543)), shown(Interval(1.0, 2.0))
    ('∞', '5.657', '1 to 2')
    """
    if isinstance(value, Interval):
        ends = dict.fromkeys(map(shown, (value.lower, value.upper)))
        return " to ".join(ends)
    return "∞" if value == math.inf else grouped(value)


def _true(name: str, **changes: Any) -> Callable[[], str]:
    """The true ε of a published claim."""

    def found() -> str:
        word, value, _ = quick_check(REGISTRY[name](**changes) if changes else REGISTRY[name])
        return f"{word}, ε = {shown(value)}"

    return found


def _claim(section: str, what: str, name: str, published: str) -> Entry:
    return Entry(section, what, f"dpassay check {name}", published, _true(name))


def _figure(section: str, what: str, name: str, published: str, ours: str | Callable[[], str] = "the figure") -> Entry:
    return Entry(section, what, f"dpassay reproduce {name} --out figures", published, ours)


def _search_space() -> str:
    log = CorpusStatistics(5473, 5473, 1, 11.1, 46, 941, 941).log10_search_space
    return f"{10 ** (log % 1):.2f}·10^{math.floor(log)} from the same counts; [the counts](systems/README.md#corpora)"


def _counterexample() -> str:
    loss = PrivacyLoss.of_shifts(Laplace(number(2)), [(number(2 * number(2) / 3), 2)])
    return f"distance {shown(4 * THEIRS)} C, loss {shown(loss.max_divergence())} ε"


def _violations() -> str:
    low, high = normal_curve()[16]
    count = released("normal", 16) / RELEASED
    return f"normal, n = 16: {low:.4f} to {high:.4f} by integration; the released code counts {count:.4f}"


def _divergence() -> str:
    loss = PrivacyLoss.of_shifts(Laplace(number(1)), [(number(1), 1)])
    return f"mean {shown(loss.mean())}, largest {shown(loss.max_divergence())}"


def _vote() -> str:
    return f"{exact_loss('laplace', 1.0, 1):.5f} exactly"


def _group() -> str:
    return f"{simple_group(make_guarantee('0.5', '1e-6'), 3)}; the sum of the steps gives a smaller δ"


def _composed() -> str:
    total = compose("0.1 x 100", delta="1e-6")
    return f"{shown(total.basic)} by basic, {shown(total.exact)} by exact composition, at δ = 1e-6"


EMNLP = (
    Entry(
        "§2",
        "neighbors, central and local DP",
        "dpassay check --stages",
        "definitions",
        "[concepts](concepts.md#neighbors)",
    ),
    _claim("§2", "the exact average length leaks by differencing", "average-length-raw", "breached"),
    _claim(
        "§2", "noise stops it ([worked example](tutorial.md#8-data-sets-instead-of-texts))", "average-length", "private"
    ),
    Entry(
        "§2",
        "ε bounds the max divergence",
        "dpassay check --pipeline 'query(l1, 1) | laplace(1)' --epsilon 1 --order inf",
        "D∞ ≤ ε",
        _true("laplace"),
    ),
    _figure("§2", "prior and posterior odds", "bayes", "odds ratio at most e^ε", "e^ε, attained"),
    _claim("Theorem 2.1, appendix A", "the Laplace mechanism ([proof](proofs/laplace.md))", "laplace-vector", "ε-DP"),
    Entry(
        "§3",
        "ADePT, trained and run",
        "dpassay train adept --corpus flights:300 --out adept --steps 30 --latent 8",
        "an autoencoder",
        "[ADePT](systems/adept.md)",
    ),
    _claim("Theorem 3.1, §4", "ADePT is not ε-DP, n = 32", "adept", "ε = 1 claimed, false"),
    _figure("§4", "the counterexample", "adept-sensitivity", "distance 8C/3, loss 4ε/3", _counterexample),
    _figure(
        "Theorem 5.1, appendix B",
        "the true sensitivity, n = 32",
        "adept-sensitivity",
        "2C√n",
        lambda: f"{grouped(middle(Ball(2, number(1), 32).diameter(1)))} C",
    ),
    Entry(
        "§5",
        "how much higher than reported, n = 1024",
        "dpassay check adept --dim 1024",
        "≈ 6 to 32 times, n = 32 to 1024",
        _true("adept", dim=1024),
    ),
    _figure("Figure 1", "pairs that violate the bound", "adept-violations", "0 to nearly all; a curve", _violations),
    Entry(
        "§7",
        "corpus and search space",
        "dpassay corpus --statistics --lines 50 --out flights.txt",
        "5,473 utterances, 1 to 46 words, 941 words, 941^46 ≈ 6·10^136",
        _search_space,
    ),
    _claim("§7", "first remedy: clip in l1", "adept-l1", "ε-DP"),
    _claim("§7", "second remedy: noise for 2C√n", "adept-sqrt-n", "ε-DP"),
    Entry(
        "appendix C",
        "guess the original of a rewritten text",
        "dpassay reconstruct 'a flight to rome' --candidates flights.txt --model adept --mechanism adept-as-published "
        "--epsilon 100 --draws 2000",
        "a sketch",
        "[ADePT](systems/adept.md)",
    ),
    Entry(
        "appendix C",
        "the same with a search space that a language model generates",
        "dpassay reconstruct 'a flight to rome' --generate 200 --top 3 --corpus flights:300 --model adept --mechanism "
        "adept-as-published --epsilon 100 --draws 500",
        "a sketch",
        "[ADePT](systems/adept.md#a-generated-search-space)",
    ),
)
ACL = (
    _figure("§2, Eq. 1", "prior and posterior odds", "bayes", "grow by e^ε at most", "e^ε, attained"),
    _figure("Eq. 4, 5 and 7, Figure 1", "the inverse distribution function", "inverse-cdf", "two right, one wrong"),
    _figure(
        "Theorem A.1", "inverse-CDF sampling ([proof](proofs/inverse-cdf.md))", "inverse-cdf", "Y has CDF F", "proved"
    ),
    _figure(
        "Theorem 3.1, Figure 3",
        "DPText does not draw Laplace noise",
        "sampled-laplace",
        "no negative noise",
        "exponential",
    ),
    _claim("Theorem 3.2", "DPText, NaN as zero", "dptext-zero", "∞"),
    _claim("Theorem 3.2", "DPText, NaN drawn again", "dptext-resampled", "∞"),
    _claim("§3.2", "DPText with the right inverse", "dptext-corrected", "ε-DP"),
    _figure("§4, Figure 2", "the sanity check, Laplace, n = 1, ε = 1", "sanity-check", "0.832471", _vote),
    Entry(
        "§4",
        "the check for any real-valued mechanism (code: `--python module:name`)",
        "dpassay reproduce sanity-check --pipeline 'laplace(dim/eps)' --epsilon 1 --dim 1,8 --out figures",
        "an algorithm",
        "vote, learned bound and exact loss ([how](reproduce.md#the-sanity-check-for-your-mechanism))",
    ),
    Entry(
        "§5",
        "ADePT with its clipping, vote at n = 128, ε = 1",
        "dpassay reproduce sanity-check --out figures",
        "not run",
        lambda: (
            f"{exact_loss('clipped', 1.0, 128):.4f} exactly, below ε; unclipped {exact_loss('adept', 1.0, 128):.4f}"
        ),
    ),
    _claim("§5", "control: copying the input", "copy", "no privacy"),
    _claim("§5", "control: ignoring the input", "coin-flip", "maximum privacy"),
    _claim("§5", "ADePT as the released code runs it, n = 32", "adept-unclipped", "grows with n"),
)
LAI = (
    _claim("DPNR, Theorem 1", "one word, k = 768 elements", "dpnr", "0.05 claimed; at least 38.4"),
    _claim("corrected Theorem 1", "kε", "dpnr-corrected", "kε = 38.4"),
    _claim("DPNR, Theorem 2", "with dropout, μ = 0.5", "dpnr-dropout", "false"),
    _claim("corrected Theorem 2", "ln[(1−μ)e^(kε) + μ]", "dpnr-dropout-fixed", "ln[(1−μ)e^(kε) + μ]"),
    _claim(
        "parallel property",
        "k elements of one vector ([proof](proofs/parallel.md))",
        "parallel-vector",
        "does not apply",
    ),
    Entry(
        "parallel property",
        "k different data sets",
        "dpassay compose '1 x 768' --parallel --delta 0",
        "applies",
        lambda: f"ε = {shown(compose_parallel('1 x 768', delta=0).exact)}",
    ),
    _claim("element-level DP", "elements of an embedding", "dpnr-element", "does not hold"),
    _claim("element-level DP", "elements that change one at a time", "dpnr-element-rows", "holds on that condition"),
    _figure("appendix", "claimed and true budgets", "dpnr-budgets", "0.05 × 768 = 38.4", "the table"),
    _claim("comparison", "noise redrawn in each of T = 100 steps", "dpnr-training", "accumulates"),
    _claim("comparison", "Gaussian noise, δ = 1e-5, μ = 0.5", "dpnr-gaussian", "not stated"),
    Entry(
        "comparison",
        "accuracy at ε = 0.05, noise as written and as coded",
        "dpassay reproduce dpnr-accuracy --out figures",
        "almost that of no noise",
        "only as coded, where no finite ε holds ([table](systems/dpnr.md#accuracy-as-written-and-as-coded))",
        takes_minutes=True,
    ),
    _claim("Eq. 12, 13", "hash functions: RAPPOR", "rappor", "ε = Σ εᵢ"),
    _claim("Eq. 14", "binary encoding: OME, 7,680 bits", "ome", "ε claimed"),
    Entry(
        "Eq. 14",
        "OME end to end: embeddings to bits, a classifier",
        "dpassay train binary --corpus flights:200 --mechanism ome --as-published --out ome",
        "not stated",
        "as accurate as without noise ([table](systems/binary.md#how-much-meaning-is-left))",
    ),
    _claim("Eq. 14", "symmetric flips of all bits", "binary-symmetric", "ε claimed"),
    _figure(
        "Eq. 15-19",
        "what each bit loses",
        "binary-encoding",
        "2^(i−1)εᵢ, 2^(m+1)εᵢ, 2^(−i)εᵢ",
        "the loss per bit, exactly",
    ),
    _claim("UeDP, Theorem 1", "user-entity training as published", "uedp", "2.2 after 1,000 rounds"),
    _figure("UeDP, Figure 4", "ε over the number of rounds", "uedp-budgets", "0.5, 1, 1.5, …"),
    Entry(
        "UeDP, Figure 2",
        "perplexity against the true ε",
        "dpassay reproduce uedp-perplexity --out figures",
        "curves",
        "![perplexity](images/uedp-perplexity.svg)",
        takes_minutes=True,
    ),
)
LECTURE = (
    _figure(
        "Figure 1",
        "the ratio of two densities, several scales",
        "likelihood-ratio",
        "at most e = 2.718",
        "e^(1/b), attained",
    ),
    _claim("recap", "Laplace mechanism, counting query", "laplace", "ε-DP"),
    _claim("recap", "exponential mechanism", "exponential", "ε-DP"),
    _claim("recap", "local DP: randomized response", "randomized-response", "ε-DP"),
    _figure("privacy loss", "the loss as a random variable, its mean", "loss-variable", "at most ε = 1", _divergence),
    _figure(
        "approximate DP",
        "(ε, δ)-DP and the tail of the loss",
        "loss-variable",
        "equivalent",
        "one direction only ([proof](proofs/hockey-stick.md))",
    ),
    _claim("algorithm 1", "everything with probability δ", "leak-everything", "(0, δ)-DP"),
    _claim("algorithm 2", "each row with probability δ", "leak-rows", "(0, δ)-DP"),
    _figure(
        "tables 1-5",
        "both algorithms, run on the table",
        "lecture-tables",
        "(0, δ)-DP",
        lambda: f"(0, δ)-DP: {subset_delta(4, 0.1):.6g} at δ = 0.1",
    ),
    _figure("algorithm 2", "somebody leaks", "delta-extremes", "1 − (1−δ)^n ≈ δn", "1 − (1−δ)^n"),
    _claim("Gaussian mechanism", "the classic formula, ε below 1", "gaussian", "(ε, δ)-DP"),
    _claim("Gaussian mechanism", "the classic formula at ε = 10", "gaussian-large-eps", "excluded"),
    _figure("Gaussian mechanism", "classic and exact σ", "gaussian", "σ² > 2 ln(1.25/δ)Δ²/ε²"),
    Entry(
        "Gaussian mechanism",
        "the least σ at ε = 10, δ = 1e-5",
        "dpassay calibrate gaussian --epsilon 10 --delta 1e-5",
        "not stated",
        lambda: f"{gaussian(10, '1e-5'):.6g}",
    ),
    _claim("properties", "post-processing", "post-processing", "(ε, δ)-DP stays"),
    Entry("properties", "group privacy, k = 3", "dpassay compose '0.5,1e-6' --group 3", "(kε, k e^((k−1)ε) δ)", _group),
    Entry("properties", "basic composition", "dpassay compose '0.1 x 100' --delta 1e-6", "(Σε, Σδ)", _composed),
)
DOCUMENTS: dict[str, tuple[Entry, ...]] = {
    "Habernal, When differential privacy meets NLP: The devil is in the detail (EMNLP 2021)": EMNLP,
    "Habernal, How reparametrization trick broke differentially-private text representation learning (ACL 2022)": ACL,
    "Lai et al., User-entity differential privacy in learning natural language models (2022), with its appendix": LAI,
    "Habernal, Privacy-preserving NLP, lecture on approximate differential privacy and the Gaussian mechanism": LECTURE,
}


def page() -> str:
    """The whole table, in Markdown."""
    parts = [
        "# The documents",
        "*Written by `dpassay reproduce --page docs/documents.md`. Change `reproduce/documents.py`, not this page.*",
        "dpassay was made from four documents. These tables list what they describe, the command that does it, what "
        "they state, and what comes out here. Verdicts and numbers in the last column are computed when this page is "
        "written. Run the commands of a document in their order: some read what earlier ones wrote.",
    ]
    for title, entries in DOCUMENTS.items():
        parts += [f"## {title}", "| where | what | command | published | ours |\n| --- | --- | --- | --- | --- |"]
        for entry in entries:
            ours = entry.ours if isinstance(entry.ours, str) else entry.ours()
            command = entry.command.replace("|", "\\|")
            cells = (entry.section, entry.what, f"`{command}`", entry.published, ours)
            parts[-1] += f"\n| {' | '.join(cells)} |"
    return "\n\n".join(parts) + "\n"
