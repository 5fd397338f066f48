"""The JSON Schema of claim files: what an editor accepts is what the reader accepts, as far as kinds of values go."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from dpassay.claims.claim import Claim
from dpassay.claims.schema import MEANING, claim_schema
from dpassay.claims.toml import ClaimFile, read_claim
from dpassay.cli import main as cli
from dpassay.core.neighbours import KINDS
from dpassay.errors import InputError

ROOT = Path(__file__).parents[3]
LEAST = 'pipeline = "query(l1, 1) | laplace(1/eps)"\nepsilon = 0.5\n'
SCHEMA = claim_schema()


def accepted(text):
    return jsonschema.Draft7Validator(SCHEMA).is_valid(tomllib.loads(text))


def test_the_published_schema_is_the_codes(monkeypatch, capfd):
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert json.loads((ROOT / "docs" / "claims.schema.json").read_text()) == SCHEMA
    monkeypatch.setattr("sys.argv", ["dpassay", "check", "--schema"])
    with pytest.raises(SystemExit):
        cli.main()
    assert json.loads(capfd.readouterr().out) == SCHEMA


def test_every_key_is_explained_to_editors_and_in_the_documentation():
    assert list(MEANING) == list(SCHEMA["properties"]) == list(ClaimFile.model_fields)
    table = (ROOT / "docs" / "own-claims.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    assert set(ClaimFile.model_fields) <= {key for row in rows for key in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize(
    "more",
    [
        "",
        "#:schema ./claims.schema.json\n",
        "delta = 1e-6\npeople = 1000\n",
        'delta = "1/n^2"\nparameters.n = 10\n',
        'caveats = ["per-word"]\nexpected = "proven"\n',
        'privacy_unit = "a user\'s day"\ndeployment_model = "federated"\n',
        'title = "T"\nsource = "S"\nbrief = "B"\nwhy = "W"\nname = "n"\n',
        *(f'neighbours = "{kind.replace("(n)", "(3)")}"\n' for kind in KINDS if kind in ("query", "group(n)")),
    ],
)
def test_what_the_reader_accepts_the_schema_accepts(tmp_path, more):
    text = LEAST + more
    file = tmp_path / "a.toml"
    file.write_text(text)
    assert isinstance(read_claim(file), Claim)
    assert accepted(text)


@pytest.mark.parametrize(
    "more",
    [
        "dims = 3\n",
        "dim = 0\n",
        "dim = 1.5\n",
        'dim = "3"\n',
        'expected = "maybe"\n',
        'neighbours = "cousins"\n',
        'neighbours = "words()"\n',
        'neighbours = "words(n)"\n',
        'caveats = ["per-letter"]\n',
        'metric = "l3"\n',
        "delta = true\n",
        'name = " "\n',
        'deployment_model = "Local"\n',
        "parameters.C = [1]\n",
    ],
)
def test_what_the_schema_refuses_the_reader_refuses(tmp_path, more):
    text = LEAST + more
    file = tmp_path / "a.toml"
    file.write_text(text)
    assert not accepted(text)
    with pytest.raises(InputError):
        read_claim(file)


@pytest.mark.parametrize("text", ["", "epsilon = 1\n", 'pipeline = "laplace(1)"\n'])
def test_what_every_claim_needs(text):
    assert not accepted(text)


@pytest.mark.parametrize("kind", KINDS)
def test_all_neighbours_are_known(kind):
    assert accepted(LEAST + f'neighbours = "{kind.replace("(n)", "(12)")}"\n')


def test_the_example_follows_it():
    text = (ROOT / "docs" / "examples" / "claim.toml").read_text()
    assert accepted(text)
    named = re.match(r"#:schema (\S+)", text)[1]
    assert (ROOT / "docs" / "examples" / named).resolve() == ROOT / "docs" / "claims.schema.json"


def test_unit_and_trust_are_kept_and_shown(tmp_path, monkeypatch, capfd):
    file = tmp_path / "a.toml"
    file.write_text(LEAST + 'privacy_unit = "a household"\ndeployment_model = "central"\n')
    assert (read_claim(file).privacy_unit, read_claim(file).deployment_model) == ("a household", "central")
    monkeypatch.setattr("sys.argv", ["dpassay", "show", str(file)])
    with pytest.raises(SystemExit):
        cli.main()
    out = capfd.readouterr().out
    assert "privacy unit: a household" in out
    assert "deployment model: central" in out
