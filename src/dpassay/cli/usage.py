"""How the help of a command reads, and what is said of options that it cannot use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args, get_origin

import typer

from dpassay.errors import InputError, did_you_mean

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # typer has no public name for it

# The help shows the options of a command in these groups, if it has more than FEW.
FEW = 8
OPTION_GROUPS = {
    "Subject": "pipeline python interpreter command url model mechanism language_model package stub set dim stages "
    "schema list only from tests own encoder as_published",
    "Claim": "epsilon true_epsilon delta metric order rho mu neighbours people certificate",
    "Words": "vocabulary words unknown stop_words numbers",
    "Inputs": "pair inputs region text candidates generate corpus others original originals column author per_author "
    "odd_words hostile in skip_invalid test scores entities_from user_column held_out vocabulary_from_corpus lines "
    "baseline at_random",
    "Training": "privacy noise_multiplier rounds rate clip batch local_steps learning_rate noise_source entity_rate "
    "cell_clip most_users base adapter at_once canary_kind for_epsilon "
    "latent steps gradient_clip reading adversary fine_tune lambda integer fraction factor",
    "Runs": "run runs time fixed until_refuted search_runs shrink seed seeds seed_all fresh_seed alpha bits sample "
    "tight trials draws guesses resume workers cluster device time_limit plan canaries anytime limit check envs work "
    "record kind perplexity",
    "Services and programs": "header token_env",
    "Output": "out save statement html figure dark page pages exposure csv json latex markdown coq report sarif junit "
    "annotations require_decision top most statistics quiet help",
}

# What stands for an option's value in the help; otherwise its type decides.
VALUES = {
    "pipeline": "STAGES",
    "python": "MODULE:NAME",
    "interpreter": "PATH",
    "command": "PROGRAM",
    "url": "URL",
    "model": "REWRITER",
    "set": "NAME=VALUE",
    "pair": "JSON",
    "request": "JSON",
    "epsilon": "NUMBER",
    "true_epsilon": "NUMBER",
    "delta": "NUMBER",
    "order": "NUMBER",
    "rho": "NUMBER",
    "mu": "NUMBER",
    "time": "TIME",
    "cluster": "ADDRESS",
    "device": "DEVICE",
    "header": "'NAME: VALUE'",
    "token_env": "VARIABLE",
    "column": "NAME",
    "author": "NAME",
}
TYPES = {"str": "TEXT", "path": "PATH", "float": "NUMBER", "int": "N"}


def format_options(command: Any, ctx: Any, formatter: Any) -> None:
    """The arguments, then the options in groups; a few options need none."""
    arguments: list[tuple[str, str]] = []
    options: list[tuple[str, tuple[str, str]]] = []
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        shown = (_with_value(parameter, record[0]), record[1])
        if parameter.param_type_name == "argument":
            arguments.append(shown)
        else:
            options.append((_group(parameter), shown))
    if arguments:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    wide = max((len(name) for _, (name, _) in options), default=0)
    for group in [*OPTION_GROUPS, "Options"] if len(options) > FEW else [None]:
        rows = [(name.ljust(wide), said) for its, (name, said) in options if group in (None, its)]
        if rows:
            with formatter.section(group or "Options"):
                formatter.write_dl(rows)


def _long_name(parameter: Any) -> str:
    return str(max(parameter.opts, key=len)).lstrip("-").replace("-", "_")


def _group(parameter: Any) -> str:
    if (getattr(parameter, "help", None) or "").startswith(("For --url", "For --command")):
        return "Services and programs"
    name = _long_name(parameter)
    return next((group for group, names in OPTION_GROUPS.items() if name in names.split()), "Options")


def _with_value(parameter: Any, shown: str) -> str:
    """An option's name with what its value is, in place of a type of Python."""
    if parameter.param_type_name == "argument":
        return re.sub(r" <[^>]*>(\.\.\.)?$", "", shown)
    value = VALUES.get(_long_name(parameter))
    return re.sub(
        r"<(?:list\[)?([^\]>]*)\]?>(?:\.\.\.)?$", lambda found: value or TYPES.get(found[1]) or found[1], shown
    )


@contextmanager
def usage_errors(ctx: Any) -> Iterator[None]:
    """What typer says of arguments that a command cannot use, as one sentence in the words of all other errors."""
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # not an error, but the help
            raise
        said = _sentence(error, ctx)
        raise InputError(
            f"{said}{'' if said.endswith('?') else ';'} '{ctx.command_path} --help' lists the options"
        ) from None


def _sentence(error: Any, ctx: Any) -> str:
    parameter, kind = getattr(error, "param", None), type(error).__name__
    name = _name(parameter) if parameter is not None else ""
    if kind == "NoSuchOption":
        group = hasattr(ctx.command, "list_commands")
        known = [
            option
            for one in ctx.command.get_params(ctx)
            for option in (*one.opts, *one.secondary_opts)
            if option != "--help" or group
        ]
        near = did_you_mean(error.option_name, known)
        if group and not near:
            return f"{error.option_name} must come after the command: {ctx.command_path} COMMAND {error.option_name}"
        return f"there is no option {error.option_name}{near}"
    if kind == "MissingParameter" and name:
        return f"{name} is missing"
    if kind == "BadParameter" and name:
        error.message = _plain(error.message)
        return f"{name}: {error.message}" if not error.message.startswith("must") else f"{name} {error.message}"
    said = error.format_message().rstrip(".")
    if found := re.match(r"Got unexpected extra arguments? ?(?:\(s\) )?\((.*)\)$", said):
        return f"unexpected argument {found[1]}"
    if found := re.match(r"Option '(.*)' requires an argument$", said):
        return f"{found[1]} needs a value"
    if found := re.match(r"Option '(.*)' does not take a value$", said):
        return f"{found[1]} takes no value"
    return f"{said[:1].lower()}{said[1:]}"


def _plain(message: str) -> str:
    """What older versions of typer say of a value, as `expected` puts it."""
    if found := re.match(r"'(.*)' is not a valid (int|integer|float)( range)?\.?$", message):
        return f"must be a {'whole ' * (found[2] != 'float')}number, got {found[1]}"
    if found := re.match(r"'(.*)' is not one of (.*?)\.?$", message):
        return f"must be one of {found[2].replace(chr(39), '')}, got {found[1]}"
    return message.rstrip(".")


def _name(parameter: Any) -> str:
    return str(parameter.name).upper() if parameter.param_type_name == "argument" else str(max(parameter.opts, key=len))


def expected(kind: Any, value: Any) -> str | None:
    """What a value of a kind must be, where it is not; None for a kind that says it better itself.

    >>> expected(float, "x")
    'must be a number, got x'
    """
    kinds = [one for one in get_args(kind) if one is not type(None)] if type(None) in get_args(kind) else [kind]
    kind = kinds[0] if len(kinds) == 1 else kind
    if get_origin(kind) is Literal:
        return f"must be one of {', '.join(map(str, get_args(kind)))}, got {value}"
    if kind not in (int, float):
        return None
    try:
        kind(value)
    except ValueError:
        return f"must be a {'whole ' * (kind is int)}number, got {value}"
    return None  # outside of its bounds
