"""From a claim to a verdict: what FACTS says of each, ties, edges, and intervals that agree with the verdict."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpassay
import tiers
from dpassay import audit
from dpassay.api import check
from dpassay.claims.claim import Claim
from dpassay.core.interval import outward
from dpassay.core.neighbours import Neighbours
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.evidence.verdict import Open, Proven, Refuted
from dpassay.pipeline.parser import parse
from tiers import repetitions

ADEPT = "encode | clip(l2, C) | laplace(2*C/eps) | decode"
CLASSIC = "query(l2, 1) | gaussian(sqrt(2*ln(1.25/delta))/eps)"
OME = "encode | binary(4, 5) | bits(L/(1+L), 1/(1+L^3), 1/(1+L*exp(eps/(dim*10))))"
MOUE = "encode | binary(4, 5) | bits(1/(1+L), 1/(1+L), 1/(1+L*exp(eps/(dim*10))))"


@pytest.mark.parametrize(
    ("text", "claim", "word", "low", "high"),
    [
        (ADEPT, {"epsilon": 1, "dim": 2, "C": 1}, Refuted, math.sqrt(2), math.sqrt(2)),
        (ADEPT, {"epsilon": 1, "dim": 32, "C": 1}, Refuted, math.sqrt(32), math.sqrt(32)),
        (ADEPT, {"epsilon": "0.5", "dim": 1024, "C": 7}, Refuted, 16, 16),
        (ADEPT, {"epsilon": 1, "dim": 1, "C": 1}, Proven, 1, 1),
        ("clip(l1, C) | laplace(2*C/eps)", {"epsilon": 1, "dim": 32, "C": 1}, Proven, 1, 1),
        ("clip(l2, C) | laplace(2*C*sqrt(dim)/eps)", {"epsilon": 1, "dim": 32, "C": 1}, Proven, 1, 1),
        ("encode | minmax | laplace(1/eps)", {"epsilon": "0.05", "dim": 768}, Refuted, 38.4, 38.4),
        ("dropout(0.5) | encode | minmax | laplace(20)", {"epsilon": 1, "dim": 768}, Refuted, 37.70685, 37.70686),
        (OME, {"epsilon": 1, "dim": 768, "L": 100}, Refuted, 53013.355, 53013.365),
        (OME, {"epsilon": 1, "dim": 768, "L": 1}, Proven, 0.5, 0.5001),
        (MOUE, {"epsilon": 1, "dim": 768, "L": 100}, Proven, 0.9, 1),
        ("category(2) | flip(exp(eps)/(1+exp(eps)))", {"epsilon": "0.7"}, Proven, 0.7, 0.7),
        ("query(linf, 1) | exponential(eps/2)", {"epsilon": 3, "dim": 5}, Proven, 3, 3),
        ("query(linf, 1) | exponential(eps)", {"epsilon": 3, "dim": 5}, Refuted, 6, 6),
        ("encode | laplace(1/eps)", {"epsilon": 1, "dim": 8}, Refuted, math.inf, math.inf),
        ("encode", {"epsilon": 1, "dim": 8}, Refuted, math.inf, math.inf),
        ("clip(l2, 1) | gaussian(5)", {"epsilon": 1, "dim": 8}, Refuted, math.inf, math.inf),
        (CLASSIC, {"epsilon": "0.5", "delta": "1e-5"}, Proven, 0.3, 0.5),
        (CLASSIC, {"epsilon": 8, "delta": "1e-5"}, Proven, 7.5, 8),
        (CLASSIC, {"epsilon": 10, "delta": "1e-5"}, Refuted, 10.39, 10.4),
        (ADEPT, {"epsilon": 1, "delta": "1e-6", "dim": 32, "C": 1}, Refuted, 4.395, math.sqrt(32)),
        pytest.param(
            *(ADEPT, {"epsilon": 1, "delta": "0.1168", "dim": 32, "C": 1}, Refuted, 1, math.sqrt(32)),
            marks=pytest.mark.long,
        ),
    ],
)
def test_verdicts_of_facts(text: str, claim: dict[str, object], word: type, low: float, high: float) -> None:
    verdict = check(text, **claim)
    assert type(verdict) is word
    assert verdict.epsilon.lower >= low * (1 - 1e-14)
    assert verdict.epsilon.upper <= high * (1 + 1e-14)


def test_the_classic_formula_is_judged_exactly_and_warned_of() -> None:
    eight, ten, half = (check(CLASSIC, epsilon=e, delta="1e-5") for e in (8, 10, "0.5"))
    assert eight.delta.upper == pytest.approx(7.97e-6, rel=1e-3)
    assert ten.delta.lower == pytest.approx(2.265e-5, rel=1e-3)
    assert any("0 < epsilon < 1" in w for w in eight.warnings)
    assert any("0 < epsilon < 1" in w for w in ten.warnings)
    assert half.warnings == ()
    # Noise that is not the classic formula's needs no warning.
    assert check("query(l2, 1) | gaussian(0.5)", epsilon=10, delta="1e-5").warnings == ()


def test_other_warnings() -> None:
    assert any("pure DP" in w for w in check("clip(l2, 1) | gaussian(5)", epsilon=1, dim=2).warnings)
    assert any(
        "delta is large" in w for w in check("clip(l1, 1) | laplace(5)", epsilon=1, delta="0.01", dim=2).warnings
    )
    assert check("clip(l1, 1) | laplace(5)", epsilon=1, delta="1e-6", dim=2).warnings == ()


def test_open_says_that_it_proves_nothing() -> None:
    verdict = check("clip(l2, 1) | laplace(2) | times(4)", epsilon="6.5", delta="1e-3", dim=4)
    assert isinstance(verdict, Open)
    assert "proves nothing" in verdict.reason
    assert verdict.epsilon.lower <= 6.5 <= verdict.epsilon.upper
    assert verdict.delta.lower <= 1e-3 <= verdict.delta.upper
    assert verdict.repairs == ()
    assert verdict.holds == ()


# ── Ties and strictness ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", ["0.1", "0.7", "1", "38.4", "1e-5", "123456.789"])
def test_a_tie_goes_to_the_claim(epsilon: str) -> None:
    assert check("query(l1, 3) | laplace(3/eps)", epsilon=epsilon).word == "proven"
    assert check("query(l2, 1) | laplace(sqrt(dim)/eps)", epsilon=epsilon, dim=3).word == "proven"


@pytest.mark.parametrize("less", ["1e-12", "1e-20", "1e-28"])
def test_hardly_too_little_noise_is_too_little(less: str) -> None:
    assert check(f"query(l1, 1) | laplace((1 - {less})/eps)", epsilon="0.7").word == "refuted"
    assert check(f"query(l1, 1) | laplace((1 + {less})/eps)", epsilon="0.7").word == "proven"


@settings(max_examples=repetitions(15, 30), derandomize=True, deadline=None)
@given(
    st.sampled_from(["clip(l1, 1)", "clip(l2, 1)", "clip(linf, 1)", "minmax", "normalise", "squash(tanh)"]),
    st.sampled_from(["laplace", "gaussian"]),
    st.floats(0.05, 50),
    st.floats(0.05, 50),
    st.sampled_from(["0", "1e-9", "1e-3"]),
    st.integers(1, 6),
)
def test_the_interval_agrees_with_the_word(
    bound: str, noise: str, scale: float, epsilon: float, delta: str, dim: int
) -> None:
    verdict = check(f"{bound} | {noise}({scale!r})", epsilon=epsilon, delta=delta, dim=dim)
    low, high = verdict.epsilon.lower, verdict.epsilon.upper
    assert low <= high
    if verdict.word == "proven":
        assert high <= epsilon * (1 + 1e-15)
    elif verdict.word == "refuted":
        assert low >= epsilon * (1 - 1e-15)
        assert verdict.witness is not None
    else:
        assert low <= epsilon <= high
    if delta != "0":
        inside = verdict.delta
        assert 0 <= inside.lower <= inside.upper <= 1
        assert {"proven": inside.upper <= float(delta), "refuted": inside.lower > float(delta)}.get(verdict.word, True)
    else:
        assert verdict.delta is None


# ── What holds instead ──────────────────────────────────────────────────────────────────────────


def test_what_holds() -> None:
    verdict = check(ADEPT, epsilon=1, delta="1e-5", dim=8, C=1)
    deltas = [delta for delta, _ in verdict.holds]
    assert deltas == [0, 1e-9, 1e-6, 1e-5, 1e-3]
    held = [interval.upper for _, interval in verdict.holds]
    assert held[0] == pytest.approx(math.sqrt(8), rel=1e-14)
    assert held == sorted(held, reverse=True)
    for delta, interval in verdict.holds[:: 1 if tiers.in_full else 2]:
        claim = {"epsilon": outward(interval.upper, 1, 6), "delta": repr(delta)}  # as it is shown
        assert check("clip(l2, 1) | laplace(2)", dim=8, **claim).word == "proven", delta


@pytest.mark.long
def test_slow_bounds_are_used_where_the_others_do_not_decide() -> None:
    """Tables of levels take seconds, and are narrower."""
    ball: Any = {"delta": "1e-3", "dim": 8}
    quick = check("clip(l2, 1) | laplace(2)", epsilon=1, **ball)
    tight = check("clip(l2, 1) | laplace(2)", epsilon=1, **ball, tight=True)
    assert quick.epsilon.upper <= 1.03 * quick.epsilon.lower
    assert quick.epsilon.lower == tight.epsilon.lower < tight.epsilon.upper < quick.epsilon.upper
    assert (Theorem.LEVELS in quick.theorems, Theorem.LEVELS in tight.theorems) == (False, True)
    between = (tight.epsilon.upper + quick.epsilon.upper) / 2
    decided = check("clip(l2, 1) | laplace(2)", epsilon=between, **ball)
    assert decided.proven
    assert Theorem.LEVELS in decided.theorems


@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-9"])
def test_a_claim_is_decided_quickly_and_close(delta: str) -> None:
    """Quick bounds decide with few pairs and cells, the others are there for whoever asks."""
    ball: Any = {"delta": delta, "dim": 500}
    quick = check("clip(l2, 1) | laplace(2)", epsilon=1, **ball)
    assert quick.refuted
    assert quick.epsilon.upper <= 1.03 * quick.epsilon.lower
    used = quick.exact.profile
    assert used is not None
    assert quick.profile is used.whole is not used
    for epsilon in (0.999 * quick.epsilon.lower, 1.001 * quick.epsilon.upper):
        assert check("clip(l2, 1) | laplace(2)", epsilon=epsilon, **ball).proven is (epsilon > quick.epsilon.upper)


def test_theorems_and_sources_are_named() -> None:
    proven = check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4)
    assert {Theorem.LAPLACE, Theorem.DIAMETERS, Theorem.ROUNDING} <= set(proven.theorems)
    assert proven.epsilon.upper_from in ("docs/proofs/laplace.md", "docs/proofs/worst-shift.md")
    ball = check("clip(l2, 1) | laplace(2)", epsilon=5, delta="1e-6", dim=32)
    assert Theorem.HOCKEY_STICK in ball.theorems
    assert {Theorem.SADDLEPOINT, Theorem.LEVELS} & set(ball.theorems)
    dropped = check("dropout(0.5) | encode | minmax | laplace(20)", epsilon=40, dim=768)
    assert Theorem.DROPOUT in dropped.theorems
    assert check("clip(l1, 1) | laplace(1) | laplace(2)", epsilon=1, dim=2).theorems[0] is Theorem.TWO_NOISES


# ── Ways to ask ─────────────────────────────────────────────────────────────────────────────────


def test_a_claim_a_pipeline_and_a_text_say_the_same() -> None:
    claim = Claim("mine", ADEPT, epsilon=1, dim=32, parameters={"C": 1})
    verdicts = [check(claim), check(claim.mechanism, epsilon=1), check(ADEPT, epsilon=1, dim=32, C=1)]
    assert {(v.word, v.epsilon.lower, v.epsilon.upper) for v in verdicts} == {
        ("refuted", verdicts[0].epsilon.lower, verdicts[0].epsilon.upper)
    }
    assert check(claim, epsilon=6).word == "refuted"  # the noise shrinks with the claim
    assert check(claim, dim=1).word == "proven"


def test_neighbours_can_be_given() -> None:
    for neighbours in ("add-remove-record", Neighbours("add-remove-record")):
        assert check("clip(l1, 1) | laplace(1)", epsilon=1, dim=3, neighbours=neighbours).word == "proven"
    assert check("clip(l1, 1) | laplace(1)", epsilon=1, dim=3, neighbours="replace-record").word == "refuted"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check("clip(l1, 1) | laplace(1)", dim=2), "epsilon"),
        (lambda: check("clip(l1, 1) | laplace(1)", epsilon=1), "dim=N"),
        (lambda: check("clip(l1, 1) | laplace(1)", epsilon=-1, dim=2), "epsilon"),
        (lambda: check("clip(l1, 1) | laplace(1)", epsilon=math.nan, dim=2), "NaN|number"),
        (lambda: check("clip(l1, 1) | laplace(1)", epsilon=math.inf, dim=2), "epsilon"),
        (lambda: check("clip(l1, 1) | laplace(1)", epsilon=1, delta=1, dim=2), "delta"),
        (lambda: check("clip(l1, 1) | laplace(1)", epsilon=1, delta=-0.1, dim=2), "delta"),
        (lambda: check("clip(l1, 1) | laplace(1)", epsilon=1, dim=2, neighbours="nobody"), "unknown neighbors"),
        (lambda: check("clip(l1, 1) | laplace(1)", epsilon=1, dim=2, C=1), "never used"),
        (lambda: check(parse("clip(l1, 1) | laplace(1)", 2), epsilon=1, dim=3), "dimension"),
        (lambda: check(parse("clip(l1, 1) | laplace(1)", 2), epsilon=1, C=3), "parameters"),
        (lambda: check(parse("clip(l1, 1) | laplace(1)", 2)), "epsilon"),
        (lambda: check(Claim("x", ADEPT, 1, dim=2, parameters={"C": 1}), D=3), "no parameter D"),
        (lambda: check(Claim("x", ADEPT, 1, dim=2, parameters={"C": 1}), self=3), "no parameter self"),
        (lambda: check(ADEPT, epsilon=1, dim=2, C=1, parameters={"C": 1}), "C is given twice: in parameters and as"),
        (lambda: check("adept", C=1, parameters={"C": 1}), "C is given twice: in parameters and as"),
        (lambda: check(ADEPT, epsilon=1, dim=2, parameters=[("C", 1)]), "parameters must be a mapping"),
        (lambda: check(ADEPT, epsilon=1, dim=2, parameters={3: 3}), "parameters must be a mapping"),
        (lambda: check(ADEPT, eps=1, dim=2, C=1), "eps is not a parameter: pass it as epsilon=VALUE"),
        (lambda: check(ADEPT, epsilon=1, parameters={"C": 1, "dim": 2}), "dim is not a parameter"),
        (lambda: check("adept", parameters={"dim": 2}), "dim is not a parameter: pass it as dim=VALUE"),
        (lambda: check(ADEPT, epsilon=1, dim=2), r"unknown name 'C'.* pass parameters=\{'C': VALUE\}"),
        (lambda: check(ADEPT, dim=2, C=1), r"check\(\.\.\., epsilon=1\)$"),
        (lambda: check("adpet"), r"claimed epsilon.*; did you mean the claim 'adept'\?"),
        (lambda: check("adpet", epsilon=1), r"unknown stage 'adpet'.*; did you mean the claim 'adept'\?\n  adpet\n"),
        (lambda: check("nowhere.toml"), "cannot read nowhere.toml"),
        (lambda: check(lambda x: x, [(0, 1)], epsilon=1, parameters={"C": 1}), "has parameters of its own"),
    ],
)
def test_refused(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    "name", ["device", "runs", "people", "pairs", "seed", "parameters", "subject", "neighbours", "C"]
)
def test_a_parameter_may_have_any_name(name: str) -> None:
    text = f"clip(l2, {name}) | laplace(2*{name}/eps)"
    verdict = check(text, epsilon=1, dim=32, parameters={name: 3})
    assert verdict.parameters == {name: 3, "dim": 32}
    assert verdict.epsilon.lower == pytest.approx(math.sqrt(32), rel=1e-14)
    claim = Claim("mine", text, 1, dim=32, parameters={name: 3})
    assert check(claim, parameters={name: 5}).parameters[name] == 5
    with pytest.raises(InputError, match="given as parameters, but never used"):
        check("clip(l1, 1) | laplace(2)", epsilon=1, dim=2, parameters={name: 1})


def test_a_published_claim_by_its_name(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from dpassay import claims

    assert check("adept").to_dict() == check(claims["adept"]).to_dict()
    assert check("adept", dim=1024, parameters={"C": 2}).epsilon.lower == pytest.approx(32, rel=1e-14)  # √1024
    file = tmp_path / "mine.toml"
    file.write_text('pipeline = "query(l1, 1) | laplace(1/eps)"\nepsilon = 2\n')
    assert check(str(file)).proven


def test_the_exact_loss_of_declared_distributions_is_kept() -> None:
    import numpy as np

    from dpassay.pipeline.distributions import Laplace, Shifted

    class Noisy:
        def sample(self, x, n, rng):  # type: ignore[no-untyped-def]
            return x + rng.laplace(size=(n, 1))

        def distribution(self, x):  # type: ignore[no-untyped-def]
            return Shifted(Laplace(1), np.array([float(x)]))

    for epsilon in ("0.5", "2"):
        loss = check(Noisy(), [(0.0, 1.0)], epsilon=epsilon, runs=2_000).loss
        assert loss.mean().lower == pytest.approx(math.exp(-1), rel=1e-12)  # a − 1 + e^(−a) at a = 1


def test_zero_epsilon() -> None:
    assert check("category(2) | flip(1/2)", epsilon=0).word == "proven"
    assert check("category(2) | flip(0.51)", epsilon=0).word == "refuted"
    assert check("minmax | laplace(1)", epsilon=0, dim=1).word == "proven"
    assert check("query(l1, 1) | laplace(1)", epsilon=0, delta="0.4").word == "proven"  # 1 − e^(−1/2) = 0.3935
    assert check("query(l1, 1) | laplace(1)", epsilon=0, delta="0.39").word == "refuted"


def test_only_a_bare_word_is_taken_for_the_name_of_a_claim():
    with pytest.raises(InputError) as caught:
        check("laplace(1/0)", epsilon=1, dim=4)
    assert "did you mean" not in str(caught.value)
    with pytest.raises(InputError, match="did you mean the claim 'adept'"):
        check("adep", epsilon=1, dim=4)


@pytest.mark.parametrize("delta", ["1.0e-330", "1.0e-400"])
@pytest.mark.parametrize("text", ["query(l1, 1) | laplace(1)", "query(l2, 1) | gaussian(1)"])
def test_a_delta_below_all_doubles_is_named_in_the_reason(text: str, delta: str) -> None:
    with pytest.raises(InputError, match=rf"delta must be 0 \(pure DP\) or at least 1e-300, got {delta}"):
        check(text, epsilon=1, delta=delta)
    with pytest.raises(InputError, match=rf"at least 1e-300, got {delta}"):
        dpassay.trace(lambda x, rng: x + rng.laplace(), [0.0, 1.0], epsilon=1, delta=delta)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: check("clip(l2, 1) | laplace(2)", epsilon=1, dim=3, neighbors="any"), "did you mean 'neighbours'"),
        (lambda: audit(lambda x, rng: x, [(0.0, 1.0)], epsilon=1, run=100), "did you mean 'runs'"),
        (lambda: dpassay.trace(lambda x, rng: x, [0.0, 1.0], epsilon=1, delt=0.1), "did you mean 'delta'"),
    ],
)
def test_a_misspelled_option_is_answered_with_the_nearest(call, said):
    with pytest.raises(InputError, match=f"unknown option .*; {said}"):
        call()


def test_a_parameter_may_have_nearly_an_options_name():
    assert check("clip(l2, run) | laplace(2*run)", epsilon=1, dim=1, run=3).proven


def test_a_list_of_pairs_means_pairs_to_a_trace_too():
    result = dpassay.trace(lambda x, rng: x + rng.laplace(scale=0.1), [(0.0, 1.0)], epsilon=1)
    assert (result.pair, result.verdict.word) == ((0.0, 1.0), "refuted")


def test_verdicts_show_their_parts_as_people_read_them():
    assert repr(check("adept").guarantee) == "PureDP(1)"
    shown = str(check("adept").witness)
    assert shown.startswith("(0.176777 × 32) against (-0.176777 × 32), just before the noise\nEvent: ")  # 1/√32
    assert str(check("adept").repairs[1]).startswith("encode | clip(l2, 1) | radial(l2, 2) | decode  (1-DP, standard")


def test_only_public_names_are_listed():
    assert dir(dpassay) == sorted(dpassay.__all__)
