"""The statement beside a model says what `check` proves, and nothing that is not so."""

import json
import shlex

import pytest

import dpassay
from dpassay.text.corpora.flights import flights, known_words
from dpassay.training.federated import RoundPlan
from dpassay.training.run import train
from dpassay.training.settings import Settings


def trained(folder, privacy, **more):
    settings = Settings(privacy, plan=RoundPlan(rounds=3, batch=2), embedding=3, hidden=3, rate=0.3, **more)
    found = train(flights(80), folder, settings, vocabulary=known_words())
    return found.statement, (folder / "statement.md").read_text()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("privacy", ["user", "entity", "user-entity", "example"])
def test_the_stated_epsilon_is_that_of_check(tmp_path, privacy):
    stated, text = trained(tmp_path, privacy, epsilon=3.0)
    made, guarantee = stated["mechanism"], stated["guarantee"]
    verdict = dpassay.check(made["pipeline"], epsilon=3, delta=1e-5, neighbours="add-remove-record", dim=1)
    assert verdict.proven
    assert guarantee["epsilon"] == {"lower": verdict.epsilon.lower, "upper": verdict.epsilon.upper}
    assert guarantee["epsilon"]["upper"] <= 3
    assert guarantee["epsilon"] == guarantee["when_finished"]
    assert json.loads((tmp_path / "statement.json").read_text()) == stated
    assert ("docs/proofs/user-entity.md" in stated["theorems"]) == (privacy == "user-entity")
    (line,) = [line for line in text.splitlines() if line.startswith("    dpassay check")]
    options = dict(zip(shlex.split(line)[2::2], shlex.split(line)[3::2], strict=True))
    assert options["--pipeline"] == made["pipeline"]
    assert float(options["--epsilon"]) >= guarantee["epsilon"]["upper"]


def test_the_pipeline_has_the_numbers_of_the_run(tmp_path):
    stated, _ = trained(tmp_path, "user", noise_multiplier=1.5, clip=0.4)
    assert stated["mechanism"]["pipeline"] == f"poisson(0.3) | clip(l2, 0.4) | gaussian({1.5 * 0.4!r}) | times(3)"


def test_user_entity_states_all_its_parts(tmp_path):
    stated, text = trained(tmp_path, "user-entity", noise_multiplier=1.0, clip=1.0, cell_clip=0.1, most_users=7)
    made = stated["mechanism"]
    assert made["sensitivity"] == pytest.approx(2 + 6 * 0.1)
    assert made["rate"] == pytest.approx(1 - 0.7 * 0.5)
    assert made["users_at_most"] == 7
    assert "at most 2.6 apart" in text
    assert any("more than one entity were left out" in line for line in stated["assumptions"])


def test_without_privacy_it_promises_nothing(tmp_path):
    stated, text = trained(tmp_path, "none")
    assert stated["guarantee"] is None
    assert "None: it was trained without privacy." in text


@pytest.mark.parametrize(
    ("source", "words"),
    [("torch", "Whoever knows the seed can subtract the noise"), ("os", "256-bit key of the operating system's")],
)
def test_it_says_where_the_noise_comes_from(tmp_path, source, words):
    _, text = trained(tmp_path, "user", noise_multiplier=1.0, noise_source=source)
    assert words in text


def test_noise_from_a_known_seed_guarantees_nothing(tmp_path):
    stated, text = trained(tmp_path, "user", epsilon=3.0, noise_source="torch")
    assert stated["guarantee"] is None
    assert stated["none_because"].startswith("noise from a known seed")
    assert stated["otherwise"]["epsilon"]["upper"] <= 3
    assert "None: noise from a known seed" in text
    assert text.index("None: noise") < text.index("Without that, it would be:") < text.index("-differential privacy")


def test_the_statement_says_where_the_default_learning_rate_was_chosen(tmp_path):
    stated, text = trained(tmp_path, "user", epsilon=3.0)
    (line,) = [line for line in stated["assumptions"] if "without looking at this corpus" in line]
    assert "decided when training was stopped" in line  # --resume may continue to fewer rounds
    assert "flights and bookings, this does not hold" in line
    assert line in text
