"""Counts that are clipped in l2 before Laplace noise: docs/proofs/diameters.md, point 20."""

import itertools
import math

import pytest

import dpassay
from dpassay.core.numbers import middle, number, real
from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import number as exact
from dpassay.evidence.verifier.regions.clipped_counts import largest_clipped_step
from dpassay.pipeline.regions import clipped_step
from forging import claim, sealed, upper

KNOWN = [  # at radius 3
    (1, 1.0),
    (2, 3 - 6 / math.sqrt(10)),
    (3, 3 - math.sqrt(3)),
    (5, 15 / math.sqrt(11) - 12 / math.sqrt(14)),
    (32, 7 - 3 * math.sqrt(3)),
    (10**7, 7 - 3 * math.sqrt(3)),
]


def clipped(vector: tuple[int, ...], radius: float) -> list[float]:
    length = math.sqrt(sum(v * v for v in vector))
    return [v * min(1.0, radius / length) if length else 0.0 for v in vector]


def by_enumeration(dim: int, radius: float) -> float:
    """The largest l1 distance over all integer vectors, negative ones too, of a cube that is large enough."""
    far, best = math.ceil(radius * (1 + math.sqrt(dim)) / (2 * min(1.0, radius))) + 1, 0.0
    for others in itertools.combinations_with_replacement(range(far + 1), dim - 1):
        for own in range(-far, far + 1):
            x, y = clipped((own, *others), radius), clipped((own + 1, *others), radius)
            best = max(best, sum(abs(u - v) for u, v in zip(x, y, strict=True)))
    return best


@pytest.mark.parametrize(("dim", "distance"), KNOWN)
def test_closed_forms(dim: int, distance: float) -> None:
    step = clipped_step(dim, number(3))
    assert step is not None
    assert middle(step.distance) == pytest.approx(distance, rel=1e-14)
    assert step.distance.delta < 1e-40
    checked = largest_clipped_step(dim, exact(3))
    assert checked is not None
    assert float(checked.b) == pytest.approx(distance, rel=1e-14)


@pytest.mark.parametrize(
    ("dim", "radius"),
    [(1, "0.5"), (2, "0.7"), (2, "4.7"), (2, "10"), (3, "1"), (3, "2.5"), (3, "4.3"), (4, "0.3"), (4, "2.2"), (5, "2")],
)
def test_enumeration(dim: int, radius: str) -> None:
    """Prover and verifier find what all vectors of a cube show, and the pair has that distance."""
    largest = by_enumeration(dim, float(radius))
    step, checked = clipped_step(dim, number(radius)), largest_clipped_step(dim, exact(radius))
    assert step is not None
    assert checked is not None
    x, y = ([round(value) for value in side] for side in (step.pair.first, step.pair.second))
    assert sum(abs(u - v) for u, v in zip(x, y, strict=True)) == 1
    moved = zip(clipped(tuple(x), float(radius)), clipped(tuple(y), float(radius)), strict=True)
    assert sum(abs(u - v) for u, v in moved) == pytest.approx(largest, rel=1e-12)
    assert middle(step.distance) == pytest.approx(largest, rel=1e-12)
    assert float(checked.b) == pytest.approx(largest, rel=1e-12)


def test_too_many() -> None:
    """Then nothing is claimed; nor for a radius that is not known well."""
    assert clipped_step(2, number(5000)) is None
    assert largest_clipped_step(2, exact(5000)) is None
    assert clipped_step(2, real(["3", "3.0001"])) is None


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(("dim", "distance"), KNOWN[1:5])
def test_both_sides_of_the_loss(norm: str, dim: int, distance: float) -> None:
    """A claim above the largest distance is proven and one below it refuted, and the verifier agrees."""
    text = f"counts({norm}, 1) | clip(l2, 3) | laplace(2)"
    for claimed, verdict in ((distance / 2 + 1e-9, "proven"), (distance / 2 - 1e-9, "refuted")):
        found = dpassay.check(text, epsilon=claimed, dim=dim)
        assert dpassay.verify(dpassay.certify(found)).verdict == verdict


def test_several_steps() -> None:
    """Two counts more: at most twice as far."""
    found = dpassay.check("counts(l1, 2) | clip(l2, 3) | laplace(1)", epsilon=2 * (3 - 3**0.5) + 1e-9, dim=3)
    assert dpassay.verify(dpassay.certify(found)).verdict == "proven"


@pytest.mark.parametrize(
    "text",
    [
        "query(l1, 1) | clip(l2, 3) | laplace(1)",
        "counts(linf, 1) | clip(l2, 3) | laplace(1)",
        "counts(l1, 1) | clip(l2, 3) | clip(l2, 2.9) | laplace(1)",
    ],
)
def test_elsewhere_it_does_not_hold(text: str) -> None:
    """Real answers, and counts that all move, go farther; what a second clip does is not known."""
    assert not isinstance(dpassay.check(text, epsilon=3 - 3**0.5, dim=3), dpassay.Proven)


@pytest.mark.parametrize(("stated", "accepted"), [("1.2679491925", True), ("1.2679491924", False)])
def test_forged_upper_end(stated: str, accepted: bool) -> None:
    """A certificate that states less than the largest distance is refused."""
    claimed = claim("counts(l1, 1) | clip(l2, 3) | laplace(1)", stated, dim=3, neighbours="query")
    forged = sealed("proven", claimed, upper("laplace", 2, stated))
    if accepted:
        assert dpassay.verify(forged).verdict == "proven"
    else:
        with pytest.raises(CertificateError):
            dpassay.verify(forged)
