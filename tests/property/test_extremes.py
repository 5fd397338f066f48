"""Numbers at the ends of the range: a verdict or a refusal with a reason, never another error; and no wrong number."""

import itertools

import pytest
from mpmath import mp, mpf

import dpassay
from dpassay.core.functions.normal import normal_tail
from dpassay.core.guarantee import GDP, ZCDP, ApproxDP, MetricDP, PureDP, RenyiDP
from dpassay.core.numbers import log, log_without, missing, number, real
from dpassay.errors import InputError

ENDS = ("1e-300", "1e-30", "1e30", "1e300")
NOISES = [
    "query(l1, {D}) | laplace({s})",
    "query(l2, {D}) | gaussian({s})",
    "counts(l1, {D}) | discrete_laplace({s})",
    "counts(linf, {D}) | discrete_gaussian({s})",
    "query(l1, {D}) | truncated_laplace({s}, {s}*3)",
    "query(l1, {D}) | staircase({s}, {D}, 0.5)",
    "query(l1, {D}) | bounded_laplace({s}, 0, {D})",
    "query(l2, {D}) | radial(l2, {s})",
    "clip(l2, {D}) | mahalanobis({s}, 0.5, 1)",
    "normalise(l2) | vmf({s})",
    "normalise(l2) | purkayastha({s})",
    "clip(l1, {D}) | onesided({s})",
    "clamp(0, {D}) | exponential({s})",
    "query(linf, {D}) | noisymax(laplace, {s})",
    "query(linf, {D}) | noisymax(exponential, {s})",
    "query(linf, {D}) | softmax({s})",
]
PAIRS = list(itertools.product(ENDS, ENDS))
DELTAS = ("1e-300", "0.999999999999999")
CLAIMS = [
    *(lambda e=e: PureDP(e) for e in ENDS),
    *(lambda e=e, d=d: ApproxDP(e, d) for e in ("1e-300", "1", "1e30") for d in DELTAS),
    *(lambda e=e: ZCDP(e) for e in ENDS),
    *(lambda e=e: GDP(e) for e in ENDS),
    *(lambda e=e: RenyiDP(2, e) for e in ENDS),
    *(lambda e=e: MetricDP(e, "l2") for e in ENDS),
]


@pytest.fixture(autouse=True)
def _digits():
    """Each test sets mpmath's precision for itself alone."""
    with mp.workdps(mp.dps):
        yield


@pytest.mark.long(reduced=1, full=len(CLAIMS))
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_noise_with_every_guarantee(noise, repetitions):
    """In the reduced form a different claim for each pair of sizes; each claim occurs with some noise."""
    for i, (scale, distance) in enumerate(PAIRS):
        for j in range(repetitions):
            make = CLAIMS[(5 * i + j + 3 * NOISES.index(noise)) % len(CLAIMS)]
            text = noise.format(s=scale, D=distance)
            try:
                verdict = dpassay.check(text, guarantee=make(), dim=2)
            except InputError:
                continue  # with a reason
            assert verdict.word in ("proven", "refuted", "open")


@pytest.mark.parametrize(("scale", "distance"), list(itertools.product(ENDS, ("2e-300", *ENDS[1:]))))
def test_laplace_noise_has_the_epsilon_of_its_formula(scale, distance):
    mp.dps = 60
    exact = mpf(distance) / mpf(scale)
    for claimed in ENDS:
        verdict = dpassay.check(f"query(l1, {distance}) | laplace({scale})", epsilon=claimed, delta=0, dim=1)
        assert verdict.word == ("proven" if exact <= mpf(claimed) * (1 + mpf("1e-30")) else "refuted")
        assert verdict.epsilon.lower <= exact * (1 + mpf("1e-15"))
        assert verdict.epsilon.upper >= exact * (1 - mpf("1e-15")) or verdict.epsilon.upper > 1.7e308


@pytest.mark.parametrize("epsilon", [*ENDS, "0"])
@pytest.mark.parametrize("delta", ["1e-300", "1e-100", "1e-30", "1e-15", "0.5", "0.999999999999999"])
def test_the_least_laplace_scale(epsilon, delta):
    """Δ/(ε − 2 ln(1 − δ)), rounded up, at most two doubles above."""
    mp.dps = 700
    exact = 1 / (mpf(epsilon) - 2 * mp.log(1 - mpf(delta)))
    try:
        found = dpassay.calibrate.laplace(epsilon, delta)
    except InputError:
        assert exact > mpf("1.7e308")
        return
    assert exact <= mpf(repr(found)) <= exact * (1 + mpf("1e-15")) + mpf("1e-322")


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-30", "1e-5", "1", "30", "1e50", "1e82", "1e300"])
@pytest.mark.parametrize("categories", [2, 3, 1000])
def test_the_largest_chance_to_keep(epsilon, categories):
    """e^ε/(e^ε + k − 1), rounded down, at most two doubles below."""
    mp.dps = 700
    exact = 1 / (1 + (categories - 1) * mp.exp(-mpf(epsilon)))
    try:
        found = dpassay.calibrate.flip(epsilon, categories=categories)
    except InputError:  # it needs more digits than a double has
        assert mpf(epsilon) < mpf("1e-10")
        return
    assert exact * (1 - mpf("3e-16")) <= mpf(repr(found)) <= exact


@pytest.mark.parametrize("command", ["laplace", "gaussian", "flip"])
@pytest.mark.parametrize("epsilon", ENDS)
def test_calibrate_answers_or_refuses(command, epsilon):
    for delta in DELTAS if command != "flip" else ("",):
        given = {"delta": delta} if delta else {"categories": 3}
        try:
            found = getattr(dpassay.calibrate, command)(epsilon, **given)
        except InputError:
            continue  # with a reason
        assert 0 < found < float("inf")


@pytest.mark.parametrize("z", ["-1e300", "-1e30", "-5", "0", "5", "38", "1e5", "1e19", "1e21", "1e30", "1e300"])
def test_the_tail_of_a_normal_far_out(z):
    """Between φ(z)(1/z − 1/z³) and φ(z)/z; compared in logarithms, as mpmath's own erfc fails there."""
    mp.dps = 80
    x, found = mpf(z), normal_tail(number(z))
    if abs(x) < 1e6:
        exact = mp.erfc(x / mp.sqrt(2)) / 2
        assert mpf(found.a) <= exact <= mpf(found.b)
    elif x < 0:
        assert found.a > real("0.999999999999999999")
        assert found.b >= 1
    else:
        mp.dps = 1300
        truth = -x * x / 2 - mp.log(x) - mp.log(2 * mp.pi) / 2
        ends = log(found) if found.a > 0 else None
        assert ends is None or abs(mpf(ends.mid) / truth - 1) < mpf("1e-40")


@pytest.mark.parametrize("x", ["1e-300", "1e-60", "1e-21", "0.9e-20", "1.1e-20", "1e-5", "0.5"])
def test_small_chances_and_losses_keep_their_digits(x):
    mp.dps = 700
    for found, exact in ((log_without(number(x)), mp.log(1 - mpf(x))), (missing(number(x)), 1 - mp.exp(-mpf(x)))):
        assert mpf(found.a) <= exact <= mpf(found.b)
        assert (mpf(found.b) - mpf(found.a)) <= abs(exact) * mpf("1e-25")


@pytest.mark.parametrize("claim", [GDP("1e-300"), ZCDP("1e-300"), ApproxDP(1, "1e-5")], ids=str)
def test_almost_no_gaussian_noise_is_refuted(claim):
    assert dpassay.check("query(l2, 1) | gaussian(1e-300)", dim=1, guarantee=claim).refuted


def test_a_repair_that_cannot_be_written_is_left_out():
    verdict = dpassay.check("query(l1, 1) | laplace(1)", epsilon="1e-300", delta=0, dim=1)
    assert verdict.refuted
    assert all("laplace" not in str(repair.mechanism) for repair in verdict.repairs)
