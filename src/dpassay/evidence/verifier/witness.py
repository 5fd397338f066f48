"""Re-checks a counterexample: the event is as likely as recorded, and it violates the claim."""

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.normal import tail
from dpassay.evidence.verifier.arithmetic.numbers import INF, ZERO, Number, iv, log, log_sum, positive_part, show
from dpassay.evidence.verifier.lowers import NoisePlace
from dpassay.evidence.verifier.noises.additive import leak
from dpassay.evidence.verifier.noises.discrete import choice_chances, noised_bits, top_k_chances
from dpassay.evidence.verifier.noises.integer import whole_gaps
from dpassay.evidence.verifier.noises.known_noises import joined_noise
from dpassay.evidence.verifier.noises.losses import chance_above
from dpassay.evidence.verifier.noises.noisy_max import first_chances
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, by_parity, differing, distance
from dpassay.evidence.verifier.regions.regions import WHOLE, ParsedStage

Logs = tuple[Number, Number]


_BEYOND = "every differing coordinate lies at or beyond the first value, on the side away from the second"


def check_event(witness: Step, claim: Step, place: NoisePlace, pair: Pair, mu: Number) -> str:
    """Whether the event's probabilities are as stated, and what they show."""
    noise = joined_noise(place.added)
    if noise is None or not place.keeps_all:
        raise CertificateError("no event is known for what is left of this noise")
    logs = _event(witness.event, noise, pair, claim, mu)
    if mu.b > 0:
        logs = log_sum(log(1 - mu) + logs[0], log(mu) + logs[1]), logs[1]
    for name, recorded, mine in (("log_p", witness.log_p, logs[0]), ("log_q", witness.log_q, logs[1])):
        if not (recorded.a <= mine.a and mine.b <= recorded.b):
            raise CertificateError(f"{name} does not follow from the pair and the noise: it is {show(mine)}")
    p = iv.exp(logs[0])
    more = p if logs[1].b == -INF else p - iv.exp(logs[1] + claim.epsilon)
    if not more.a > claim.delta.b:
        raise CertificateError(f"the event does not break the claim: P − e^ε·Q is {show(more)}")
    return f"{witness.event}: ln P = {show(logs[0])} and ln Q = {show(logs[1])}"


def _event(event: str, noise: ParsedStage, pair: Pair, claim: Step, mu: Number) -> Logs:
    """The logarithms of the event's probabilities under the first and the second value."""
    numbers, gaps = noise.numbers, differing(pair)
    if (noise.name, event) == ("", "the output that the first value gives") and distance(pair, float("inf")).a > 0:
        return ZERO, -INF
    if noise.name == "laplace" and event == _BEYOND:
        log_p = -sum(count for _, count in gaps) * iv.log(iv.mpf(2))
        return log_p, log_p - distance(pair, 1.0) / numbers["scale"]
    if noise.name == "discrete_laplace" and event == _BEYOND and (shifts := whole_gaps(pair)) is not None:
        log_p = -sum(shifts.values()) * iv.log(1 + iv.exp(-1 / numbers["scale"]))
        return log_p, log_p - sum(size * count for size, count in shifts.items()) / numbers["scale"]
    if noise.name in WHOLE and event == "an output that the second value cannot give" and whole_gaps(pair) is None:
        return ZERO, -INF
    if noise.name in ("laplace", "gaussian") and event == "the first coordinate is above 0":
        p, q = (chance_above(noise, value, ZERO) for value in (pair[0].x, pair[0].y))
        return log(p), log(q)
    if noise.name == "gaussian" and event == (
        "the log-likelihood ratio of the first value to the second exceeds the claimed epsilon"
    ):
        mean = distance(pair, 2.0) / numbers["sigma"]
        epsilon = claim.epsilon + log((1 - mu * iv.exp(-claim.epsilon)) / (1 - mu)) if mu.b > 0 else claim.epsilon
        # At δ = 0 any ε is exceeded far enough out; the threshold is then one above it.
        threshold = positive_part(epsilon) + (1 if claim.delta.b <= 0 else 0)
        return log(tail(threshold / mean - mean / 2)), log(tail(threshold / mean + mean / 2))
    if noise.name == "bits" and event == "each bit that differs takes the value that speaks most for the first string":
        return _most_telling(noise, pair)
    if noise.name == "flip" and gaps:
        logs = log(numbers["keep"]), log((1 - numbers["keep"]) / max(1, noise.wholes["k"] - 1))
        if event == "the first category is put out":
            return logs
        if event == "the second category is put out":
            return logs[1], logs[0]
    if noise.name == "onesided" and event == (
        "some coordinate lies below the second value, which the second value cannot give"
    ):
        rise = sum((gap * count for gap, count in gaps if gap.a > 0), ZERO)
        return log(1 - iv.exp(-rise / numbers["scale"])), -INF
    if noise.name == "mixture" and event == "an output that the second value cannot give":
        return log(leak(noise, gaps)), -INF
    if noise.name == "top-k" and event == "an output is chosen that is not among the second value's top k":
        chances = [(p, q) for p, q in top_k_chances(noise, pair) if p.b > 0]
        gone = [p for p, q in chances if q.b <= 0]
        return ZERO if len(gone) == len(chances) else log(sum(gone, ZERO)), -INF
    count = pair[0].count if pair else 0
    several = f"one of the {count} outputs with the first one's scores is chosen"
    if noise.name == "exponential" and event == (several if count > 1 else "the first output is chosen"):
        p, q = choice_chances(noise, pair)[0]
        return log(p * count), log(q * count)
    if noise.name == "noisymax" and event == "the first output is chosen":
        p, q = first_chances(noise, pair)
        return log(p), log(q)
    raise CertificateError(f"the event {event[:80]!r} is not known for {noise.name or 'no'} noise")


def _most_telling(noise: ParsedStage, pair: Pair) -> Logs:
    """For each bit the value with the larger ratio."""
    total = [ZERO, ZERO]
    for p, q, count in noised_bits(noise, tuple(b for b in by_parity(pair) if not b.x.a == b.y.a)):
        options = [(log(a), log(b)) for a, b in ((p, q), (1 - p, 1 - q)) if a.b > 0]
        best = max(options, key=lambda logs: float("inf") if logs[1].b == -INF else float((logs[0] - logs[1]).mid))
        total = [total[0] + best[0] * count, total[1] + best[1] * count]
    return total[0], total[1]
