"""Re-checks a counterexample: the pair is one of the region's, and the event is as likely as recorded."""

from collections.abc import Sequence
from dataclasses import replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier import normal
from dpassay.evidence.verifier.ceilings import before_dropout
from dpassay.evidence.verifier.counting import EqualBits, loss_above
from dpassay.evidence.verifier.discrete import choice_chances, noised_bits
from dpassay.evidence.verifier.fields import Claim, Witness
from dpassay.evidence.verifier.losing import leak
from dpassay.evidence.verifier.mechanism import brought, chance_above_zero, dropped, laplace_sum, possible_pairs
from dpassay.evidence.verifier.numbers import INF, ZERO, Number, close, hull, iv, largest, log, log_sum, show
from dpassay.evidence.verifier.pairs import Pair, alike, differing, distance, lies_in
from dpassay.evidence.verifier.regions import ADDITIVE, NOISES, Reach, Stage

Logs = tuple[Number, Number]
_NOTHING = iv.mpf("1e-40")
_BEYOND = "every differing coordinate lies at or beyond the first value, on the side away from the second"
_RATIO = "the log-likelihood ratio of the first value to the second exceeds the claimed epsilon"
_ABOVE = "the first coordinate is above 0"
_BITS = "each bit takes the value that speaks most for the first string"
_CATEGORY = "the first category is put out"
_OTHER = "the second category is put out"
_BELOW = "some coordinate lies below the second value, which the second value cannot give"
_IMPOSSIBLE = "an output that the second value cannot give"
_CHOICE = "the first output is chosen"
_COPY = "the output that the first value gives"


def check_pair(witness: Witness, stages: Sequence[Stage], reaches: Sequence[Reach], neighbours: str) -> str:
    """Whether two neighbours can have these two values just before the noise."""
    position = _before_noise(stages)
    reach = brought(stages, reaches, position, neighbours) if position < len(stages) else reaches[position]
    if reach.exact:
        why = lies_in(witness.pair, reach.shape)
        if why:
            raise CertificateError(f"the pair is not one of the region {reach.shape.kind} before the noise: {why}")
        return f"the pair lies in the region {reach.shape.kind} before the noise"
    known = possible_pairs(stages, reaches, position, neighbours if position < len(stages) else "any")
    if not any(alike(witness.pair, pair) for pair in _orders(known)):
        raise CertificateError("the pair is not what the stages before the noise make of two possible inputs")
    return "the pair is what the stages before the noise make of two possible inputs"


def _orders(pairs: list[Pair]) -> list[Pair]:
    """Each pair both ways round."""
    return [*pairs, *(tuple(replace(b, x=b.y, y=b.x) for b in pair) for pair in pairs)]


def _before_noise(stages: Sequence[Stage]) -> int:
    """Where the last noise begins; noises added right after one another are one."""
    positions = [i for i, stage in enumerate(stages) if stage.name in NOISES]
    if not positions:
        return len(stages)
    joined = positions == list(range(positions[0], positions[-1] + 1))
    return positions[0] if joined and all(stages[i].name in ADDITIVE for i in positions) else positions[-1]


def check_event(witness: Witness, claim: Claim, stages: Sequence[Stage]) -> str:
    """Whether the event's probabilities follow from the pair and the noise, and what they show."""
    mu = dropped(stages, claim.neighbours)
    logs, sharp = _event(witness, claim, _noise(stages), mu)
    if mu.b > 0:
        logs = log_sum(log(1 - mu) + logs[0], log(mu) + logs[1]), logs[1]
    for name, recorded, mine in (("log_p", witness.log_p, logs[0]), ("log_q", witness.log_q, logs[1])):
        assert recorded is not None
        if not _agrees(recorded, mine, sharp):
            raise CertificateError(
                f"{name} does not follow from the pair and the noise: it says {show(recorded)}, it is {show(mine)}"
            )
    ratio = INF if logs[1].b == -INF else logs[0] - logs[1]
    if claim.delta.b <= 0 and ratio.b <= claim.epsilon.a * (1 - iv.mpf("1e-9")):
        raise CertificateError(
            f"the event does not break the claim: its ln P − ln Q is {show(ratio)}, not above {show(claim.epsilon)}"
        )
    return f"its event has ln P = {show(logs[0])} and ln Q = {show(logs[1])}"


def _noise(stages: Sequence[Stage]) -> Stage | None:
    """The noise that an event speaks of: the last one, or the sum of Gaussians that were added to one another."""
    noises = [stage for stage in stages if stage.name in NOISES]
    first = _before_noise(stages)
    if len(noises) < 2 or first == len(stages) or stages[first] is noises[-1]:
        return noises[-1] if noises else None
    if any(noise.name != "gaussian" for noise in noises):
        raise CertificateError("of a sum of different noises no event is known")
    square = sum((noise.numbers["sigma"] ** 2 for noise in noises), ZERO)
    return replace(noises[0], numbers={"sigma": iv.sqrt(square)})


def _agrees(recorded: Number, mine: Number, sharp: bool) -> bool:
    """Both ends are ours to nine digits; where both are only bounds they meet, and neither is far wider."""
    ends = [iv.mpf(end) for end in (recorded.a, recorded.b)]
    if sharp:
        return all(close(end, mine, "1e-9") or abs(end - mine).b < _NOTHING.a for end in ends)
    return close(recorded, mine, "1e-6") and all(close(end, mine, "0.05") for end in ends)


def _event(witness: Witness, claim: Claim, noise: Stage | None, mu: Number) -> tuple[Logs, bool]:
    """The logarithms of the event's probabilities, and whether they are exact."""
    pair, event, name = witness.pair, witness.event, noise.name if noise else ""
    if event == _COPY and noise is None:
        return (ZERO, -INF), True
    if event == _BEYOND and noise is not None and name == "laplace":
        count = sum(n for _, n in differing(pair))
        log_p = -count * iv.log(iv.mpf(2))
        return (log_p, log_p - distance(pair, 1.0) / noise.numbers["scale"]), True
    if event == _ABOVE and noise is not None and name in ("laplace", "gaussian"):
        chances = [chance_above_zero(noise, value) for value in (pair[0].x, pair[0].y)]
        return (log(chances[0]), log(chances[1])), True
    if event == _RATIO and noise is not None and name in ("laplace", "gaussian", "bits"):
        return _ratio_event(pair, claim, noise, before_dropout(claim.epsilon, mu))
    if event == _BITS and noise is not None and name == "bits":
        return _bits_event(noise, pair), True
    if event in (_CATEGORY, _OTHER) and noise is not None and name == "flip":
        keep = noise.numbers["keep"]
        logs = log(keep), log((1 - keep) / max(1, noise.wholes["size"] - 1))
        return (logs if event == _CATEGORY else (logs[1], logs[0])), True
    if event == _BELOW and noise is not None and name == "onesided":
        rise = sum((gap * count for gap, count in differing(pair) if gap.a > 0), ZERO)
        return (log(1 - iv.exp(-rise / noise.numbers["scale"])), -INF), True
    if event == _IMPOSSIBLE and noise is not None and name == "mixture":
        return (log(leak(noise, differing(pair))), -INF), True
    if event == _CHOICE and noise is not None and name == "exponential":
        p, q = choice_chances(noise, pair)[0]
        count = iv.mpf(pair[0].count)
        return (log(p * count), log(q * count)), True
    raise CertificateError(f"the event {event[:80]!r} is not known for {name or 'no'} noise")


def _ratio_event(pair: Pair, claim: Claim, noise: Stage, epsilon: Number) -> tuple[Logs, bool]:
    """The loss exceeds ε. Gaussian: it is normal. Laplace: P is the tail, and P − e^ε Q is δ(ε)."""
    if noise.name == "gaussian":
        mean = distance(pair, 2.0) / noise.numbers["sigma"]
        # At δ = 0 any ε is exceeded far enough out; the threshold is then one above it.
        threshold = epsilon + (1 if claim.delta.b <= 0 else 0)
        return (
            normal.log_tail(threshold / mean - mean / 2),
            normal.log_tail(threshold / mean + mean / 2),
        ), True
    if noise.name == "bits":
        bits = [EqualBits(p, q, n) for p, q, n in noised_bits(noise, pair) if abs(p - q).b > _NOTHING.a]
        found = loss_above(bits, epsilon) if bits else None
        if found is None:
            raise CertificateError("the loss of so many kinds of bits cannot be re-checked")
        return (log(found[0]), log(found[1])), False
    curve = laplace_sum([(gap / noise.numbers["scale"], count) for gap, count in differing(pair)])
    p, delta = curve.tail(epsilon), curve.delta(epsilon)
    rest = hull(largest([ZERO, iv.mpf(p.a) - iv.mpf(delta.b)]), largest([ZERO, iv.mpf(p.b) - iv.mpf(delta.a)]))
    return (log(p), log(rest * iv.exp(-epsilon))), False


def _bits_event(noise: Stage, pair: Pair) -> Logs:
    """Of each bit the value with the larger ratio."""
    total = [ZERO, ZERO]
    for p, q, count in noised_bits(noise, pair):
        options = [(log(a), log(b)) for a, b in ((p, q), (1 - p, 1 - q)) if a.b > 0]
        best = max(options, key=lambda logs: float("inf") if logs[1].b == -INF else float((logs[0] - logs[1]).mid))
        total = [total[0] + best[0] * count, total[1] + best[1] * count]
    return total[0], total[1]
