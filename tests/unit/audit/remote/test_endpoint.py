"""Endpoints in practice: busy, briefly broken, with their own format and a secret."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.mechanisms.targets import draw, draw_each, load_python
from dpassay.audit.remote import connection
from dpassay.audit.remote.endpoint import Endpoint, parse_header
from dpassay.audit.remote.timing import OutOfTime, time_budget
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure, Redrawn, RepeatedRequest
from servers import respond, serving


def generator() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.001)


class Script:
    """Answers by a list of (status, headers) for the first requests; then with the seed's parity."""

    def __init__(self, *troubles, key="output"):
        self.troubles, self.key, self.seen, self.lock = list(troubles), key, [], threading.Lock()

    def __call__(self, handler, request):
        with self.lock:
            self.seen.append((request, dict(handler.headers)))
            trouble = self.troubles.pop(0) if self.troubles else None
        if trouble == "break":
            handler.connection.close()
            return
        status, headers = trouble or (200, {})
        body = {"output": request["seed"] % 2} if self.key == "output" else {"outputs": [1] * request["n"]}
        respond(handler, json.dumps(body).encode() if status == 200 else b"sorry", status, **headers)


FINE = (200, {})


@pytest.mark.parametrize("trouble", [(500, {}), (502, {}), (503, {}), (429, {}), "break"])
def test_what_fails_in_passing_is_asked_again_with_the_same_seed(trouble):
    script = Script(FINE, FINE, trouble, trouble)
    with serving(script) as url, Endpoint(url) as endpoint:
        outputs = draw(endpoint, 0, 3, generator())
        notes = endpoint.notes()
    seeds = [request["seed"] for request, _ in script.seen]
    rng = generator()
    a, b, c = (int(rng.integers(2**53)) for _ in range(3))
    assert seeds == [0, a, b, b, b, c]
    assert list(outputs) == [a % 2, b % 2, c % 2]
    kind = "broken connection" if trouble == "break" else f"HTTP status {trouble[0]}"
    assert notes == [f"the endpoint {url} was asked again: {kind}, 2 times."]


def test_an_endpoint_that_python_names_is_asked_in_the_same_way(tmp_path, monkeypatch):
    with serving(Script(FINE, (503, {}))) as url:
        text = f"from dpassay.audit.remote.endpoint import Endpoint\nmine = Endpoint({url!r})\n"
        (tmp_path / "named_endpoint.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        loaded = load_python("named_endpoint:mine")
        outputs = draw_each(loaded, [0, 1, 0], generator())
        loaded.mechanism.close()
    assert [isinstance(output, Failure) for output in outputs] == [False, True, False]
    assert "was asked again: HTTP status 503, once." in loaded.notes()[0]


@pytest.mark.parametrize(
    ("trouble", "counts"), [((429, {}), True), ((500, {}), False), ((503, {}), False), ("break", False)]
)
def test_a_run_that_failed_at_first_is_a_failure_in_a_test(trouble, counts):
    """What is answered later is answered on a condition. Only what was refused before it ran is simply asked again."""
    with serving(Script(FINE, trouble)) as url, Endpoint(url) as endpoint:
        first, second, third = draw_each(endpoint, [0, 1, 0], generator())
    assert first in (0, 1)
    assert third in (0, 1)
    if counts:
        assert second in (0, 1)
    else:
        assert isinstance(second, Failure)


def test_a_batch_that_failed_at_first_is_marked():
    with serving(Script(FINE, (500, {}), key="outputs")) as url, Endpoint(url) as endpoint:
        assert type(draw(endpoint, 0, 5, generator())) is RepeatedRequest
        assert not isinstance(draw(endpoint, 0, 5, generator()), Redrawn)


def test_a_batch_that_was_asked_for_again_counts_as_wrong_and_batches_go_on():
    """One of the first requests of the training fails, and one of the test."""
    number = 0

    def answer(handler, request):
        nonlocal number
        number += 1
        rng = np.random.default_rng(request["seed"])
        body = {"outputs": (request["input"] + rng.laplace(size=request["n"])).tolist()}
        respond(handler, json.dumps(body).encode(), 503 if number in (3, 9) else 200)

    with serving(answer) as url, Endpoint(url) as endpoint:

        class Independent:
            independent_rows = True  # else the first runs would be made one by one anyway

            def sample(self, x, n, rng):
                return endpoint.sample(x, n, rng)

        audit(Independent(), [(0.0, 1.0)], epsilon=2, runs=3000, shrink=False, bits=False)
    assert number < 200


def test_the_wait_that_a_server_asks_for_is_kept():
    script = Script(FINE, (429, {"Retry_After": "1"}))
    begun = time.monotonic()
    with serving(script) as url, Endpoint(url) as endpoint:
        draw(endpoint, 0, 1, generator())
    assert time.monotonic() - begun >= 1.0


def test_a_wait_is_a_number_or_a_date():
    moment = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)
    assert 3600 < connection._asked_to_wait(moment) <= 7200
    assert connection._asked_to_wait("Mon, 01 Jan 2001 00:00:00 GMT") == 0
    assert connection._asked_to_wait(" 12 ") == 12
    assert connection._asked_to_wait("soon") == connection._asked_to_wait("") == connection._asked_to_wait("-1") == 0


def test_a_wait_that_is_too_long():
    with (
        serving(Script((429, {"Retry_After": "7200"}))) as url,
        pytest.raises(MechanismError, match="429: 'sorry'; it asks us to wait for 7,200 s"),
    ):
        draw(Endpoint(url), 0, 1, generator())


def test_it_gives_up():
    script = Script(*[(503, {})] * 10)
    with serving(script) as url, pytest.raises(MechanismError, match="HTTP status 503: 'sorry', and so 2 times more"):
        draw(Endpoint(url, retries=2), 0, 1, generator())
    assert len(script.seen) == 3


def test_other_statuses_are_not_repeated():
    script = Script((403, {}))
    with serving(script) as url, pytest.raises(MechanismError, match=r"HTTP status 403: 'sorry'$"):
        draw(Endpoint(url), 0, 1, generator())
    assert len(script.seen) == 1


def test_an_input_that_breaks_the_server_is_evidence():
    """A handler that raises for one input only answers 500 for it, each time."""

    def answer(handler, request):
        bad = request["input"] == "bad"
        respond(handler, b"oops" if bad else b'{"output": 1}', 500 if bad else 200)

    with serving(answer) as url, Endpoint(url, retries=1) as endpoint:
        verdict = audit(endpoint, [("good", "bad")], epsilon=1, runs=400, shrink=False)
        backwards = audit(Endpoint(url, retries=1), [("good", "bad")], epsilon=1, runs=400, shrink=False, seed=1)
    assert verdict.word == backwards.word == "refuted"
    assert "HTTP status 500" in " ".join(verdict.warnings)


def test_a_token_and_headers_are_sent_and_stay_secret(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret-token")
    script = Script()
    with serving(script) as url:
        endpoint = Endpoint(url, headers={"X-Tenant": "hidden", "accept": "text/json"}, token_env="MY_TOKEN")
        draw(endpoint, 0, 1, generator())
        endpoint.close()
    sent = script.seen[0][1]
    assert sent["Authorization"] == "Bearer secret-token"
    assert sent["X-Tenant"] == "hidden"
    assert {name.lower(): value for name, value in sent.items()}["accept"] == "text/json"
    assert endpoint.describe() == {"kind": "url", "url": url, "headers": "X-Tenant, accept"}
    for shown in (repr(endpoint), str(endpoint), str(endpoint.describe())):
        assert "secret-token" not in shown
        assert "hidden" not in shown
    assert "secret-token" not in json.dumps(endpoint.settings())


def test_a_server_that_repeats_the_token(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret-token")
    with (
        serving(lambda handler, _: respond(handler, b"no: secret-token\x1b[2J", 401)) as url,
        pytest.raises(MechanismError, match=r"401: 'no: \*\*\*\\x1b\[2J'"),
    ):
        draw(Endpoint(url, token_env="MY_TOKEN"), 0, 1, generator())


def test_a_token_goes_nowhere_else(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret-token")
    elsewhere = Script()
    with (
        serving(elsewhere) as other,
        serving(lambda handler, _: respond(handler, b"", 307, Location=other)) as url,
        pytest.raises(MechanismError, match="redirects are not followed"),
    ):
        draw(Endpoint(url, token_env="MY_TOKEN"), 0, 1, generator())
    assert not elsewhere.seen


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"token_env": "NO_SUCH_TOKEN"}, "the environment has no variable 'NO_SUCH_TOKEN'"),
        ({"token_env": "ODD_TOKEN"}, "printable ASCII without spaces"),
        ({"headers": {"a b": "x"}}, "a header is a name and a text"),
        ({"headers": {"X": "a\r\nY: b"}}, "the value of the header X must be printable ASCII"),
        ({"headers": {"Host": "x"}}, "the header Host cannot be set"),
        ({"headers": {"X": "1", "x": "2"}}, "the header x is given twice"),
        ({"headers": {"Authorization": "x"}, "token_env": "GOOD_TOKEN"}, "Authorization is given twice"),
        ({"request": "{"}, "the request must be JSON"),
        ({"request": "{}"}, 'must contain "\\$input"'),
        ({"answer": "result"}, r"the answer is a path such as \$\.result\[0\]"),
        ({"concurrency": 0}, "concurrency must be a whole number from 1 to"),
        ({"rate": "fast"}, "a rate is a number per second"),
        ({"retries": -1}, "retries must be a whole number from 0"),
    ],
)
def test_options_that_cannot_be_used(monkeypatch, options, said):
    monkeypatch.setenv("ODD_TOKEN", "two words")
    monkeypatch.setenv("GOOD_TOKEN", "one-word")
    with pytest.raises(InputError, match=said) as caught:
        Endpoint("http://127.0.0.1/", **options)
    assert "two words" not in str(caught.value)


def test_headers_as_they_are_written():
    assert parse_header("X-A:  b: c ") == ("X-A", "b: c")
    for line in ("X-A", ": b", "a b: c", ""):
        with pytest.raises(InputError, match="a header is 'Name: value'"):
            parse_header(line)


def test_a_format_of_its_own():
    seen = []

    def answer(handler, request):
        seen.append(request)
        respond(handler, json.dumps({"result": [request["q"]["text"] + "!", "x"]}).encode())

    request = '{"q": {"text": "$input", "seed": "$seed"}, "n": 1, "note": "for $input"}'
    with serving(answer) as url, Endpoint(url, request=request, answer="$.result[0]") as endpoint:
        assert endpoint.singly
        assert endpoint.replays
        assert draw(endpoint, 'a "quoted" text', 2, generator()) == ['a "quoted" text!'] * 2
    rng = generator()
    seeds = [int(rng.integers(2**53)) for _ in range(2)]
    assert seen == [
        {"q": {"text": 'a "quoted" text', "seed": seed}, "n": 1, "note": 'for a "quoted" text'} for seed in seeds
    ]
    assert not Endpoint(url, request='["$input"]').replays


def test_an_answer_without_the_output():
    with (
        serving(lambda handler, _: respond(handler, b'{"message": "busy\\u001b"}')) as url,
        pytest.raises(MechanismError, match=r"which has nothing at \$\.result\[0\]: it has no \.result"),
    ):
        draw(Endpoint(url, request='"$input"', answer="$.result[0]"), 0, 1, generator())


def test_requests_at_the_same_time_come_back_in_order():
    """No request is answered before four are there, so fewer at a time would never end."""
    four = threading.Barrier(4)

    def answer(handler, request):
        four.wait(60)
        respond(handler, json.dumps({"output": request["seed"]}).encode())

    with serving(answer) as url, Endpoint(url, answer="$.output", concurrency=4) as endpoint:
        outputs = draw(endpoint, 0, 12, generator())
        each = draw_each(endpoint, [0, 1] * 4, generator())
    rng = generator()
    seeds = [int(rng.integers(2**53)) for _ in range(12)]
    assert outputs == seeds
    assert each == seeds[:8]


def test_concurrency_changes_no_count():
    def answer(handler, request):
        respond(handler, json.dumps({"output": request["input"] ^ (request["seed"] % 10 < 3)}).encode())

    with serving(answer) as url:
        verdicts = []
        for concurrency in (1, 3):
            with Endpoint(url, concurrency=concurrency) as endpoint:
                verdicts.append(
                    audit(endpoint, [(0, 1)], epsilon=0.2, runs=800, seed=4, shrink=False, until_refuted=True)
                )
    one, three = verdicts
    assert one.runs == three.runs
    assert one.witness == three.witness


def test_one_of_several_that_fails_ends_the_others():
    waiting = threading.Event()

    def answer(handler, request):
        if request["seed"] == first:
            respond(handler, b"", 404)
        else:
            waiting.wait(3)
            respond(handler, b'{"output": 1}')

    first = int(generator().integers(2**53))
    before = threading.active_count()
    with serving(answer) as url:
        try:
            with pytest.raises(MechanismError, match="404"):
                draw(Endpoint(url, answer="$.output", concurrency=3), 0, 6, generator())
        finally:
            waiting.set()
    assert threading.active_count() <= before


def test_a_rate_is_kept():
    begun = time.monotonic()
    with serving(Script()) as url, Endpoint(url, answer="$.output", concurrency=4, rate="50/s") as endpoint:
        draw(endpoint, 0, 11, generator())
    assert time.monotonic() - begun >= 10 / 50


def test_the_time_ends_waiting(monkeypatch):
    monkeypatch.setattr(connection, "FIRST_PAUSE", 1000.0)
    monkeypatch.setattr(connection, "LONGEST_PAUSE", 1000.0)
    with serving(Script(*[(503, {})] * 9)) as url, time_budget(0.2), pytest.raises(OutOfTime):
        draw(Endpoint(url), 0, 1, generator())
    with serving(Script(*[(503, {})] * 9)) as url, time_budget(0.2), pytest.raises(OutOfTime):
        draw(Endpoint(url, answer="$.output", concurrency=2), 0, 4, generator())
