"""What all commands have in common: counts that may be written as 1e5, --quiet, and help in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import Annotated, Any, ClassVar, get_args

import typer
from typer.core import TyperGroup
from typer.models import OptionInfo

from dpassay.cli import common
from dpassay.cli.coercion import Command, converted_if_needed
from dpassay.cli.usage import usage_errors
from dpassay.errors import InputError, did_you_mean

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


# The help shows the groups, and the commands of each, in this order. A command's module is imported when it is used;
# how its docstring begins stands here too, so that the help needs none of them.
GROUPS = {
    "Judge a claim": {
        "check": ("formula.check:check", "Check a claim: is the mechanism as private as claimed?"),
        "audit": ("code.audit:audit", "Run a mechanism and try to refute its claim from its outputs."),
        "trace": (
            "code.trace:trace",
            "Run code and report which line draws which noise, what it is added to, and the resulting epsilon.",
        ),
        "scan": (
            "code.scan:scan",
            "Find the mechanisms of a folder or a package, and the mistakes in them, by reading the code.",
        ),
        "verify": (
            "formula.verify:verify",
            "Re-check a certificate with independent arithmetic, or replay a saved audit or trace.",
        ),
        "audit-training": (
            "code.training:audit_training",
            "Audit the guarantee of a training run with canaries: artificial units, each included with probability ½.",
        ),
        "serve": ("serve:serve", "Show a claim on a web page: move ε, see the verdict and the pictures."),
    },
    "Published claims": {
        "gallery": ("formula.gallery:gallery", "Every published claim with its verdict."),
        "show": (
            "formula.gallery:show",
            "Show one claim: who claimed what, why it fails or holds, the counterexample and the repairs.",
        ),
        "packages": ("code.packages:packages", "Mechanisms of published packages, checked as released."),
        "reproduce": (
            "formula.reproduce:reproduce",
            "Reproduce figures and tables of the papers, next to the published numbers.",
        ),
    },
    "Guarantees and noise": {
        "compose": (
            "formula.calibrate:compose",
            "Compose the privacy loss of several answers about the same data: basic and exact composition.",
        ),
        "calibrate": ("formula.calibrate:app", "Find the least noise for a guarantee."),
    },
    "Text systems and private training": {
        "rewrite": (
            "text.rewrite:rewrite",
            "Rewrite texts, one per line and in the same order, so that each is protected by differential privacy.",
        ),
        "utility": ("text.utility:utility", "Measure the utility of rewritten text, next to its true epsilon."),
        "reconstruct": (
            "text.reconstruct:reconstruct",
            "Guess the original of a rewritten text: the attack that 'dpassay audit --model' uses.",
        ),
        "attack": (
            "text.attack:attack",
            "Attack a model or a rewriter: how often is an attack right, and which epsilon does that show?",
        ),
        "corpus": (
            "text.corpora:corpus",
            "Write the shipped corpus of flight-booking utterances, convert another corpus, or count what is in one.",
        ),
        "train": (
            "text.train:app",
            "Train a text system on a corpus; 'dpassay train lm' trains a language model with privacy.",
        ),
    },
}


class Commands(TyperGroup):
    """Commands in the order in which they were added, each with its whole summary."""

    groups: ClassVar[Mapping[str, Iterable[str]]] = {}

    def get_params(self, ctx: Any) -> list[Any]:
        return converted_if_needed(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with usage_errors(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named, or a sentence with the nearest one."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], known) or "."
            raise InputError(f"there is no command {args[0]!r}{hint} '{ctx.command_path} --help' lists them")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for group, names in (self.groups or {"Commands": self.list_commands(ctx)}).items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), self.summary(ctx, name)) for name in names])

    def summary(self, ctx: Any, name: str) -> str:
        """The first sentence of a command's help."""
        command: Any = self.get_command(ctx, name)
        return str(command.get_short_help_str(limit=1000))


class CommandGroups(Commands):
    """All commands, in groups."""

    groups = GROUPS

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in self.groups.values() for name in names]

    def summary(self, ctx: Any, name: str) -> str:
        return next(homes[name][1] for homes in GROUPS.values() if name in homes)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        for homes in GROUPS.values():
            if cmd_name in homes and cmd_name not in self.commands:
                self.commands[cmd_name] = _imported(cmd_name, homes[cmd_name][0])
        return super().get_command(ctx, cmd_name)


def _imported(name: str, home: str) -> Any:
    """A command, or a group of them, from its module."""
    module, _, attribute = home.partition(":")
    found = getattr(import_module(f"dpassay.cli.{module}"), attribute)
    holder = typer.Typer(add_completion=False, rich_markup_mode=None)
    holder.callback()(lambda: None)  # typer takes a program with one command for that command
    if isinstance(found, typer.Typer):
        for registered in found.registered_commands:
            if registered.callback is not None:
                registered.callback, registered.cls = shared_options(registered.callback), Command
        holder.add_typer(found, name=name)
    else:
        holder.command(name, cls=Command)(shared_options(found))
    group: Any = typer.main.get_command(holder)
    return group.commands[name]
