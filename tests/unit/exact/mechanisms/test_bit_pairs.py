"""Short bit strings with noise that treats ones, zeros and parities differently, against all pairs of strings."""

import itertools
import math

import pytest

from dpassay.api import check
from dpassay.core.guarantee import RenyiDP
from dpassay.core.numbers import number
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import verify
from dpassay.exact.analysis import analyse
from dpassay.exact.mechanisms.bit_pairs import pair_of, worst_kinds
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Bits, Sparse

String = tuple[int, ...]


def strings(bits: int, ones: int | None = None) -> list[String]:
    every = list(itertools.product((0, 1), repeat=bits))
    return every if ones is None else [string for string in every if 1 <= sum(string) <= ones]


def laws(noise: tuple[float, float, float], x: String, y: String) -> list[tuple[float, float]]:
    """The probabilities of each output under both strings, bit by bit."""
    found = [(1.0, 1.0)]
    for i, (a, b) in enumerate(zip(x, y, strict=True)):
        p, q = (noise[i % 2] if bit else noise[2] for bit in (a, b))
        if a != b:
            found = [(one * s, other * t) for one, other in found for s, t in ((p, q), (1 - p, 1 - q))]
    return found


def worst(noise: tuple[float, float, float], among: list[String], epsilon: float) -> float:
    rise = math.exp(epsilon)
    pairs = itertools.permutations(among, 2)
    return max(sum(max(0.0, p - rise * q) for p, q in laws(noise, x, y)) for x, y in pairs)


CASES = [
    ("bloom(2, 1)", 1, (0.5, 0.5, 0.2), strings(2, 1)),
    ("bloom(3, 2)", 1, (0.9, 0.6, 0.3), strings(3, 2)),
    ("bloom(3, 3)", 1, (0.5, 0.8, 0.1), strings(3, 3)),
    ("bloom(4, 2)", 1, (0.5, 0.8, 0.1), strings(4, 2)),
    ("bloom(6, 2)", 1, (0.5, 0.5, 0.2), strings(6, 2)),
    ("binary(1, 1)", 1, (0.9, 0.6, 0.3), strings(3)),
    ("binary(1, 1)", 2, (0.5, 0.5, 0.2), strings(6)),
    ("binary(0, 0)", 4, (0.3, 0.9, 0.6), strings(4)),
]


@pytest.mark.parametrize(("first", "dim", "noise", "among"), CASES)
def test_the_worst_of_all_pairs(first: str, dim: int, noise: tuple[float, float, float], among: list[String]) -> None:
    pipeline = parse(f"{first} | bits({noise[0]}, {noise[1]}, {noise[2]})", dim)
    profile = analyse(pipeline, pipeline.neighbours)
    for epsilon in (0.05, 0.7, 1.5, 3.0):
        truth, found = worst(noise, among, epsilon), profile.delta(number(epsilon))
        assert float(found.a) <= truth + 1e-12
        assert float(found.b) >= truth - 1e-12
        assert float(found.b - found.a) < 1e-12


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("first", "dim", "noise", "among"), CASES[1:5:3])
def test_certificates(first: str, dim: int, noise: tuple[float, float, float], among: list[String]) -> None:
    text, truth = f"{first} | bits({noise[0]}, {noise[1]}, {noise[2]})", worst(noise, among, 0.7)
    proven = check(text, epsilon=0.7, delta=truth * (1 + 1e-7), dim=dim)
    assert proven.proven
    assert verify(certify(proven)).verdict == "proven"
    refuted = check(text, epsilon=0.7, delta=truth * (1 - 1e-7), dim=dim)
    assert refuted.refuted
    assert verify(certify(refuted)).verdict == "refuted"


@pytest.mark.parametrize("region", [Bits(1), Bits(5), Sparse(2, 2), Sparse(5, 1), Sparse(6, 4), Sparse(8, 3)])
def test_pairs_of_each_kind_lie_in_the_region(region: Bits | Sparse) -> None:
    for kind in worst_kinds(region):
        pair = pair_of(region, kind)
        assert region.contains(pair.first)
        assert region.contains(pair.second)
        falls = [i for i in range(region.dim) if pair.first[i] > pair.second[i]]
        rises = [i for i in range(region.dim) if pair.first[i] < pair.second[i]]
        counts = [sum(i % 2 == parity for i in places) for parity in (0, 1) for places in (falls, rises)]
        assert tuple(counts) == tuple(kind)


def test_kinds_of_longer_strings_are_not_listed() -> None:
    assert not worst_kinds(Bits(9))
    assert not worst_kinds(Sparse(40, 2))


def test_several_releases_of_one_string() -> None:
    """Two releases are as one of twice the bits, for each pair of strings."""
    noise, among = (0.5, 0.5, 0.2), strings(2, 1)
    truth = worst(noise, [string * 2 for string in among], 0.7)
    found = check("bloom(2, 1) | bits(0.5, 0.5, 0.2) | times(2)", epsilon=0.7, delta=0.5).delta
    assert found is not None
    assert found.lower <= truth + 1e-12
    assert found.upper >= truth - 1e-12


def test_renyi_divergence_of_short_strings() -> None:
    truth = max(
        math.log(sum(p**3 * q**-2 for p, q in laws((0.5, 0.5, 0.2), x, y))) / 2
        for x, y in itertools.permutations(strings(3, 2), 2)
    )
    value = check("bloom(3, 2) | bits(0.5, 0.5, 0.2)", guarantee=RenyiDP(3, 1)).value
    assert value.lower <= truth + 1e-12
    assert value.upper >= truth - 1e-12


def test_number_of_the_page() -> None:
    assert worst((0.5, 0.5, 0.2), strings(4, 2), 1.5) == pytest.approx(0.115183109, abs=1e-9)
