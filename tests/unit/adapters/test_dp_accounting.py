"""dp-accounting's events: its accountants and closed formulas against the certified intervals."""

import math

import pytest

import dpassay

dp_accounting = pytest.importorskip("dp_accounting", reason="needs dp-accounting")
dp_event = pytest.importorskip("dp_accounting.dp_event", reason="needs dp-accounting")
rdp = pytest.importorskip("dp_accounting.rdp", reason="needs dp-accounting")


@pytest.mark.parametrize(
    ("event", "epsilon"),
    [
        (dp_event.LaplaceDpEvent(2.0), 0.5),
        (dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(4.0), 3), 0.75),
        (dp_event.ComposedDpEvent([dp_event.LaplaceDpEvent(4.0), dp_event.LaplaceDpEvent(4.0)]), 0.5),
        (dp_event.DiscreteLaplaceDpEvent(0.5, 2), 1.0),
        (dp_event.RandomizedResponseDpEvent(0.4, 4), math.log((0.6 + 0.1) / 0.1)),
        (dp_event.PoissonSampledDpEvent(0.25, dp_event.LaplaceDpEvent(1.0)), math.log(1 + 0.25 * (math.e - 1))),
    ],
)
def test_pure_epsilon_is_that_of_the_formula(event: object, epsilon: float) -> None:
    verdict = dpassay.check(event, epsilon=100)
    assert verdict.epsilon.lower == pytest.approx(epsilon, rel=1e-9)
    assert verdict.epsilon.upper == pytest.approx(epsilon, rel=1e-9)


def test_gaussian_noise_has_the_delta_of_the_analytic_formula() -> None:
    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    verdict = dpassay.check(dp_event.GaussianDpEvent(2.0), epsilon=1, delta=1e-2)
    assert verdict.delta.lower == pytest.approx(phi(0.25 - 2) - math.e * phi(-0.25 - 2), rel=1e-9)


def test_the_claim_is_what_the_librarys_accountant_states() -> None:
    step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))
    event = dp_event.SelfComposedDpEvent(step, 200)
    verdict = dpassay.check(event, delta=1e-5)
    assert not verdict.refuted
    assert verdict.guarantee.epsilon == pytest.approx(verdict.epsilon.upper, rel=2e-3)
    looser = rdp.RdpAccountant().compose(event).get_epsilon(1e-5)
    assert verdict.epsilon.upper < looser
    assert str(verdict.neighbours) == str(dpassay.Neighbours("add-remove-record"))


def test_an_event_without_a_claim_says_what_is_missing() -> None:
    with pytest.raises(
        dpassay.InputError, match=r"GaussianDpEvent states no epsilon of its own: use check\(\.\.\., del"
    ):
        dpassay.check(dp_event.GaussianDpEvent(1.0))


def test_events_that_are_no_pipeline_are_named() -> None:
    different = dp_event.ComposedDpEvent([dp_event.LaplaceDpEvent(4.0), dp_event.GaussianDpEvent(4.0)])
    with pytest.raises(dpassay.InputError, match=r"with dpassay\.compose"):
        dpassay.check(different, delta=1e-5)
    with pytest.raises(dpassay.InputError, match="cannot judge a SampledWithReplacementDpEvent"):
        dpassay.check(dp_event.SampledWithReplacementDpEvent(100, 10, dp_event.GaussianDpEvent(1.0)), delta=1e-5)


def test_an_event_is_audited_as_its_pipeline() -> None:
    assert dpassay.audit(dp_event.LaplaceDpEvent(1.0), epsilon=0.1, runs=8_000, until_refuted=True).refuted


GAUSSIAN = dp_event.GaussianDpEvent
BOTH = {"add-remove-record": "ADD_OR_REMOVE_ONE", "replace-record": "REPLACE_ONE"}


@pytest.mark.long(every=2)
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize(
    "event",
    [
        GAUSSIAN(2.0),
        dp_event.PoissonSampledDpEvent(0.1, GAUSSIAN(2.0)),
        dp_event.ComposedDpEvent([GAUSSIAN(2.0), dp_event.SelfComposedDpEvent(GAUSSIAN(4.0), 3)]),
    ],
    ids=["gaussian", "sampled", "different gaussians"],
)
def test_both_relations_agree_with_the_accountant(event: object, neighbours: str) -> None:
    relation = dp_accounting.NeighboringRelation[BOTH[neighbours]]
    stated = dp_accounting.pld.PLDAccountant(relation).compose(event).get_epsilon(1e-5)
    verdict = dpassay.check(event, delta=1e-5, neighbours=neighbours)
    assert verdict.guarantee.epsilon == stated
    assert verdict.epsilon.upper == pytest.approx(stated, rel=1e-4)
    assert verdict.source == f"stated by dp-accounting's PLDAccountant, {BOTH[neighbours]}"


def test_several_gaussians_are_one() -> None:
    """1/σ² add up: 1/4 + 3/16 = 7/16, which is Gaussian DP with μ = √7/4."""
    event = dp_event.ComposedDpEvent([GAUSSIAN(2.0), dp_event.SelfComposedDpEvent(GAUSSIAN(4.0), 3)])
    verdict = dpassay.check(event, guarantee=dpassay.GDP(1))
    assert verdict.mu.lower == pytest.approx(math.sqrt(7) / 4, rel=1e-12)


def test_a_sample_without_replacement_is_below_what_renyi_accounting_states() -> None:
    event = dp_event.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN(2.0))
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    stated = rdp.RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(1e-5)
    verdict = dpassay.check(event, delta=1e-5)
    assert (verdict.word, verdict.guarantee.epsilon) == ("proven", stated)
    assert verdict.source == "stated by dp-accounting's RdpAccountant, REPLACE_ONE"
    with pytest.raises(dpassay.InputError, match="is checked for the neighbors replace-record, got"):
        dpassay.check(event, delta=1e-5, neighbours="add-remove-record")


@pytest.mark.parametrize(("steps", "nodes"), [(8, 4), (5, 3), ([8, 20], 5), (1, 1)])
def test_a_tree_has_a_record_in_one_leaf_and_the_nodes_above(steps: int | list[int], nodes: int) -> None:
    """Gaussian noise of σ = 4 on `nodes` sums that move by 1: ρ is nodes/(2·16)."""
    event = dp_event.SingleEpochTreeAggregationDpEvent(4.0, steps)
    assert dpassay.check(event, guarantee=dpassay.ZCDP(1)).rho.upper == pytest.approx(nodes / 32, rel=1e-12)
    assert dpassay.check(event, delta=1e-5).proven  # by what the library's accountant of Rényi DP states


def test_what_is_not_private_has_no_finite_epsilon() -> None:
    event = dp_event.ComposedDpEvent([dp_event.LaplaceDpEvent(2.0), dp_event.NonPrivateDpEvent()])
    assert dpassay.check(event, epsilon=50, delta=0.5).epsilon.lower == math.inf
    with pytest.raises(dpassay.InputError, match="states epsilon inf at delta"):
        dpassay.check(event, delta=1e-5)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (dp_event.NoOpDpEvent(), "NoOpDpEvent as a pipeline; it releases nothing"),
        (dp_event.UnsupportedDpEvent(), "UnsupportedDpEvent as a pipeline; it is a placeholder"),
        (dp_event.ZCDpEvent(0.5), "ZCDpEvent as a pipeline; it is a guarantee"),
        (dp_event.RepeatAndSelectDpEvent(GAUSSIAN(4.0), 2, 1), "RepeatAndSelectDpEvent as a pipeline; it knows"),
        (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.9, 0.1]), "a MixtureOfGaussiansDpEvent as"),
        (dp_event.PoissonSampledDpEvent(0.1, dp_event.NoOpDpEvent()), "a PoissonSampledDpEvent as"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_other_event_is_refused_by_name(event: object, said: str) -> None:
    with pytest.raises(dpassay.InputError, match=said):
        dpassay.check(event, delta=1e-5)


def test_a_relation_that_the_library_does_not_know_is_refused() -> None:
    with pytest.raises(dpassay.InputError, match="LaplaceDpEvent is checked for the neighbors add-remove-record"):
        dpassay.check(dp_event.LaplaceDpEvent(2.0), delta=1e-5, neighbours="replace-record")


def test_an_event_of_a_class_of_ones_own_is_not_read() -> None:
    class GaussianDpEvent(dp_event.GaussianDpEvent):  # type: ignore[misc, name-defined]
        """It may describe anything."""

    with pytest.raises(dpassay.InputError, match="GaussianDpEvent is not one of dp-accounting's own events"):
        dpassay.check(GaussianDpEvent(1.0), delta=1e-5)
    (line,) = dpassay.check(GAUSSIAN(1.0), delta=1e-5).warnings
    assert "no code of it was run" in line
