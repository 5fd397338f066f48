"""The clients of pure-ldp and multi-freq-ldpy: their claim against closed formulas."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.adapters import adapted
from recorded import recorded

RNG = np.random.default_rng(0)


def direct(index: int, size: int, kept: float) -> int:
    return index if RNG.random() < kept else int((index + RNG.integers(1, size)) % size)


def unary(index: int, size: int, kept: float, wrong: float) -> Any:
    return (RNG.random(size) < np.where(np.arange(size) == index, kept, wrong)).astype(int)


def histogram(index: int, size: int, epsilon: float) -> Any:
    return np.eye(size)[index] + RNG.laplace(scale=2 / epsilon, size=size)


PRIVATISE: dict[str, Any] = {
    "DEClient": lambda one, x: direct(one.index_mapper(x), one.d, one.p),
    "UEClient": lambda one, x: unary(one.index_mapper(x), one.d, one.p, one.q),
    "HEClient": lambda one, x: histogram(one.index_mapper(x), one.d, one.epsilon),
}


def client(kind: str, **attributes: Any) -> Any:
    plain = {"epsilon": 1.0, "d": 4, "index_mapper": lambda x: x - 1}
    made = recorded("pure_ldp.frequency_oracles.some", f"FreqOracleClient {kind}", **{**plain, **attributes})
    if "privatise" not in attributes:
        made.privatise = PRIVATISE.get(kind, lambda one, x: x).__get__(made)
    return made


ROOT = math.exp(0.5)
RIGHT = [
    client("DEClient", p=math.e / (math.e + 3), q=1 / (math.e + 3)),
    client("UEClient", p=ROOT / (ROOT + 1), q=1 / (ROOT + 1), use_oue=False),
    client("UEClient", p=0.5, q=1 / (math.e + 1), use_oue=True),
    client("HEClient"),
]


@pytest.mark.parametrize("right", RIGHT, ids=lambda one: type(one).__name__)
def test_a_right_client_loses_exactly_its_epsilon(right: Any) -> None:
    verdict = dpassay.check(right)
    assert verdict.proven
    assert verdict.epsilon.lower == pytest.approx(1, rel=1e-9)
    assert adapted(right).pairs == ((1, 2),)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wrong", "epsilon"),
    [
        (client("DEClient", p=0.7, q=0.1), math.log(7)),
        (client("UEClient", p=0.5, q=0.1, use_oue=True), math.log(0.5 / 0.1 * 0.9 / 0.5)),
    ],
    ids=["DE", "OUE"],
)
def test_the_probabilities_are_those_that_the_client_holds(wrong: Any, epsilon: float) -> None:
    verdict = dpassay.check(wrong)
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("optimal", "epsilon"), [(False, "1.680"), (True, "1.551")])
def test_unary_encoding_before_it_was_mended(monkeypatch: pytest.MonkeyPatch, optimal: bool, epsilon: str) -> None:
    """A true bit is 1 with probability p + (1 − p)q: ln of that times (1 − q) over q times its complement."""
    monkeypatch.setattr("dpassay.adapters.pure_ldp.version", lambda name: "1.1.2")
    p, q = (0.5, 1 / (math.e + 1)) if optimal else (ROOT / (ROOT + 1), 1 / (ROOT + 1))
    one = p + (1 - p) * q
    old = client("UEClient", p=p, q=q, use_oue=optimal, privatise=lambda x: unary(x - 1, 4, one, q))
    verdict = dpassay.check(old)
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(math.log(one / q * (1 - q) / (1 - one)), rel=1e-9)
    assert f"{verdict.epsilon.lower:.3f}" == epsilon


def test_a_client_without_a_formula_is_run() -> None:
    leaky = client("LHClient", g=3, p=0.5, q=0.25)  # it puts out what comes in
    with pytest.raises(AssertionError, match="the claim of 1-DP"):
        dpassay.assert_dp(leaky)
    with pytest.raises(dpassay.InputError, match="RAPPORClient has no epsilon"):
        dpassay.check(client("RAPPORClient", epsilon=None))


def function(name: str) -> Any:
    def flipped(input_data: int, k: int, epsilon: float, optimal: bool = True) -> Any:
        grown, root = math.exp(epsilon), math.exp(epsilon / 2)
        if name == "GRR_Client":
            return direct(input_data, k, grown / (grown + k - 1))
        if name == "UE_Client":
            return unary(input_data, k, *((0.5, 1 / (grown + 1)) if optimal else (root / (root + 1), 1 / (root + 1))))
        return histogram(input_data, k, epsilon) if name == "HE_Client" else input_data

    flipped.__name__, flipped.__module__ = name, "multi_freq_ldpy.pure_frequency_oracles.some"
    return flipped


@pytest.mark.parametrize(
    "right",
    [
        partial(function("GRR_Client"), k=5, epsilon=0.8),
        partial(function("UE_Client"), k=5, epsilon=0.8),
        partial(function("UE_Client"), k=5, epsilon=0.8, optimal=False),
        partial(function("HE_Client"), k=5, epsilon=0.8),
    ],
    ids=["GRR", "OUE", "SUE", "HE"],
)
def test_a_function_with_its_arguments_loses_exactly_its_epsilon(right: Any) -> None:
    verdict = dpassay.check(right)
    assert verdict.proven
    assert verdict.epsilon.lower == pytest.approx(0.8, rel=1e-9)


def test_a_function_is_run_with_its_arguments() -> None:
    assert dpassay.audit(partial(function("SS_Client"), k=5, epsilon=0.8), runs=2_000, until_refuted=True).refuted


def test_a_client_for_repeated_reports_states_the_epsilon_of_one() -> None:
    client = adapted(partial(function("L_GRR_Client"), k=5, eps_perm=2.0, eps_1=0.8))
    assert client is not None
    assert client.guarantee == dpassay.PureDP("0.8")
    assert client.pipeline is None


def test_a_function_without_its_arguments_says_which_it_needs() -> None:
    with pytest.raises(dpassay.InputError, match=r"functools\.partial\(GRR_Client, k=4, epsilon=1\.0\)"):
        dpassay.check(function("GRR_Client"))


def test_the_libraries_own_clients() -> None:
    grr = pytest.importorskip(
        "multi_freq_ldpy.pure_frequency_oracles.GRR", reason="needs multi-freq-ldpy", exc_type=ImportError
    )
    assert dpassay.check(partial(grr.GRR_Client, k=4, epsilon=1.0), runs=2_000).proven
    direct = pytest.importorskip(
        "pure_ldp.frequency_oracles.direct_encoding", reason="needs pure-ldp", exc_type=ImportError
    )
    assert dpassay.check(direct.DEClient(np.float64(1.0), 4), runs=2_000).proven


@pytest.mark.parametrize(
    ("kind", "privatise"),
    [
        ("DEClient", lambda x: x - 1),
        ("DEClient", lambda x: direct(x - 1, 4, 0.7)),
        ("DEClient", lambda x: direct(x - 1, 5, math.e / (math.e + 3))),
        ("UEClient", lambda x: unary(x - 1, 4, 0.5, 0.1)),
        ("UEClient", lambda x: np.roll(unary(x - 1, 4, 0.5, 1 / (math.e + 1)), 1)),
        ("UEClient", lambda x: unary(x - 1, 3, 0.5, 1 / (math.e + 1))),
        ("HEClient", lambda x: np.eye(4)[x - 1] + RNG.laplace(scale=2)),
        ("HEClient", lambda x: np.eye(4)[x - 1] + RNG.laplace(scale=1, size=4)),
    ],
)
def test_a_client_that_does_something_else_is_not_proven(kind: str, privatise: Any) -> None:
    held = {"DEClient": {"p": math.e / (math.e + 3), "q": 1 / (math.e + 3)}}
    parts = held.get(kind, {"p": 0.5, "q": 1 / (math.e + 1), "use_oue": True})
    assert dpassay.check(client(kind, **parts)).proven
    verdict = dpassay.check(client(kind, **parts, privatise=privatise))
    assert verdict.open
    assert "but running it does not confirm that" in verdict.reason


def test_a_client_of_named_items_is_run_on_the_items_given() -> None:
    parts = {"p": math.e / (math.e + 3), "q": 1 / (math.e + 3), "index_mapper": "abcd".index}
    alone = dpassay.check(client("DEClient", **parts))
    assert alone.open
    assert "No input is known on which the object could be run: give some with pairs" in alone.reason
    assert dpassay.check(client("DEClient", **parts), [("a", "c")]).proven
    assert "it raised ValueError" in dpassay.check(client("DEClient", **parts), [("a", "q")]).reason


def test_a_function_that_keeps_its_input_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    made = partial(function("GRR_Client"), k=5, epsilon=0.8)
    monkeypatch.setitem(globals(), "direct", lambda index, size, kept: index)
    assert dpassay.check(made).open
