"""The server: right verdicts, a sentence for every bad request, and a hundred requests at a time."""

from __future__ import annotations

import json
import math
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx
import pytest

import dpassay
from dpassay.claims.registry import REGISTRY
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from processes import started

LAPLACE = urlencode({"pipeline": "query(l1, 1) | laplace(1)", "epsilon": "1"})
SGD = "poisson(0.01) | clip(l2, 1) | gaussian(1) | times(1000)"


@pytest.mark.parametrize(
    ("pipeline", "stated", "word"),
    [
        ("radial(l2, 1/eps)", {"metric": "l2", "dim": 300, "epsilon": 10}, "proven"),
        (SGD, {"epsilon": 2, "delta": "1e-5"}, "proven"),
        (SGD, {"epsilon": "1.8", "delta": "1e-5"}, "refuted"),
        ("clamp(-5, 5) | softmax(1)", {"dim": 50_000, "epsilon": 20}, "proven"),
        ("clamp(-5, 5) | softmax(1)", {"dim": 50_000, "epsilon": 19}, "refuted"),
        ("softmax(1)", {"dim": 50_000, "epsilon": 20}, "refuted"),
    ],
)
def test_verdicts(served, pipeline: str, stated: dict[str, Any], word: str) -> None:  # type: ignore[no-untyped-def]
    found = served.check(pipeline, **stated)
    assert found["word"] == found["verdict"]["verdict"] == word
    assert set(found["pictures"]) == {"outputs", "loss", "curve", "balls"}
    if pipeline.startswith("clamp"):  # one logit up and all others down, against the reverse
        others = 49_999
        truth = 10 + math.log((math.exp(-5) + others * math.exp(5)) / (math.exp(5) + others * math.exp(-5)))
        assert found["lower"] == pytest.approx(truth)
    if pipeline == "softmax(1)":
        assert found["lower"] is None


def test_the_whole_answer(served) -> None:  # type: ignore[no-untyped-def]
    found = served.check("clip(l2, C) | laplace(2*C/eps)", C=1, dim=32, epsilon=1)
    assert found["lower"] == pytest.approx(math.sqrt(32))  # √n, docs/proofs/laplace.md
    assert found["headline"].startswith("Refuted: ")
    assert "0.176777 × 32" in found["witness"]["pair"]
    assert any("laplace(11.3137" in repair["mechanism"] for repair in found["repairs"])
    assert found["copy"]["command"].startswith("dpassay check --pipeline 'clip(l2, C) | laplace(2*C/eps)' --set C=1")
    assert found["latex"].startswith(r"\begin{tabular}")
    space: dict[str, Any] = {}
    exec(found["copy"]["python"].removesuffix("print(verdict)"), space)
    assert space["verdict"].refuted
    assert [ball["full"] for ball in found["pictures"]["balls"]["balls"]] == pytest.approx([2, 2 * math.sqrt(32), 64])


def test_downloads(served, tmp_path) -> None:  # type: ignore[no-untyped-def]
    certificate, report = (served.get(path, LAPLACE) for path in ("certificate", "report"))
    for answer, name in ((certificate, "certificate.json"), (report, "report.html")):
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    (tmp_path / "claim.json").write_text(certificate.text)
    assert dpassay.verify(tmp_path / "claim.json").ok
    assert "dpassay check --pipeline" in report.text


def test_runs_come_in(served) -> None:  # type: ignore[no-untyped-def]
    answer = served.get("api/audit", urlencode({"pipeline": "query(l1, 1) | laplace(1)", "epsilon": "0.2"}))
    looks = [json.loads(line) for line in answer.text.splitlines()]
    assert [look["runs"] for look in looks] == sorted(look["runs"] for look in looks)
    assert [look["bound"] for look in looks] == sorted(look["bound"] for look in looks)
    assert looks[-1]["refuted"]
    assert 0.2 < looks[-1]["bound"] <= 1  # the true ε; above it with probability 0.001 at most, and the seed is fixed


def test_the_gallery_leads_to_every_claim(served) -> None:  # type: ignore[no-untyped-def]
    page = served.get("gallery").text
    assert all(f'href="/gallery/{name}"' in page for name in REGISTRY)
    story = served.get("gallery/adept").text
    assert "5.65685" in story
    assert "from 1:1 to 286:1" in story  # e^5.65685 is 286.2
    assert 'href="https://aclanthology.org/2021.eacl-main.207/"' in story
    assert served.get("gallery/nobody").status_code == 404
    assert served.get("nothing").status_code == 404


def test_claims_lead_to_their_proofs_and_proofs_to_one_another(served) -> None:  # type: ignore[no-untyped-def]
    linked = re.findall(r'href="(/proofs/[\w-]+)"', served.get("gallery/adept").text)
    assert linked[0] == "/proofs/diameters"
    for theorem in Theorem:
        proof = served.get(f"proofs/{theorem.value}")
        assert proof.status_code == 200
        assert proof.text.count("<h1>") == 1
        assert "$" not in re.sub(r"<code>.*?</code>", "", proof.text)  # formulas are typeset
        linked += re.findall(r'href="(/proofs/[\w-]+)"', proof.text)
    assert {link.removeprefix("/proofs/") for link in linked} <= {theorem.value for theorem in Theorem}
    assert len(linked) > len(Theorem)
    assert served.get("proofs/nothing").status_code == 404


@pytest.mark.parametrize("path", ["", "gallery/adept", f"api/glance?{LAPLACE}", "api/glance", "static/page.js"])
def test_headers(served, path: str) -> None:  # type: ignore[no-untyped-def]
    headers = served.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


def test_other_hosts_and_other_sites_are_refused(served) -> None:  # type: ignore[no-untyped-def]
    elsewhere = (
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "192.168.1.5:8765",
        "[fe80::1]",
    )
    for host in (*elsewhere, "evil.example:8765", "0.0.0.0:8765"):
        answer = served.get(f"api/glance?{LAPLACE}", headers={"Host": host})
        assert answer.status_code in (400, 403), host
    for host in ("localhost:1", "127.0.0.1", "[::1]:8765"):
        assert served.get("", headers={"Host": host}).status_code == 200, host
    assert httpx.post(f"{served.address}api/glance?{LAPLACE}", content=b"x", timeout=60).status_code == 405


@pytest.mark.parametrize("site", ["cross-site", "same-site"])  # another port of this machine is the same site
@pytest.mark.parametrize("path", ["api/glance", "api/check", "api/audit", "report", "certificate", "gallery/adept"])
def test_other_sites_cannot_make_the_server_compute(served, path: str, site: str) -> None:  # type: ignore[no-untyped-def]
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    assert served.get(path, LAPLACE, headers=headers).status_code == 403
    assert served.get("", headers=headers).status_code == 200  # the page itself computes nothing
    followed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-User": "?1"}
    assert served.get(path, LAPLACE, headers=followed).status_code == (200 if path.startswith("gallery") else 403)


@pytest.mark.long
def test_an_audit_without_runs_says_why(served) -> None:  # type: ignore[no-untyped-def]
    asked = {"pipeline": "clip(l2, 1) | laplace(2)", "dim": "20000", "epsilon": "1"}
    answer = served.get("api/audit", urlencode(asked))
    *_, last = [json.loads(line) for line in answer.text.splitlines()]
    assert last.get("runs", 0) > 0 or "error" in last, answer.text


# ── What is wrong gets a sentence ───────────────────────────────────────────────────────────────

NUMBERS = ["nan", "inf", "-inf", "-1", "1e999", "1e-999", "9" * 50, "0x10", "1,5", "1_000", "", " ", "٣", "ε", "dim*2"]
NUMBERS += ["__import__('os')", "1;2", "1e5000000000", "--1", "1 2", "true", "null"]
TEXTS = [
    *("", "   ", "x" * 2001, "clip(l2, 1", "nothing(1)", "clip(l2, 1) | ", "|||", "laplace(1/0)", "laplace(-1)"),
    *("laplace(" + "(" * 300 + "1" + ")" * 300 + ")", "laplace(9^9^9^9)", "laplace(exp(1e9))", "💥 | laplace(1)"),
    *("laplace(1)\x00", "<script>alert(1)</script>", "'; drop table claims", "../../etc/passwd", "mine.toml"),
    *("adept", "file:///etc/passwd", "clip(l2, C) | laplace(2)", "poisson(2) | gaussian(1)", "santext"),
    *(
        "gaussian(1) | times(1e30)",
        "laplace(1) | " * 120 + "laplace(1)",
        "open('/etc/passwd')",
        "clip(l2, 1) laplace(1)",
    ),
]
FIELDS = [
    *({"file": "/etc/passwd"}, {"python": "os:system"}, {"vocabulary": "x.txt"}, {"dim": "0"}, {"dim": "1e3"}),
    *({"dim": "99999999"}, {"dim": "-3"}, {"delta": "1"}, {"delta": "2"}, {"metric": "l7"}, {"neighbours": "everyone"}),
    *({"neighbours": "group(0)"}, {"set": "C"}, {"set": "C="}, {"set": "1=C"}, {"set": "eps=1"}, {"set": "C=<b>"}),
    *({"set": "C=nan"}, {"rho": "1"}, {"mu": "1"}, {"order": "1"}, {"order": "2", "metric": "l2"}, {"set": "unused=1"}),
    *({"<script>alert(1)</script>": "1"}, {"set": "C" * 50 + "=1"}, {"neighbours": "x" * 5000}),
]
BAD = [
    *({"pipeline": "query(l1, 1) | laplace(1)", "epsilon": number} for number in NUMBERS),
    *({"pipeline": text, "epsilon": "1", "dim": "4"} for text in TEXTS),
    *({"pipeline": "clip(l2, 1) | laplace(2)", "epsilon": "1", "dim": "4", **more} for more in FIELDS),
]
RAW = ["%ff%fe", "pipeline=%ff&epsilon=1", "&".join(["set=a=1"] * 50), "pipeline=" + "a" * 60_000, "=&=&=", "%"]
RAW += ["pipeline=laplace(1)&pipeline=laplace(2)&epsilon=1", "epsilon=1", "pipeline=query(l1,1)%7Claplace(1)"]


def assert_a_sentence(answer: httpx.Response, query: str) -> None:
    assert 400 <= answer.status_code < 500, (query[:200], answer.status_code, answer.text[:300])
    assert len(answer.text) < 2_000
    for forbidden in ("Traceback", 'File "', ".py", "Exception"):
        assert forbidden not in answer.text, answer.text
    if answer.headers["content-type"] == "application/json":
        assert len(json.loads(answer.text)["error"]) > 10


@pytest.mark.parametrize("path", ["api/glance", "api/check", "api/audit", "certificate"])
def test_bad_requests_get_a_sentence(served, path: str) -> None:  # type: ignore[no-untyped-def]
    asked = [*map(urlencode, BAD), *RAW] if path == "api/glance" else [*map(urlencode, BAD[::9]), *RAW[::4]]
    with ThreadPoolExecutor(8) as threads:
        for query, answer in zip(asked, threads.map(lambda query: served.get(path, query), asked), strict=True):
            assert_a_sentence(answer, query)


def test_an_endless_address_ends(served) -> None:  # type: ignore[no-untyped-def]
    place = urlsplit(served.address)
    with socket.create_connection((place.hostname, place.port), timeout=60) as connection, suppress(OSError):
        connection.sendall(b"GET /api/glance?pipeline=")
        for _ in range(1024):
            connection.sendall(b"a" * 1024)
    assert served.get("api/glance", LAPLACE).status_code == 200


def test_an_error_points_at_the_character(served) -> None:  # type: ignore[no-untyped-def]
    answer = served.get("api/glance", urlencode({"pipeline": "clip(l2, 1) | clop(1)", "epsilon": 1, "dim": 4})).json()
    assert "did you mean 'clip'" in answer["error"]
    assert answer["at"] == 14


def test_what_is_given_comes_back_escaped(served) -> None:  # type: ignore[no-untyped-def]
    for path in ("", "gallery/" + quote("<script>alert(1)</script>", safe="")):
        page = served.get(path, urlencode({"pipeline": "<script>alert(1)</script>", "epsilon": 1})).text
        assert "<script>alert" not in page


# ── Many at a time ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_hundred_at_a_time(served) -> None:  # type: ignore[no-untyped-def]
    def ask(i: int) -> tuple[int, str]:
        query = {"pipeline": "laplace(1)", "metric": "l1", "dim": "2", "epsilon": f"{0.5 + i / 100:.2f}"}
        answer = served.get("api/glance", urlencode(query))
        return answer.status_code, answer.json()["word"]

    ask(0)
    with ThreadPoolExecutor(100) as threads:
        first = list(threads.map(ask, range(100)))
        before = served.memory()
        asked = [threads.submit(ask, i) for i in range(100, 200)]
        assert served.get("static/page.js").status_code == 200  # not blocked by those
        second = [one.result() for one in asked]
        again = list(threads.map(ask, range(200)))
    # Laplace noise of scale 1 loses exactly 1 per unit of l1 distance.
    assert first + second == again == [(200, "refuted" if i < 50 else "proven") for i in range(200)]
    assert served.memory() < before + (200 << 20)


def test_links_of_the_gallery_state_the_claim(served) -> None:  # type: ignore[no-untyped-def]
    story = served.get("gallery/adept").text
    link = next(part for part in story.split('"') if part.startswith("/?pipeline="))
    stated = dict(parse_qsl(urlsplit(link.replace("&amp;", "&")).query))
    assert stated == {"pipeline": REGISTRY["adept"].pipeline, "set": "C=1", "dim": "32", "epsilon": "1"}


def test_a_taken_port_is_a_sentence(served) -> None:  # type: ignore[no-untyped-def]
    port = str(urlsplit(served.address).port)
    command = [sys.executable, "-m", "dpassay", "serve", "--no-open", "--port", port]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 2
    assert run.stderr.startswith(f"dpassay: cannot listen on 127.0.0.1, port {port}: ")


def test_a_host_that_others_can_reach_is_warned_about() -> None:
    command = [sys.executable, "-m", "dpassay", "serve", "--no-open", "--port", "0", "--host", "0.0.0.0"]
    with started(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("warning: 0.0.0.0 can be reached from other machines")
        assert process.stderr.readline().startswith("Serving at http://0.0.0.0:")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import util

    from dpassay.cli.serve import serve

    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "uvicorn" else found(name))
    with pytest.raises(InputError, match=r"pip install 'dpassay\[serve\]'"):
        serve()
