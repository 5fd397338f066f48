"""Values of options without pydantic, where nothing has to be converted.

typer converts every value by pydantic, also defaults: to import it and to make an adapter for each option of a command
takes longer than many a command. Texts, counts that have a parser, defaults, flags and options that are absent need no
conversion by it. A typer that works in another way is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_origin

import typer
from typer.core import TyperCommand

from dpassay.cli.usage import expected, format_options, usage_errors


class Command(TyperCommand):
    """A command whose options are converted only if they have to be."""

    def get_params(self, ctx: Any) -> list[Any]:
        return converted_if_needed(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with usage_errors(ctx):
            return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        format_options(self, ctx, formatter)


def converted_if_needed(parameters: list[Any]) -> list[Any]:
    """The parameters of a command, which are converted only if they have to be."""
    for parameter in parameters:
        convert = getattr(parameter, "get_runtime_param", None)
        described = getattr(parameter, "type_descriptor", None)
        if convert is not None and not isinstance(convert, _IfNeeded):
            parse = getattr(getattr(described, "parameter_info", None), "parser", None)
            vars(parameter)["get_runtime_param"] = _IfNeeded(convert, getattr(described, "annotation", None), parse)
    return parameters


class _IfNeeded:
    """In place of what converts the values of one option: it makes that when a value has to be converted."""

    def __init__(self, convert: Callable[[], Any], kind: Any, parse: Callable[[str], Any] | None) -> None:
        self.convert, self.kind, self.parse = convert, kind, parse
        self.plain = kind in (int, float) or get_origin(kind) is Literal  # a default is what it says

    def __call__(self) -> Any:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if type(value) is str and self.parse is not None and not (param.multiple or param.nargs != 1):
            return _parsed(self.parse, value, param, ctx)
        if (type(value) is str and self.kind is str) or (type(value) is bool and self.kind is bool):
            return value
        if self.kind == list[str] and isinstance(value, list | tuple) and set(map(type, value)) <= {str}:
            return list(value)
        if type(value) is type(param.default) and value == param.default and self.plain:
            return value
        try:
            return self.convert().coerce(value, param=param, ctx=ctx)
        except typer.BadParameter as refused:
            refused.message = expected(self.kind, value) or refused.message
            raise


def _parsed(parse: Callable[[str], Any], value: str, param: Any, ctx: Any) -> Any:
    """What an option's own parser makes of a text; what it refuses is said of the option."""
    try:
        return parse(value)
    except typer.BadParameter as refused:
        refused.param, refused.ctx = param, ctx
        raise
