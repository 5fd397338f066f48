"""Stories: the grid, what stands beside, the remedies, and claims that are tried in both ways."""

import json
import math
from dataclasses import fields

import pytest

from dpassay.claims.registry import REGISTRY, find
from dpassay.evidence.verdict import Refuted
from dpassay.report.claims.claim_report import ClaimReport, amount, points, try_out


@pytest.mark.parametrize("name", ["adept", "adept-unclipped", "adept-sqrt-n"])
def test_the_grid_follows_the_formula(name: str) -> None:
    factor = {"adept": lambda n: math.sqrt(n), "adept-unclipped": lambda n: n, "adept-sqrt-n": lambda n: 1.0}[name]
    story = ClaimReport(find(name))
    assert len(story.cells) == 9
    for cell in story.cells:
        assert cell.claimed == pytest.approx(float(cell.changes["epsilon"]))
        true = factor(cell.changes["dim"]) * cell.claimed
        assert cell.epsilon.lower == pytest.approx(true, rel=1e-9)
        assert cell.word == ("refuted" if factor(2) > 1 else "proven")


def test_the_grid_of_a_formula() -> None:
    cells = {(c.changes["f"], c.changes["h"]): c for c in ClaimReport(find("rappor")).cells}
    assert cells["0.75", 4].epsilon.lower == pytest.approx(8 * math.log(0.625 / 0.375), rel=1e-9)
    assert all(cell.word == "proven" for cell in cells.values())
    assert list(points(find("coin-flip"))) == [{}]


def test_the_weighted_bound_is_shown_beside() -> None:
    # FACTS §6: s times (2^(m+1) for the sign, 2^(i−1) for each integer bit, 2^−i for each fraction bit), 768 values.
    weights = 2**5 + sum(2 ** (i - 1) for i in range(1, 5)) + sum(2**-i for i in range(1, 6))
    for name in ("ome", "binary-symmetric", "latent-moue", "latent-uer"):
        ((label, value),) = ClaimReport(find(name)).beside
        assert "metric notion" in label
        assert value == pytest.approx(768 * weights / 7680, rel=1e-12)


def test_remedies_and_their_cost() -> None:
    remedies = {r.claim.name: r for r in ClaimReport(find("adept")(dim=64, epsilon=2, C=3)).remedies}
    assert remedies["adept-l1"].ratio == pytest.approx(1)
    assert remedies["adept-sqrt-n"].ratio == pytest.approx(8)
    noise = remedies["adept-sqrt-n"].noise
    assert noise is not None
    assert noise.size == pytest.approx(math.sqrt(2) * 2 * 3 * 8 / 2)
    assert all(r.claim.guarantee.epsilon == 2 for r in remedies.values())
    # Noise for all k elements in all T steps is k·T times as much, and keeps what was claimed.
    (training,) = ClaimReport(find("dpnr-training")(T=10, dim=20)).remedies
    assert training.ratio == pytest.approx(200)
    assert training.claim.guarantee.epsilon == 0.05


def test_amounts_of_noise() -> None:
    def size(name: str) -> float:
        found = amount(find(name).mechanism)
        assert found is not None
        return found.size

    assert size("laplace") == pytest.approx(math.sqrt(2))
    assert size("dptext-resampled") == pytest.approx(1)
    assert size("randomized-response") == pytest.approx(1 / (1 + math.e))
    assert size("sue") == pytest.approx(1 / (1 + math.exp(0.5)))
    assert amount(find("copy").mechanism) is None


def test_as_data() -> None:
    data = json.loads(json.dumps(ClaimReport(find("dptext-nan")).to_dict(), allow_nan=False))
    assert data["verdict"]["least_delta"] == pytest.approx(1 - (1 + math.exp(-1)) / 2)
    assert {cell["lower"] for cell in data["grid"]} == {"inf"}
    assert data["remedies"][0]["claim"] == "dptext-corrected"


def test_systems() -> None:
    assert ClaimReport(find("ome")).system is not None
    changed = find("ome")(L=3)
    assert ClaimReport(changed).system is None
    assert ClaimReport(changed, published=find("ome")).system is ClaimReport(find("ome")).system


def test_contradictions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpassay.report.claims import claim_report as story

    both = try_out(find("laplace"), runs=200)
    assert (both.agreement, both.contradictory) == ("yes", False)
    wrong = Refuted(**{field.name: getattr(both.sampled, field.name) for field in fields(both.sampled)})
    monkeypatch.setattr(story, "audit", lambda *_, **__: wrong)
    assert try_out(find("laplace"), runs=200).agreement == "NO"
    # What samples do not see contradicts nothing.
    monkeypatch.setattr(story, "audit", lambda *_, **__: both.sampled)
    unseen = try_out(find("adept"), runs=200)
    assert (unseen.agreement, unseen.contradictory, unseen.missed) == ("not seen", False, True)


def test_the_trials_are_small() -> None:
    for claim in REGISTRY.values():
        assert claim(**claim.trial.changes).mechanism.dim <= 8, claim.name
