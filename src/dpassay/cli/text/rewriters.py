"""The options that name a rewriter, for all commands that take one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.text.rewriters.catalogue import Specification

RewriterName = Annotated[
    str | None,
    typer.Option(
        "--model", help="A rewriter: its name, the folder of a trained model, or NAME,SETTING=VALUE; docs/systems."
    ),
]
RewriterPath = Annotated[
    str | None,
    typer.Option("--python", help="A rewriter of your own, or a function that makes one: package.module:name."),
]
RewriterSettings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the rewriter, NAME=VALUE; repeatable.")
]
MechanismName = Annotated[
    str | None,
    typer.Option(
        help="For a trained ADePT model: gaussian, l1, sqrt-n, k-norm, vmf, adept-as-published, or none (no privacy)."
    ),
]
ReleaseEpsilon = Annotated[
    str | None, typer.Option("--epsilon", "-e", help="The epsilon of the mechanism, as its authors define it.")
]
TrueEpsilon = Annotated[
    str | None, typer.Option("--true-epsilon", help="Instead: the epsilon that must hold for one text.")
]
ReleaseDelta = Annotated[
    float | None, typer.Option("--delta", "-d", help="The delta, where noise is Gaussian. Default: 1e-6.")
]


def specification(
    model: str | None,
    python: str | None = None,
    mechanism: str | None = None,
    settings: list[str] | None = None,
    device: str | None = None,
) -> Specification:
    """The rewriter that the options name."""
    from dpassay.text.rewriters.catalogue import Specification

    if (model is None) == (python is None):
        raise InputError("specify one rewriter: --model NAME or FOLDER, or --python package.module:name")
    if python is not None and ":" not in python:
        raise InputError(f"give package.module:name, such as mine.rewriters:shuffle; got {python!r}")
    more: dict[str, Any] = {"mechanism": mechanism}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set takes NAME=VALUE, got {setting!r}")
        more[key.strip()] = value.strip()
    found = Specification.read(python or model or "", more)
    if device not in (None, "cpu"):
        if not found.takes("device"):
            raise InputError(f"{found.name} has no device to choose: leave --device out")
        found = Specification(found.name, {**found.settings, "device": str(device)})
    return found


def epsilon_of(epsilon: str | None, true_epsilon: str | None) -> tuple[float | None, bool]:
    """The requested ε, and whether it is the one that must hold for a text."""
    if epsilon is not None and true_epsilon is not None:
        raise InputError("give --epsilon or --true-epsilon, not both")
    given = true_epsilon if epsilon is None else epsilon
    if given is None:
        return None, False
    try:
        value = float(given)
    except ValueError:
        raise InputError(f"epsilon must be a number, got {given!r}") from None
    if not 0 < value < float("inf"):
        raise InputError(f"epsilon must be a positive number, got {given}")
    return value, true_epsilon is not None


def rewriter_or_object(model: str | None, python: str | None) -> tuple[str | None, str | None]:
    """What --model and --python name; a rewriter named by --python is a model too."""
    if model is not None or python is None:
        return model, python
    from dpassay.audit.mechanisms.rewriting import is_rewriter
    from dpassay.audit.mechanisms.targets import load_object

    return (python, None) if is_rewriter(load_object(python)) else (None, python)
