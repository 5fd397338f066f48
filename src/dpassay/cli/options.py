"""What all commands have in common: counts that may be written as 1e5, --quiet, and help in groups."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperGroup
from typer.models import OptionInfo

from dpassay.cli import common
from dpassay.cli.coercion import converted_if_needed
from dpassay.errors import InputError

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes on stderr, only errors.")]


def _counting(least: float | None, most: float | None) -> Callable[[str | int], int]:
    """A reader of counts on the command line. It checks the bounds itself: typer drops them if there is a parser."""

    def count(given: str | int) -> int:
        try:
            found = common.whole_number(given)
        except InputError as error:
            raise typer.BadParameter(str(error)) from None
        if least is not None and found < least:
            raise typer.BadParameter(f"{given} is less than {least:,.0f}")
        if most is not None and found > most:
            raise typer.BadParameter(f"{given} is more than {most:,.0f}")
        return found

    return count


def shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with --quiet, whose integers may be written as 1e5."""
    shown = signature(command, eval_str=True)
    quiet = Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    parameters = [*map(_counted, shown.parameters.values()), quiet]

    @wraps(command)
    def run(*given: Any, quiet: bool = False, **options: Any) -> None:
        common.be_quiet(quiet)
        command(*given, **options)

    vars(run)["__signature__"] = shown.replace(parameters=parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _counted(parameter: Parameter) -> Parameter:
    """An option that takes an integer, which may be written as 1e5; any other parameter unchanged."""
    kind, *more = get_args(parameter.annotation) or (None,)
    if kind not in (int, int | None) or not more or not isinstance(more[0], OptionInfo):
        return parameter
    option = copy(more[0])
    option.parser, option.metavar = _counting(option.min, option.max), option.metavar or "N"
    return parameter.replace(annotation=Annotated[kind, option])


class Commands(TyperGroup):
    """Commands in groups, in the order in which they were added, each with its whole summary."""

    def get_params(self, ctx: Any) -> list[Any]:
        return converted_if_needed(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            if not command.hidden:
                group = getattr(command, "rich_help_panel", None) or "Commands"
                groups.setdefault(str(group), []).append((name, command.get_short_help_str(limit=1000)))
        width = max((len(name) for rows in groups.values() for name, _ in rows), default=0)
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in rows])
