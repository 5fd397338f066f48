import math

import pytest

from dpassay import ZCDP, check
from dpassay.errors import InputError
from dpassay.packages.environment import Environment, program
from dpassay.packages.judging import ALPHA, PackageVerdict, current, judge, recorded, write_recorded
from dpassay.packages.record import FOLDER, Record, read_record, read_records

RECORDS = read_records()
GIVEN = {
    "name": "coin",
    "package": "coin",
    "version": "1.0",
    "mechanism": "toss",
    "epsilon": 1,
    "pair": [0, 1],
    "neighbours": "any two bits",
    "source": "its README",
    "why": "it shows the bit",
}
NOWHERE = Environment(FOLDER / "nowhere")


def judged(**more) -> PackageVerdict:
    return judge(Record(**{**GIVEN, **more}), NOWHERE)


def test_there_are_thirty_mechanisms_of_eight_packages_right_and_wrong():
    assert len(RECORDS) >= 30
    assert len({record.package.lower() for record in RECORDS.values()}) >= 8
    words = [found.word for _, found in current(RECORDS).values() if found is not None]
    assert words.count("refuted") >= 8
    assert len(words) - words.count("refuted") >= 15


@pytest.mark.parametrize("name", RECORDS)
def test_what_was_found_was_found_for_the_record_as_it_is(name):
    record, found = current({name: RECORDS[name]})[name]
    assert found is not None, "run it: dpassay packages --run --record"
    assert found.date >= "2026-11-16"
    assert found.runs > 0 if "runs" in found.evidence else found.runs == 0
    assert record.package.lower() in name or record.package.lower() == "petina"


@pytest.mark.parametrize("name", RECORDS)
def test_a_subject_is_a_program_of_its_own(name):
    text = program(RECORDS[name])
    compile(text, name, "exec")
    assert "dpassay" not in RECORDS[name].subject


def test_a_formula_that_only_the_documentation_names_proves_nothing():
    law = {"formula": "category(2) | flip(0.7)"}  # ln(0.7/0.3) = 0.847, below the claimed 1
    assert judged(**law, at="toss.py, line 3").word == "proven"
    documented = judged(**law, at="not the code: it is compiled. The law that its README names")
    assert (documented.word, documented.lower, documented.upper) == ("open", 0.0, math.inf)
    assert documented.evidence == ["documentation"]
    wrong = judged(formula="category(2) | flip(0.9)", at="not the code: it is compiled")
    assert wrong.word == "refuted"  # what is documented breaks the claim by itself
    for name, found in recorded().items():
        assert found.word != "proven" or RECORDS[name].read_from_code, name


def test_everything_recorded_belongs_to_a_record():
    assert set(recorded()) == set(RECORDS)


def test_the_rows_that_are_known_are_reproduced():
    lower = {name: found.lower for name, found in recorded().items()}
    kept = math.exp(0.5) / (math.exp(0.5) + 1)  # P(1|1) is p + (1 - p)q in pure-ldp 1.1.2, and q stays
    for name, p, q in (("sue", kept, 1 - kept), ("oue", 0.5, 1 / (math.e + 1))):
        one = p + (1 - p) * q
        loss = math.log(one / q) + math.log((1 - q) / (1 - one))
        assert lower[f"pure-ldp-1.1.2-{name}"] == pytest.approx(loss, abs=1e-6)
    assert lower["diffprivlib-linear-regression"] == math.inf
    assert lower["diffprivlib-nanmean"] == pytest.approx(10, rel=1e-6)
    assert lower["multi-freq-ldpy-ss-array"] >= 1 + math.log(4 * 14 / 11) - 1e-9
    assert lower["multi-freq-ldpy-rsfd-grr"] == pytest.approx(math.log(2 * (math.e - 1) + 1), abs=1e-6)
    # The exponential mechanism of rate 1/2 has ρ ≤ 1/8, so nothing refutes OpenDP's claim; that its compiled code draws
    # from it is no proof.
    holding = RECORDS["opendp-noisy-max-zcdp"]
    assert check(holding.formula, dim=holding.dim, guarantee=ZCDP(holding.rho)).proven
    assert recorded()[holding.name].word == "open"


def test_chances_of_an_event_bound_epsilon_from_below():
    found = judged(chances=["3/4", "1/4"], event="it is 0")
    assert found.word == "refuted"
    assert found.lower == pytest.approx(math.log(3))
    assert found.lower <= math.log(3)
    assert judged(chances=["exp(1)/4", "1/4"], event="it is 0").word == "open"
    with_delta = judged(chances=["3/4", "1/4"], event="it is 0", delta="0.25")
    assert with_delta.lower == pytest.approx(math.log(2))
    assert judged(chances=[1, 0], event="it is 0").shown == "∞"
    assert judged(chances=["1/4", 0], event="it is 0", delta="0.25").word == "open"


def test_a_formula_is_judged_exactly():
    assert judged(formula="query(l1, 1) | laplace(1)", dim=1, at="here").word == "proven"
    found = judged(formula="query(l1, 1) | laplace(0.5)", dim=1, at="here")
    assert (found.word, found.shown) == ("refuted", "2")
    assert judged(formula="query(l2, 1) | gaussian(2)", dim=1, at="here", epsilon=None, rho="0.125").word == "proven"
    assert judged(formula="query(l2, 1) | gaussian(2)", dim=1, at="here", order=2, epsilon="0.2").word == "refuted"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "needs a subject, a formula or chances"),
        ({"chances": [1, 0]}, "needs event"),
        ({"formula": "laplace(1)"}, "needs at"),
        ({"epsilon": None, "subject": "x"}, "needs epsilon or rho"),
        ({"order": 2, "subject": "x"}, "runs cannot refute"),
        ({"subject": "x", "version": "1.0; rm"}, "version"),
        ({"subject": "x", "package": "--index-url=http://x"}, "package"),
        ({"subject": "x", "pins": ["numpy>=1"]}, "pins"),
    ],
)
def test_a_record_that_says_too_little_or_the_wrong_thing_is_refused(change, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        Record(**{**GIVEN, **change})


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("package = ")
    with pytest.raises(InputError, match="is not TOML"):
        read_record(path)
    path.write_text('package = "x"\nsubjekt = "y"')
    with pytest.raises(InputError, match=r"x.toml: subjekt: Extra inputs"):
        read_record(path)
    with pytest.raises(InputError, match="is not a folder"):
        read_records(tmp_path / "none")


def test_a_change_of_the_claim_outdates_what_was_found_and_a_change_of_the_words_does_not(tmp_path):
    record = Record(**GIVEN, chances=[1, 0], event="it is 0")
    place = tmp_path / "recorded.json"
    write_recorded({"coin": judge(record, NOWHERE)}, place)
    assert current({"coin": record}, place)["coin"][1] == judge(record, NOWHERE)
    assert current({"coin": record.model_copy(update={"why": "because"})}, place)["coin"][1] is not None
    stronger = Record(**{**GIVEN, "epsilon": 2}, chances=[1, 0], event="it is 0")
    assert current({"coin": stronger}, place)["coin"][1] is None


def test_all_audits_together_keep_the_stated_error_probability():
    assert sum(bool(record.subject and not record.not_run) for record in RECORDS.values()) * ALPHA <= 0.001


def test_the_gallerys_page_has_the_packages_as_released():
    from dpassay.report.pages.page import gallery_page

    page = gallery_page([], "dpassay gallery")
    assert "<h2>As released</h2>" in page
    assert "pure-ldp==1.1.2: UEClient(epsilon=1, d=4)" in page
