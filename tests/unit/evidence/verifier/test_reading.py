"""Closed reading: every field is known, typed and bounded, and what is not ends with a sentence that names it."""

import copy
import hashlib
import json
import subprocess
import sys
import time

import pytest

from dpassay import CertificateError, InputError, certify, check, verify
from dpassay.evidence.verifier import chained
from forging import SCHEMA, block, claim, exactly, lower, rechained, sealed, upper

GRID = {"grid": {"step": exactly("0.01"), "tilt": exactly(1)}}
EVENT = "every differing coordinate lies at or beyond the first value, on the side away from the second"


@pytest.fixture(scope="module")
def every_step():
    """A certificate that holds, with every kind of step and every field."""
    pair = [block("0.9", "-0.9")]
    logs = {"log_p": ["-0.7", "-0.6"], "log_q": ["-2.5", "-2.4"]}
    witness = {"step": "witness", "noise": 1, "at": 1, "pair": pair, "event": EVENT, **logs}
    certificate = sealed(
        "refuted",
        claim("clip(l1, C) | laplace(1)", 1, parameters={"C": exactly(1)}),
        witness,
        upper("renyi", 1, 2, order=exactly(2), **GRID),
        lower("laplace", 1, "1.7", pair, **GRID),
        {**upper("laplace", 1, 1, order=exactly(2), **GRID), "step": "repair", "pipeline": "clip(l1, 1) | laplace(2)"},
    )
    assert verify(certificate).ok
    return json.loads(json.dumps(certificate))


def paths(value, path=()):
    """The ways to all values but the ends of numbers."""
    yield path
    if isinstance(value, dict) or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(inner, (*path, key))


def at(data, path):
    for key in path:
        data = data[key]
    return data


def with_value(certificate, path, value):
    changed = copy.deepcopy(certificate)
    at(changed, path[:-1])[path[-1]] = value
    return changed


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


FREE = ("name", "source", "written_by", "digest", "pipeline", "event", "theorem", "step", "schema")
UNFIT = {
    "nothing": None,
    "a flag": True,
    "a float": 1.0,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-1": -1,
    "1e400": "1e4000",
    "a thousand digits": 10**1000,
    "a thousand digits as text": ["9" * 1000] * 2,
    "a depth of a thousand": deep(1000),
    "a million items": [0] * 10**6,
    "many fields": dict.fromkeys(map(str, range(10**4)), 1),
    "an empty object": {},
    "an empty list": [],
    "NaN as text": ["nan", "nan"],
    "minus infinity": ["-inf", "-inf"],
    "a wide number": ["-1e300", "1e300"],
    "ends swapped": ["2", "1"],
    "three ends": ["1", "1", "1"],
    "digits of another script": ["١", "١"],
}


def refusal(data):
    """What is said of data that do not fit, and that it is said at once."""
    start = time.process_time()
    with pytest.raises(CertificateError) as caught:
        verify(data)
    assert time.process_time() - start < 1
    return str(caught.value)


@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT)
def test_no_field_takes_what_does_not_fit(every_step, unfit):
    for path in paths(every_step):
        name = path[-1] if path else ""
        if not path or name == "schema" or (name in ("name", "source", "written_by") and isinstance(unfit, str)):
            continue
        if unfit in ([], {}) and name in ("pair", "parameters"):
            continue  # they may be empty, though not here
        if name in ("log_p", "log_q") and unfit in (UNFIT["a wide number"], UNFIT["minus infinity"]):
            continue  # probabilities may be known roughly
        said = refusal(with_value(every_step, path, unfit))
        if not (isinstance(unfit, str) and name in FREE):
            assert said.startswith("the certificate does not hold: field "), (path, said)
            assert len(said) < 400


def test_no_field_may_be_missing_or_unknown(every_step):
    optional = {"order", "grid"}
    for path in paths(every_step):
        value = at(every_step, path)
        if not isinstance(value, dict):
            continue
        where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")
        for name in value:
            if name == "schema" or name in optional or path[-1:] == ("parameters",):
                continue
            changed = copy.deepcopy(every_step)
            del at(changed, path)[name]
            field = f"{where}.{name}".lstrip(".")
            assert refusal(changed) == f"the certificate does not hold: field {field} is missing"
        if path[-1:] != ("parameters",):
            said = refusal(with_value(every_step, (*path, "note"), 1))
            assert said == f"the certificate does not hold: field {where}{'.' if where else ''}'note' is not known"


def test_no_field_may_be_given_twice(every_step, tmp_path):
    """In the file: data in memory cannot have a key twice."""
    text = json.dumps(every_step)
    names = {key for path in paths(every_step) for key in path if isinstance(key, str)}
    for name in names:
        (tmp_path / "doubled.json").write_text(text.replace(f'"{name}": ', f'"{name}": 1, "{name}": ', 1))
        assert refusal(tmp_path / "doubled.json") == f"the certificate does not hold: field '{name}' is given twice"


RAW = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "1.5",
    "-1",
    "9" * 1000,
    "[" * 1000 + "]" * 1000,
    "[" + "0," * 10**6 + "0]",
]


@pytest.mark.parametrize("raw", RAW, ids=lambda raw: raw[:10])
@pytest.mark.parametrize("name", ["dim", "noise", "count", "epsilon", "pair", "verdict"])
def test_raw_values_of_a_file(every_step, tmp_path, name, raw):
    (tmp_path / "raw.json").write_text(json.dumps(with_value(every_step, ("steps", 0, "name"), "")))
    text = (tmp_path / "raw.json").read_text()
    start = text.index(f'"{name}": ') + len(name) + 4
    _, end = json.JSONDecoder().raw_decode(text, start)
    (tmp_path / "raw.json").write_text(text[:start] + raw + text[end:])
    said = refusal(tmp_path / "raw.json")
    assert said.startswith("the certificate does not hold: field ")
    assert len(said) < 400


HUGE = [
    "NaN",
    "9" * 1000,
    "[" * 1000 + "]" * 1000,
    "[" * 10**6,
    "[" + "0," * 10**6 + "0]",
    "[" + "{}," * 900_000 + "0]",
]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("raw", HUGE, ids=lambda raw: raw[:10])
def test_a_process_needs_little_for_it(every_step, tmp_path, raw):
    """At the command line: one sentence, exit code 1, a second of CPU time and 200 MB, Python's start included."""
    path = tmp_path / "huge.json"
    path.write_text(json.dumps(every_step).replace('"dim": 1', f'"dim": {raw}', 1))
    code = f"""
import resource, sys
from dpassay.cli.main import main
sys.argv = ["dpassay", "verify", {str(path)!r}]
try:
    main()
except SystemExit as end:
    used = resource.getrusage(resource.RUSAGE_SELF)
    # The largest size since this program began; ru_maxrss also counts what the one that started it had.
    peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
    print(end.code, used.ru_utime + used.ru_stime, peak[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    exit_code, seconds, kilobytes = done.stdout.split()
    assert exit_code == "1"
    assert float(seconds) < 2  # a second for Python and dpassay themselves on a slow machine
    assert int(kilobytes) < 200_000
    assert done.stderr.startswith("dpassay: the certificate does not hold: field ")
    assert len(done.stderr.splitlines()) == 1


# ── What is no certificate at all ───────────────────────────────────────────────────────────────

UNREADABLE = {
    "empty": b"",
    "blank": b" \n",
    "not JSON": b"certificate",
    "cut off": b'{"schema": "dpassay/certificate/2", "steps": [',
    "not UTF-8": b'{"schema": "\xff\xfe"}',
    "a list": b"[1, 2]",
    "another schema": b'{"schema": "dpassay/certificate/3"}',
    "no schema": b"{}",
    "other JSON": b'{"a": 1.5, "b": NaN, "b": 2}',
    "too large": b" " * 3_000_001,
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_certificate_cannot_be_read(tmp_path, content):
    path = tmp_path / "certificate.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        verify(path)


def test_a_missing_file_and_a_folder_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        verify(tmp_path / "missing.json")
    with pytest.raises(InputError, match="is not a file"):
        verify(tmp_path)


def test_a_certificate_of_version_1_is_to_be_made_anew():
    with pytest.raises(InputError, match=r"version 1.*dpassay check \.\.\. --certificate FILE"):
        verify({"schema": "dpassay/certificate/1", "written_by": "dpassay 0.1", "verdict": "open", "steps": []})


def test_a_cut_off_certificate_cannot_be_read(tmp_path):
    content = json.dumps(certify(check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4)))
    for share in (0.3, 0.7, 0.999):
        (tmp_path / "cut.json").write_text(content[: int(len(content) * share)])
        with pytest.raises(InputError):
            verify(tmp_path / "cut.json")


def test_a_number_in_the_text_is_named_where_its_exponent_is_too_large():
    verdict = check("query(l1, 1e4000*1e-4000) | laplace(1)", epsilon=1)
    assert verdict.open
    assert "has the number '1e4000': a number is a decimal with an exponent of at most 1000" in verdict.reason


def test_a_file_of_100_megabytes_is_refused_at_once(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    start = time.process_time()
    with pytest.raises(InputError, match="too large"):
        verify(path)
    assert time.process_time() - start < 1


def test_the_order_of_steps(every_step):
    steps = every_step["steps"]
    orders = {
        "no claim": steps[1:],
        "no decision": steps[:-1],
        "nothing": [],
        "two claims": [steps[0], *steps],
        "two witnesses": [*steps[:2], *steps[1:]],
        "a repair before a bound": [*steps[:2], steps[4], steps[2], *steps[4:]],
        "something behind the decision": [*steps, steps[2]],
        "too many bounds": [steps[0], *[steps[2]] * 61, steps[-1]],
    }
    for what, order in orders.items():
        assert "must be in order" in refusal(rechained({**every_step, "steps": order})), what


def test_the_chain_is_as_documented():
    written = '{"step":"decision","verdict":"open"}'
    assert (
        chained("ab", {"verdict": "open", "step": "decision"}) == hashlib.sha256(f"ab\n{written}".encode()).hexdigest()
    )
    assert SCHEMA == "dpassay/certificate/2"
