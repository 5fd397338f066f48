"""dp-accounting's events: its accountants and closed formulas against the certified intervals."""

import math

import pytest

import dpassay

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
        dpassay.InputError, match=r"GaussianDpEvent states no epsilon by itself: say check\(\.\.\., del"
    ):
        dpassay.check(dp_event.GaussianDpEvent(1.0))


def test_events_that_are_no_pipeline_are_named() -> None:
    different = dp_event.ComposedDpEvent([dp_event.LaplaceDpEvent(4.0), dp_event.GaussianDpEvent(4.0)])
    with pytest.raises(dpassay.InputError, match=r"dpassay\.compose adds up"):
        dpassay.check(different, delta=1e-5)
    with pytest.raises(dpassay.InputError, match="cannot judge a SampledWithReplacementDpEvent"):
        dpassay.check(dp_event.SampledWithReplacementDpEvent(100, 10, dp_event.GaussianDpEvent(1.0)), delta=1e-5)


def test_an_event_is_audited_as_its_pipeline() -> None:
    assert dpassay.audit(dp_event.LaplaceDpEvent(1.0), epsilon=0.1, runs=8_000, until_refuted=True).refuted
