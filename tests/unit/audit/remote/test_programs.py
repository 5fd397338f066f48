import json
import math
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.mechanisms.batches import known_independent
from dpassay.audit.mechanisms.targets import draw, draw_each
from dpassay.audit.remote import connection, lines, process
from dpassay.audit.remote.endpoint import Endpoint
from dpassay.audit.remote.programs import Program
from dpassay.audit.remote.timing import OutOfTime, time_budget
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure, Redrawn
from processes import started

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"


def generator() -> np.random.Generator:
    return np.random.default_rng(7)


START = "import json, os, sys, time, signal\nrequests = map(json.loads, sys.stdin)\ndef say(y): print(y, flush=True)\n"


def program(code: str, time_limit: float = 20.0) -> Program:
    return Program(shlex.join([sys.executable, "-I", "-S", "-c", START + code]), time_limit)


ECHO = "for r in requests: say(json.dumps({'outputs': [r] * r['n']}))"
SINGLE = "for r in requests: say(json.dumps({'output': r}))"
LIST = "for r in requests: say(json.dumps({'outputs': (r['input'] * r['n'])[:r['n']]}))"


def held() -> tuple[int, int]:
    descriptors = Path("/proc/self/fd")
    return threading.active_count(), len(list(descriptors.iterdir())) if descriptors.exists() else 0


@pytest.fixture(autouse=True)
def nothing_stays_behind(monkeypatch):
    """No thread, no pipe, no child, dead or alive."""
    started = []

    class Seen(subprocess.Popen):
        def __init__(self, *args, **options):
            started.append(self)
            super().__init__(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", Seen)
    monkeypatch.setattr(process, "PATIENCE", 0.1)
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.001)
    threads, descriptors = held()
    yield
    assert held()[0] <= threads
    assert held()[1] <= descriptors
    assert all(process.returncode is not None for process in started if hasattr(process, "pid"))


def test_a_program_is_asked_for_many_at_a_time():
    rng = generator()
    seeds = [int(rng.integers(2**53)) for _ in range(3)]
    with program(ECHO) as echo:
        outputs = draw(echo, "ä", 2500, generator())
    sizes = [y["n"] for y in outputs]
    assert sizes == [1000] * 2000 + [500] * 500
    assert [outputs[i]["seed"] for i in (0, 1000, 2000)] == seeds
    assert all(0 <= seed < 2**53 for seed in seeds)
    assert outputs[0]["input"] == "ä"


def test_a_program_of_single_outputs_is_asked_for_one_at_a_time():
    rng = generator()
    with program(SINGLE) as echo:
        outputs = draw(echo, [1, 2.5, None], 3, generator())
    assert outputs == [{"input": [1, 2.5, None], "n": 1, "seed": int(rng.integers(2**53))} for _ in range(3)]


def test_the_first_request_is_for_one_output_and_changes_nothing_later():
    with program(
        "c = 0\nfor r in requests:\n  c += 1\n  say(json.dumps({'outputs': [[c, r['n'], r['seed']]] * r['n']}))"
    ) as p:
        first = draw(p, 0, 4, generator())
        again = draw(p, 0, 4, generator())
    assert [y[0] for y in first] == [2] * 4  # the first request went before
    assert [y[0] for y in again] == [3] * 4
    assert [y[1:].tolist() for y in first] == [y[1:].tolist() for y in again]


@pytest.mark.parametrize(("outputs", "shape"), [([1.5, 2.5, math.inf], (3,)), ([[1.5, 2], [3, 4.5], [0.5, 1]], (3, 2))])
def test_floats_become_an_array(outputs, shape):
    with program(LIST) as p:
        batch = draw(p, outputs, 3, generator())
    assert isinstance(batch, np.ndarray)
    assert batch.dtype == np.float64
    assert batch.shape == shape
    assert batch.tolist() == outputs


@pytest.mark.parametrize(
    ("outputs", "dtype"),
    [
        ([[[1, 2]], [[3, 4]], [[5, 6]]], np.int64),
        ([[1, 2], [3, 4], [5, 6]], np.int64),
        ([[True], [False], [True]], bool),
    ],
)
def test_other_vectors_keep_their_own_type_in_every_batch(outputs, dtype):
    with program(LIST) as p:
        batch = draw(p, outputs, 3, generator())
    assert [y.dtype for y in batch] == [dtype] * 3
    assert [y.tolist() for y in batch] == outputs


@pytest.mark.parametrize(
    "outputs",
    [
        [1, 1.0, True],
        [1, 2, 3],
        [True, False, True],
        [None, "1", 1],
        ["a", "b", ""],
        [{"a": 1}, [], {}],
        [2**70, 1, 2],
        [[2**53 + 1, 0.5], [1, 2**70], [10**400, 0.5]],
        [[], [], []],
        [["a"], [None], [True, 1]],
    ],
)
def test_mixtures_stay_apart(outputs):
    with program(LIST) as p:
        batch = draw(p, outputs, 3, generator())
    assert isinstance(batch, list)
    assert batch == outputs
    assert [type(y) for y in batch] == [type(y) for y in outputs]


def test_each_vector_is_an_array_whatever_stands_beside_it():
    with program(LIST) as p:
        batch = draw(p, [[1.5, 2.5], None, [1.5]], 3, generator())
    assert [type(y) for y in batch] == [np.ndarray, type(None), np.ndarray]


def test_nan_goes_both_ways():
    with program("for r in requests: say(json.dumps({'output': [r['input'], -r['input'], float('inf')]}))") as p:
        batch = draw(p, math.nan, 1, generator())
    assert np.isnan(batch[0, :2]).all()
    assert batch[0, 2] == math.inf


def test_deeply_nested_outputs_stay_lists():
    nested: list = [1.5]
    for _ in range(100):
        nested = [nested]
    with program(SINGLE.replace(": r}", ": r['input']}")) as p:
        assert draw(p, nested, 1, generator()) == [nested]


@pytest.mark.parametrize(
    ("x", "plain"),
    [
        (np.array([[1.5, 2], [3, 4]]), [[1.5, 2.0], [3.0, 4.0]]),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.array([0.5], dtype=np.longdouble), [0.5]),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array(["a", None, np.int64(1)], dtype=object), ["a", None, 1]),
        (("a", {"b": np.arange(2)}), ["a", {"b": [0, 1]}]),
        ("a\nb\ud800\u2028", "a\nb\ud800\u2028"),
    ],
)
def test_inputs_are_written_as_json(x, plain):
    with program(SINGLE) as p:
        given = draw(p, x, 1, generator())[0]["input"]
    assert given == plain
    assert type(given) is type(plain)


def test_inputs_that_json_cannot_say():
    ring: list = []
    ring.append(ring)
    for x in ({1, 2}, b"bytes", 1j, np.array([1j]), object(), {1: 2}, np.datetime64("2020-01-01"), [len], ring):
        with pytest.raises(InputError, match=r"cannot be written as JSON|nested too deeply"):
            draw(Program("never-started"), x, 1, generator())


def test_an_error_is_a_failed_run():
    code = "for r in requests: say(json.dumps({'error': r['input']}))"
    with program(code) as p:
        assert draw(p, "ValueError: empty: text", 2, generator()) == [Failure("ValueError")] * 2
        assert draw(p, "ValueError: empty: text", 1, generator())[0].said == "empty: text"
        assert draw(p, "my.own.Error", 1, generator()) == [Failure("my.own.Error")]
        assert draw(p, "it went wrong", 1, generator())[0] == Failure("Error")
        assert draw(p, "it went wrong", 1, generator())[0].said == "it went wrong"


def test_an_error_of_a_batch_is_drawn_again_one_by_one():
    code = "for r in requests: say(json.dumps({'error': 'E'} if r['n'] > 1 or r['seed'] % 2 else {'outputs': [1.5]}))"
    rng = generator()
    rng.integers(2**53)
    expected = [Failure("E") if rng.integers(2**53) % 2 else 1.5 for _ in range(12)]
    assert {type(y) for y in expected} == {Failure, float}
    with program(code) as p:
        batch = draw(p, 0, 12, generator())
    assert isinstance(batch, Redrawn)
    assert batch == expected


def test_a_wrong_number_from_a_program():
    for answer in ("{'outputs': [1]}", "{'output': 1}"):
        code = f"for r in requests: say(json.dumps({{'outputs': [1]}} if r['seed'] == 0 else {answer}))"
        with program(code) as p, pytest.raises(InputError, match="gave 1 output where 5 were asked for: the program"):
            draw(p, 0, 5, generator())


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("for r in requests: say('rub\\tbish')", r"gave an answer that is not JSON: 'rub\\tbish'"),
        ("for r in requests: say('x' * 10**6)", r"gave an answer that is not JSON: 'x{200}…'"),
        ("for r in requests: say('[' * 10**5)", r"gave an answer that is not JSON"),
        (
            "for r in requests: sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()",
            "gave an answer that is not JSON",
        ),
        ("for r in requests: say('')", "gave an answer that is not JSON: ''"),
        ("for r in requests: say('[1]')", r"answered '\[1\]'; an answer must be"),
        ("for r in requests: say('{}')", r"answered '\{\}'; an answer must be"),
        ("""for r in requests: say('{"outputs": 3}')""", "an answer must be"),
        ("""for r in requests: say('{"error": 3}')""", "an answer must be"),
        ("""for r in requests: say('{"output": 3}\\n{"output": 3}')""", "one request with several lines"),
        ("sys.exit(5)", "ended with exit code 5; it had not answered before"),
        ("raise ValueError('first')", r"exit code 1; .*on stderr .*Traceback .*ValueError: first"),
    ],
)
def test_programs_that_break(code, said):
    with program(code) as p, pytest.raises(MechanismError, match=said) as caught:
        draw(p, "a", 5, generator())
    assert str(caught.value).startswith(f"the program {p.command!r} ")


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("print('bad weights', file=sys.stderr); sys.exit(3)", "ended with exit code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was ended by signal 9"),
        ("os.close(1); time.sleep(60)", "closed its output"),
    ],
)
def test_a_program_that_dies_over_an_input_has_failed_in_this_run(end, how):
    """The others run in a new process, and what was asked for them is what would have been asked anyway."""
    code = f"""
for r in requests:
    if r['input'] == 'bad': {end}
    say(json.dumps({{'output': r['seed']}}))"""
    rng = generator()
    seeds = [int(rng.integers(2**53)) for _ in range(4)]
    with program(code) as p:
        outputs = draw_each(p, ["good", "bad", "good", "bad"], generator())
        assert p.notes() == [f"{p} {how} and was started again, 2 times."]
    assert outputs == [seeds[0], Failure(how), seeds[2], Failure(how)]
    assert how != "ended with exit code 3" or "stderr 'bad weights'" in outputs[1].said


def test_a_batch_that_kills_the_program_is_drawn_again_one_by_one():
    code = """
for r in requests:
    if r['n'] > 1 or r['seed'] % 2: sys.exit(3)
    say(json.dumps({'outputs': [1.5]}))"""
    rng = generator()
    rng.integers(2**53)
    expected = [Failure("ended with exit code 3") if rng.integers(2**53) % 2 else 1.5 for _ in range(12)]
    with program(code) as p:
        batch = draw(p, 0, 12, generator())
    assert isinstance(batch, Redrawn)
    assert batch == expected


def test_a_program_that_ends_between_two_requests_is_asked_again():
    """It answers three and ends: the fourth was not read, so it is no run that failed."""
    code = """
for i, r in enumerate(requests):
    say(json.dumps({'output': r['seed']}))
    if i == 2: os.close(0); sys.exit(7)"""
    rng = generator()
    with program(code) as p:
        outputs = draw(p, "a", 20, generator())
    assert outputs == [int(rng.integers(2**53)) for _ in range(20)]


def test_an_input_that_kills_the_program_is_evidence():
    code = """
for r in requests:
    if r['input'] == 'bad': sys.exit(3)
    say(json.dumps({'output': r['seed'] % 5}))"""
    with program(code) as p:
        verdict = audit(p, [("good", "bad")], epsilon=1, shrink=False, until_refuted=True)
    assert verdict.word == "refuted"
    assert "ended with exit code 3 and was started again" in " ".join(verdict.warnings)


def test_a_program_that_dies_over_every_input_is_none():
    with (
        program("for r in requests: sys.exit(3)") as p,
        pytest.raises(MechanismError, match="failed in every run, for every input: ended with exit code 3"),
    ):
        audit(p, [(0, 1)], epsilon=1, runs=40)


# Plain lines, and several at once


def test_plain_lines():
    code = "for line in sys.stdin: say(line.strip()[::-1])"
    with Program(program(code).command, lines=True) as p:
        assert not p.replays
        assert p.singly
        assert draw(p, "abc ä", 2, generator()) == ["ä cba", "ä cba"]
        assert draw(p, "", 1, generator()) == [""]
        assert draw(p, [1, 2], 1, generator()) == ["]2 ,1["]
        assert draw(p, 521, 2, generator()) == [125, 125]
        assert draw_each(p, ["5.1", "1-", "100", "fni", "5.1", "e1", "1_1"], generator())[:2] == [1.5, -1]
        assert draw_each(p, ["100", "fni-", "1e", "0 1"], generator()) == ["001", -math.inf, "e1", "1 0"]
    for text in ("a\nb", "a\n", "a\rb", "\ud800"):
        with pytest.raises(InputError, match="cannot be a plain line"):
            draw(p, text, 1, generator())


def test_several_processes_share_the_work_and_change_nothing():
    code = "for r in requests: say(json.dumps({'output': [r['seed'], os.getpid()]}))"
    single = program(code)
    with single, Program(single.command, processes=3) as p:
        first = draw(single, "a", 30, generator())
        several = draw(p, "a", 30, generator())
        each = draw_each(p, ["a", "b"] * 15, generator())
    assert [y[0] for y in several] == [y[0] for y in first] == [y[0] for y in each]
    assert 1 <= len({int(y[1]) for y in several}) <= 3


def test_processes_run_at_the_same_time(tmp_path):
    """Each waits until all three are there."""
    code = f"""
for r in requests:
    open(f'{tmp_path}/{{os.getpid()}}', 'w').close()
    while len(os.listdir('{tmp_path}')) < 3: time.sleep(0.01)
    say(json.dumps({{'output': 1}}))"""
    with Program(program(code).command, processes=3) as p:
        p._most = 1
        assert draw(p, 0, 6, generator()) == [1] * 6


def test_the_time_ends_programs_that_are_at_work():
    code = "for r in requests: time.sleep(0.02); say(json.dumps({'output': 1}))"
    for processes in (1, 3):
        with Program(program(code).command, processes=processes) as p, time_budget(0.3), pytest.raises(OutOfTime):
            draw(p, 0, 10**4, generator())


@pytest.mark.parametrize("processes", [1, 3])
def test_the_time_cuts_a_call_that_hangs(processes):
    """Long before its own limit. The fixture sees that no child is left, though it ignores being told to end."""
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nfor r in requests: time.sleep(600)"
    p = Program(program(code).command, 600, processes=processes)
    p._most = 1
    with p, time_budget(0.3), pytest.raises(OutOfTime):
        draw(p, 0, 5, generator())


def test_an_audit_of_a_program_that_hangs_ends_in_time(tmp_path):
    code = """
import random
for r in requests:
    if random.random() < 0.004: time.sleep(600)
    say(json.dumps({'output': random.random()}))"""
    asked = {"epsilon": 1, "save": tmp_path / "a.json"}
    with program(code, 600) as p:
        verdict = audit(p, [(0, 1)], **asked, time="1.5s")
        again = audit(p, [(0, 1)], **asked, time="0.5s", resume=True)
    assert verdict.word == again.word == "open"
    assert any("The time limit of 1.5s was reached after" in one for one in verdict.warnings)


def test_rows_that_are_said_to_be_independent_are_asked_for_in_batches(tmp_path):
    code = f"""
import random
for r in requests:
    open({str(tmp_path / "asked")!r}, "a").write(f"{{r['n']}}\\n")
    rng = random.Random(r['seed'])
    say(json.dumps({{'outputs': [r['input'] + rng.expovariate(1) - rng.expovariate(1) for _ in range(r['n'])]}}))"""
    command, most = program(code).command, []
    for said in (False, True):
        with Program(command, independent_rows=said) as p:
            assert known_independent(p) == said
            assert p.describe().get("rows") == ("independent" if said else None)
            audit(p, [(0.0, 1.0)], epsilon=1, runs=2_000, bits=False, shrink=False)
        most.append(len((tmp_path / "asked").read_text().split()))
        (tmp_path / "asked").unlink()
    assert most[0] > 1_000 > 300 > most[1]


def test_where_independent_rows_say_nothing():
    class Mine(Program):
        independent_rows = True

    assert known_independent(Mine("cat"))
    with pytest.raises(InputError, match="with lines=True each answer has one output: omit independent_rows"):
        Program("cat", lines=True, independent_rows=True)
    with pytest.raises(
        InputError, match="a custom request or answer each answer has one output: omit independent_rows"
    ):
        Endpoint("http://localhost", answer="$.a", independent_rows=True)
    with pytest.raises(InputError, match="independent_rows must be True or False, got 3"):
        Endpoint("http://localhost", independent_rows=3)


@pytest.mark.parametrize("processes", [0, 1.5, True, 10**4])
def test_numbers_of_processes(processes):
    with pytest.raises(InputError, match="processes must be a whole number from 1 to 256"):
        Program("true", processes=processes)


def test_a_program_that_talks_without_being_asked():
    code = "for r in requests: say(json.dumps({'output': 1})); say('more') if r['seed'] else None; time.sleep(0)"
    with program(code) as p, pytest.raises(MechanismError, match=r"'more'|several lines"):
        draw(p, "a", 50, generator())


@pytest.mark.parametrize(
    "code",
    [
        "time.sleep(60)",
        "for r in requests:\n  print('{\"outp', end='', flush=True); time.sleep(60)",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
        "while True: print('x' * 1000, file=sys.stderr, flush=True)",
        "os.fork(); time.sleep(60)",
    ],
)
def test_programs_that_hang(code):
    with program(code, time_limit=0.3) as p, pytest.raises(MechanismError, match=r"no answer within 0\.3 s .* n = 1;"):
        draw(p, "a" * 10**6, 1, generator())  # more than a pipe holds


def test_a_program_that_answers_before_it_has_read_the_request():
    code = """
os.read(0, 1)
say('{"output": 1}')
time.sleep(0.1)
print('x', end='', flush=True)
sys.stdin.read()"""
    with program(code) as p, pytest.raises(MechanismError, match=r"several lines: .*x'"):
        draw(p, "a" * 10**6, 1, generator())


def test_a_hanging_program_says_what_it_said_last():
    code = """
for r in requests:
    print('thinking', file=sys.stderr, flush=True)
    print('{"outp', end='', flush=True)
    time.sleep(60)"""
    with (
        program(code, time_limit=5) as p,
        pytest.raises(MechanismError, match=r"""last output was '\{"outp', .* stderr 'thinking'"""),
    ):
        draw(p, "a", 1, generator())


def test_a_chatty_program_and_long_lines_do_not_block():
    code = """
for r in requests:
    print('e' * 10**6, file=sys.stderr, flush=True)
    say(json.dumps({'output': r['input']}))"""
    text = "t" * 10**6
    with program(code) as p:
        assert draw(p, text, 2, generator()) == [text, text]


def test_a_line_without_end(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_REPLY", 2**20)
    with (
        program("while True: print('x' * 1000, end='')") as p,
        pytest.raises(MechanismError, match="more than 1 MB: 'x"),
    ):
        draw(p, 0, 1, generator())


def test_a_program_starts_anew_after_it_was_closed():
    p = program("for r in requests: say(json.dumps({'output': os.getpid()}))")
    first = draw(p, 0, 2, generator())
    p.close()
    p.close()
    second = draw(p, 0, 1, generator())
    p.close()
    assert first[0] == first[1] != second[0]


def test_a_program_that_was_forgotten_ends_with_its_object():
    p = program(SINGLE)
    draw(p, 0, 1, generator())
    del p  # the fixture sees that no child is left


def test_an_interrupt_ends_the_program(monkeypatch):
    p = program("time.sleep(60)")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(process.Process, "_said", interrupted)
    p.time_limit = 0.1
    with pytest.raises(KeyboardInterrupt):
        draw(p, 0, 1, generator())
    assert p._lines is None or not p._lines.held


@pytest.mark.parametrize("command", ["", "  ", "'unbalanced", "a\0b"])
def test_commands_that_cannot_be_read(command):
    with pytest.raises(InputError, match="the command"):
        Program(command)


def test_programs_that_cannot_be_started(tmp_path):
    (tmp_path / "plain.txt").write_text("no program")
    for command in ("no-such-program-anywhere --x", str(tmp_path / "plain.txt"), str(tmp_path)):
        with pytest.raises(InputError, match=r"cannot be started: .*; check the command"):
            draw(Program(shlex.join([command]) if "/" in command else command), 0, 1, generator())


def test_no_shell_reads_the_command():
    with program("for r in requests: say(json.dumps({'output': sys.argv[1:]}))") as p:
        p = Program(p.command + " '$HOME' '*' ';' 'a b'")
        assert draw(p, 0, 1, generator()) == [["$HOME", "*", ";", "a b"]]
        p.close()


@pytest.mark.parametrize("limit", [0, -1, math.nan, math.inf, "soon", None, 1e9])
def test_time_limits(limit):
    for make in (lambda: Program("true", limit), lambda: Endpoint("http://localhost", limit)):
        with pytest.raises(InputError, match="time limit must be more than 0"):
            make()


# Endpoints


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler, dict], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            answer(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def do_GET(self):
            respond(self, b'{"output": "followed"}')

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/path?key=1"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


def respond(handler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def test_an_endpoint_speaks_the_same_protocol():
    seen = []

    def answer(handler, request):
        seen.append((handler.path, handler.headers["Content-Type"], request))
        respond(handler, json.dumps({"outputs": [request["input"]] * request["n"]}).encode())

    rng = generator()
    with serving(answer) as url, Endpoint(url) as endpoint:
        batch = draw(endpoint, np.array([1.5, 2.5]), 1500, generator())
    assert batch.shape == (1500, 2)
    seeds = [0, int(rng.integers(2**53)), int(rng.integers(2**53))]
    assert seen == [
        ("/path?key=1", "application/json", {"input": [1.5, 2.5], "n": n, "seed": seed})
        for n, seed in zip([1, 1000, 500], seeds, strict=True)
    ]


def test_an_endpoint_may_fail_a_run():
    with serving(lambda handler, r: respond(handler, b'{"error": "ValueError: no"}')) as url:
        assert draw(Endpoint(url), 0, 2, generator()) == [Failure("ValueError")] * 2


@pytest.mark.parametrize(
    ("body", "status", "headers", "said"),
    [
        (b"overloaded\n" + b"x" * 300, 503, {}, r"HTTP status 503: 'overloaded\\nx{189}…'"),
        (b"", 404, {}, "HTTP status 404: ''"),
        (
            b"",
            302,
            {"Location": "file:///etc/passwd"},
            "HTTP status 302: ''; redirects are not followed.*'file:///etc/passwd'",
        ),
        (b"", 302, {"Location": "/here"}, "HTTP status 302: ''; redirects are not followed.*'/here'"),
        (b"", 303, {"Location": "/here"}, "HTTP status 303"),
        (b"", 307, {"Location": "http://127.0.0.1:9/"}, "HTTP status 307"),
        (b"<html>", 200, {}, "gave an answer that is not JSON: '<html>'"),
        (b"[]", 200, {}, r"answered '\[\]'; an answer must be"),
        (b"{", 200, {"Content-Length": "10"}, "broke off in the middle of its answer '{'"),
        (b"zz\r\n", 200, {"Transfer-Encoding": "chunked"}, "cannot be used: |no JSON"),
    ],
)
def test_endpoints_that_break(body, status, headers, said):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    with (
        serving(lambda handler, r: respond(handler, body, status, **headers)) as url,
        pytest.raises(MechanismError, match=said) as caught,
    ):
        draw(Endpoint(url), 0, 1, generator())
    assert str(caught.value).startswith("the endpoint http://127.0.0.1:")


def test_an_answer_that_is_no_http():
    with (
        serving(lambda handler, r: handler.wfile.write(b"rubbish\r\n\r\n")) as url,
        pytest.raises(MechanismError, match=r"cannot be used: RemoteProtocolError: illegal status line: .*rubbish"),
    ):
        draw(Endpoint(url), 0, 1, generator())


def test_a_huge_body(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_REPLY", 2**20)
    with (
        serving(lambda handler, r: respond(handler, b"x" * (2**20 + 1))) as url,
        pytest.raises(MechanismError, match="more than 1 MB"),
    ):
        draw(Endpoint(url), 0, 1, generator())


def test_endpoints_that_are_not_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        with pytest.raises(MechanismError, match=r"cannot be used: ConnectionRefusedError: .*; is it running\?"):
            draw(Endpoint(url), 0, 1, generator())


def test_endpoints_that_hang():
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        with pytest.raises(MechanismError, match=r"no answer within 0\.2 s when it was asked for n = 1"):
            draw(Endpoint(url, time_limit=0.2), 0, 1, generator())
        for concurrency in (1, 2):
            with time_budget(0.2), pytest.raises(OutOfTime):
                draw(Endpoint(url, time_limit=600, answer="$", concurrency=concurrency), 0, 4, generator())


def test_an_endpoint_that_drips():
    stop = threading.Event()

    def drip(handler, request):
        respond(handler, b"{")
        while not stop.wait(0.02):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return

    with serving(drip) as url:
        with pytest.raises(MechanismError, match=r"no answer within 0\.2 s"):
            draw(Endpoint(url, time_limit=0.2), 0, 1, generator())
        stop.set()


def test_an_endpoint_that_drips_its_headers():
    """Each piece comes in time, but not all of them together."""
    stop = threading.Event()

    def drip(handler, request):
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n")
        while not stop.wait(0.02):
            try:
                handler.wfile.write(b"X-More: 1\r\n")
            except OSError:
                return

    with serving(drip) as url:
        started = time.monotonic()
        with pytest.raises(MechanismError, match=r"no answer within 0\.5 s"):
            draw(Endpoint(url, time_limit=0.5), 0, 1, generator())
        assert time.monotonic() - started >= 0.5
        stop.set()


def test_a_connection_is_used_again(monkeypatch):
    monkeypatch.setattr(connection, "KEPT_ALIVE", 60.0)  # a busy machine may pause for longer than the usual second
    connections = set()

    def answer(handler, request):
        connections.add(handler.client_address)
        body = json.dumps({"output": request["seed"] % 2}).encode()
        handler.protocol_version = "HTTP/1.1"
        respond(handler, body, **{"Content-Length": str(len(body)), "Connection": "keep-alive"})
        handler.close_connection = False

    with serving(answer) as url, Endpoint(url) as endpoint:
        assert len(draw(endpoint, 0, 20, generator())) == 20
        assert len(connections) == 1
        endpoint.close()
        draw(endpoint, 0, 1, generator())
        assert len(connections) == 2


def test_a_server_that_closes_idle_connections():
    """It says that it keeps the connection, and closes it all the same."""

    def answer(handler, request):
        handler.protocol_version = "HTTP/1.1"
        respond(handler, b'{"output": 1}', **{"Content-Length": "13", "Connection": "keep-alive"})
        handler.close_connection = True

    with serving(answer) as url, Endpoint(url) as endpoint:
        for _ in range(5):
            draw(endpoint, 0, 1, generator())
            time.sleep(0.05)


def test_a_proxy_that_cannot_be_used(monkeypatch):
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", "gopher://127.0.0.1:1")
    with pytest.raises(InputError, match=r"the proxy that the environment names cannot be used: .*gopher"):
        draw(Endpoint("http://127.0.0.1:9/"), 0, 1, generator())


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a/", "file:///etc/passwd", "example.org", "http://", "http:///x", "http://a b/", "http://a:99999999/",
     "http://me:secret@host/", "http://ä/", "http://a/\n", "HTTPX://a"],
)  # fmt: skip
def test_addresses_that_cannot_be_used(url):
    with pytest.raises(InputError, match="the address must be http://"):
        Endpoint(url)


# The examples of docs/subjects.md


def test_the_example_program():
    command = shlex.join([sys.executable, str(EXAMPLES / "noisy_count.py")])
    with Program(command) as p:
        batch = draw(p, "one two three", 2000, generator())
        again = draw(p, "one two three", 2000, generator())
        other = draw(p, "one two", 2000, generator())
    assert batch.dtype == np.float64
    assert batch.tolist() == again.tolist()
    np.testing.assert_allclose(batch - other, 1, atol=1e-12)  # the same noise on counts that differ by one word
    text = (EXAMPLES.parent / "subjects.md").read_text()
    assert f"```python\n{(EXAMPLES / 'noisy_count.py').read_text()}```" in text


def test_the_example_endpoint():
    line = [sys.executable, str(EXAMPLES / "endpoint.py")]
    with started(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        url = server.stdout.readline().strip()
        with Endpoint(url) as endpoint:
            yes, no = (draw(endpoint, x, 500, generator()) for x in ("yes", "no"))
            assert draw(endpoint, "perhaps", 1, generator()) == [Failure("ValueError")]
    assert set(yes) == {"yes", "no"}
    assert all(a != b for a, b in zip(yes, no, strict=True))  # the same coins
