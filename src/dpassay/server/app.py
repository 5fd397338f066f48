"""The application: pages, questions and downloads. It parses pipelines, and touches no files or code of the user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dpassay.claims.registry import REGISTRY, SYSTEMS
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError, escape_control_chars
from dpassay.pipeline.parser import FUNCTIONS
from dpassay.pipeline.stages.base import GROUPS, STAGES
from dpassay.report.pages.proofs import proof_page
from dpassay.server.asked import PageQuestion, of_claim, read
from dpassay.server.guard import Guard, refusal
from dpassay.server.pool import Failed, WorkerPool

T = TypeVar("T")
GALLERY_LIMIT = 120.0  # seconds for all claims of the registry, once
STARTERS = (
    ("ADePT: clipped in l2, Laplace noise for l1", "adept"),
    ("A counting query with Laplace noise", "laplace"),
    ("Gaussian noise, exactly enough", "gaussian-exact"),
    ("Gaussian noise by the classic formula, beyond its proof", "gaussian-large-eps"),
    ("Randomized response", "randomized-response"),
)
OTHERS = (
    (
        "DP-SGD: 1,000 sampled Gaussian steps",
        PageQuestion(
            "poisson(0.01) | clip(l2, 1) | gaussian(sigma) | times(1000)", {"sigma": "1"}, 10, epsilon="2", delta="1e-5"
        ),
    ),
    (
        "A token drawn from clamped logits",
        PageQuestion("clamp(-B, B) | softmax(T)", {"B": "5", "T": "1"}, 50_000, epsilon="20"),
    ),
    ("Metric DP: noise by distance in l2", PageQuestion("radial(l2, 1/eps)", {}, 300, metric="l2", epsilon="10")),
)


@cache
def _templates() -> Environment:
    own = PackageLoader("dpassay.server")
    return Environment(
        loader=ChoiceLoader([own, PrefixLoader({"report": PackageLoader("dpassay.report")})]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _html(template: str, status: int = 200, **values: Any) -> Response:
    return Response(_templates().get_template(template).render(**values), status, media_type="text/html")


def make_app(host: str = "127.0.0.1", pool: WorkerPool | None = None) -> Guard:
    """The application, for a server that is bound to `host`.

    >>> type(make_app()).__name__
    'Guard'
    """
    workers = pool or WorkerPool()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await workers.start()
        yield
        await workers.close()

    routes = [
        Route("/", _page),
        Route("/api/glance", _glance),
        Route("/api/check", _check),
        Route("/api/audit", _audit),
        Route("/certificate", _certificate),
        Route("/report", _report),
        Route("/gallery", _gallery),
        Route("/gallery/{name}", _story),
        Route("/proofs/{name}", _proof),
        Route("/learn", _learn),
        Route("/static/chart.css", _of_the_report),
        Route("/static/gallery.js", _of_the_report),
        Mount("/static", StaticFiles(directory=str(files("dpassay.server") / "static"))),
    ]
    handlers: dict[Any, Any] = {HTTPException: _missing, InputError: _bad, Failed: _failed}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.state.pool = workers
    return Guard(app, host)


def _asked(request: Request) -> PageQuestion:
    """The claim in the query string."""
    try:
        text = request.scope["query_string"].decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=40)
    except ValueError:
        raise InputError("the address cannot be read: it must be UTF-8 with at most 40 fields") from None
    return read(pairs)


def _pool(request: Request) -> WorkerPool:
    pool: WorkerPool = request.app.state.pool
    return pool


async def _whole(request: Request, question: dict[str, Any], limit: float | None = None) -> list[dict[str, Any]]:
    """All parts of an answer; the question is withdrawn if the client goes."""
    return await _unless_gone(request, _pool(request).whole(question, limit, _client(request)))


def _client(request: Request) -> str:
    return request.client.host if request.client else ""


async def _unless_gone(request: Request, wanted: Coroutine[Any, Any, T]) -> T:
    """Wait for something as long as the client does."""
    asked, gone = asyncio.ensure_future(wanted), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((asked, gone), return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            raise Failed("The client has gone.", 499)
        return asked.result()
    finally:
        for task in (asked, gone):
            task.cancel()
        await asyncio.gather(asked, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    """Return as soon as the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _page(request: Request) -> Response:
    """The page; it requests the verdict on the claim in its address."""
    words = {word for form in STAGES.values() for p in form.syntax.parameters.values() for word in p.words}
    reserved = sorted({"pi", "eps", "delta", "dim", *FUNCTIONS, *STAGES, *words})
    starters = [(title, of_claim(REGISTRY[name]).address) for title, name in STARTERS]
    starters += [(title, asked.address) for title, asked in OTHERS]
    return _html("page.html", starters=starters, systems=_options(), reserved=" ".join(reserved), stages=_stages())


@cache
def _options() -> list[tuple[str, list[tuple[str, str]]]]:
    """Every claim of the registry by its system: its title, and the address of the page that states it."""
    return [
        (system.title, [(claim.title or claim.name, of_claim(claim).address) for claim in system.claims])
        for system in SYSTEMS.values()
    ]


@cache
def _stages() -> list[tuple[str, list[tuple[str, str]]]]:
    """The stages in groups, each with its syntax and what it does."""
    found, least = [], 0
    for below, title in GROUPS:
        forms = [form for form in STAGES.values() if least <= form.syntax.order < below]
        least = below
        if forms:
            found.append((title, [(form.syntax.usage, form.help) for form in forms]))
    return found


async def _glance(request: Request) -> Response:
    """The verdict in a sentence, with the pictures."""
    (quick,) = await _whole(request, {"kind": "glance", "asked": _asked(request).to_data()})
    return _json(quick)


async def _check(request: Request) -> Response:
    """The same with the witness, the repairs and the whole verdict."""
    asked = _asked(request).to_data()
    (quick,) = await _whole(request, {"kind": "glance", "asked": asked})
    (full,) = await _whole(request, {"kind": "check", "asked": asked})
    return _json({**quick, **full})


async def _audit(request: Request) -> Response:
    """The sanity check as runs come in, each look a line of JSON.

    A failure before the first line is an HTTP error; a later one is reported in the last line.
    """
    parts = _pool(request).parts({"kind": "audit", "asked": _asked(request).to_data()}, client=_client(request))

    async def begin() -> dict[str, Any] | None:
        return await anext(parts, None)

    first = await _unless_gone(request, begin())

    async def lines() -> AsyncIterator[str]:
        try:
            if first is not None:
                yield _line(first)
            async for part in parts:
                yield _line(part)
        except Failed as error:
            yield _line({"error": str(error)})

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})


def _line(part: dict[str, Any]) -> str:
    return json.dumps(part, ensure_ascii=False) + "\n"


def _json(data: Any) -> Response:
    return Response(json.dumps(data, ensure_ascii=False), media_type="application/json")


async def _certificate(request: Request) -> Response:
    return await _download(request, "certificate", "certificate.json", "application/json")


async def _report(request: Request) -> Response:
    return await _download(request, "report", "report.html", "text/html")


async def _download(request: Request, kind: str, name: str, media_type: str) -> Response:
    (part,) = await _whole(request, {"kind": kind, "asked": _asked(request).to_data()})
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(part["text"], media_type=media_type, headers=headers)


async def _gallery(request: Request) -> Response:
    (gallery,) = await _whole(request, {"kind": "gallery"}, GALLERY_LIMIT)
    rows = [row for system in gallery["systems"] for row in system["rows"]]
    refuted = sum(row["word"] == "refuted" for row in rows)
    return _html("gallery.html", rows=rows, refuted=refuted, **gallery)


async def _of_the_report(request: Request) -> Response:
    """The style of the gallery's figure and its search, which are the report's."""
    name = request.url.path.rpartition("/")[2]
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    return Response((files("dpassay.report") / "templates" / name).read_text("utf-8"), media_type=kind)


async def _learn(request: Request) -> Response:
    """What ε is: pictures with sliders, exercises and answers. The browser computes them."""
    return _html("learn.html")


async def _story(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in REGISTRY:
        said = f"There is no published claim called {escape_control_chars(name[:60])}."
        return _html("missing.html", 404, said=said)
    (story,) = await _whole(request, {"kind": "story", "name": name}, GALLERY_LIMIT)
    return _html("story.html", story=story)


async def _proof(request: Request) -> Response:
    """The proof behind a bound, with its formulas."""
    name = request.path_params["name"]
    if name not in {theorem.value for theorem in Theorem}:
        return _html("missing.html", 404, said=f"There is no proof called {escape_control_chars(name[:60])}.")
    return _html("proof.html", name=name, text=proof_page(Theorem(name)))


async def _missing(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404 and not request.url.path.startswith("/api/"):
        return _html("missing.html", 404, said="There is no such page.")
    return refusal(f"{error.detail}.".replace("..", "."), error.status_code)


async def _bad(request: Request, error: InputError) -> Response:
    return refusal(escape_control_chars(str(error))[:600])


async def _failed(request: Request, error: Failed) -> Response:
    more = {} if error.at is None else {"at": error.at}
    return refusal(str(error), error.status, **more)
