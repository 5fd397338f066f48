"""The options for communicating with a program or an endpoint, for all commands that run one."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from dpassay.errors import InputError

Header = Annotated[
    list[str] | None,
    typer.Option("--header", help="For --url: a header, 'Name: value'; repeatable. Its value is never stored."),
]
TokenEnv = Annotated[
    str | None,
    typer.Option(help="For --url: the NAME of an environment variable whose value is sent as a bearer token."),
]
Request = Annotated[
    str | None,
    typer.Option(help="""For --url: the JSON to send, with "$input" for the input: '{"text": "$input"}'."""),
]
Answer = Annotated[
    str | None, typer.Option(help="For --url: where to find the output in the answer, such as '$.result[0]'.")
]
Concurrency = Annotated[int, typer.Option(help="For --url: number of concurrent requests.")]
Rate = Annotated[str | None, typer.Option(help="For --url: maximum request rate, such as 5/s, 100/m or 1000/h.")]
Retries = Annotated[
    int, typer.Option(help="For --url: how often a request is repeated after 429, 5xx or a broken connection.")
]
Lines = Annotated[
    bool,
    typer.Option("--lines", help="For --command: read the input and write the output as plain lines instead of JSON."),
]
Processes = Annotated[int, typer.Option(help="For --command: number of processes that run the program.")]
IndependentRows = Annotated[
    bool,
    typer.Option(
        "--independent-rows",
        help="For --command and --url: the n outputs of one answer are independent of one another.",
    ),
]
TimeLimit = Annotated[float, typer.Option(help="Seconds that a program or endpoint may take for an answer.")]

# For each option its type, its default, and what it is for.
OPTIONS: dict[str, tuple[Any, Any, str]] = {
    "header": (Header, None, "url"),
    "token_env": (TokenEnv, None, "url"),
    "request": (Request, None, "url"),
    "answer": (Answer, None, "url"),
    "concurrency": (Concurrency, 1, "url"),
    "rate": (Rate, None, "url"),
    "retries": (Retries, 5, "url"),
    "lines": (Lines, False, "command"),
    "processes": (Processes, 1, "command"),
    "independent_rows": (IndependentRows, False, "command or url"),
}


def subject_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `**asked` the options of programs and endpoints."""
    shown = signature(command, eval_str=True)
    named = [one for one in shown.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default, _) in OPTIONS.items()
    ]
    vars(command)["__signature__"] = shown.replace(parameters=[*named, *options])
    return command


def taken(asked: dict[str, Any]) -> dict[str, Any]:
    """These options, removed from all that were given."""
    return {name: asked.pop(name) for name in OPTIONS if name in asked}


def runnable(
    python: str | None,
    command: str | None,
    url: str | None,
    time_limit: float,
    given: dict[str, Any],
    with_claim: bool = False,
) -> Any:
    """The mechanism that --python, --command or --url name; None if none of them is given.

    `with_claim` keeps an object of a known library together with its claim.
    """
    if sum(option is not None for option in (python, command, url)) > 1:
        raise InputError("give one of --python, --command and --url")
    for name, value in given.items():
        _, default, of = OPTIONS[name]
        if value not in (default, None) and not any({"url": url, "command": command}[one] for one in of.split(" or ")):
            said = of.replace(" or ", " or --")
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} requires --{said}: specify that too, or leave {option} out")
    own = {name: value for name, value in given.items() if name != "header" and value is not None}
    if python is not None:
        from dpassay.audit.mechanisms.targets import load_python, load_subject

        return load_subject(python) if with_claim else load_python(python)
    if command is not None:
        from dpassay.audit.remote.programs import Program

        return Program(command, time_limit, **{name: own[name] for name in own if "command" in OPTIONS[name][2]})
    if url is None:
        return None
    from dpassay.audit.remote.endpoint import Endpoint, parse_header

    headers = [parse_header(line) for line in given.get("header") or []]
    if len({name.lower() for name, _ in headers}) < len(headers):
        raise InputError("a --header is given twice: " + ", ".join(name for name, _ in headers))
    mapped = {name: own[name] for name in own if "url" in OPTIONS[name][2]}
    return Endpoint(url, time_limit, headers=dict(headers), **mapped)
