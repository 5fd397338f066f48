"""What the shell completes: names of claims, stages, figures, packages and neighbors."""

from collections.abc import Iterable
from pathlib import Path


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def complete_claim(incomplete: str) -> list[str]:
    """Published claims, and .toml files of this folder.

    >>> complete_claim("adept-g")
    ['adept-gaussian']
    """
    from dpassay.claims.registry import REGISTRY

    folder = incomplete.rpartition("/")[0]
    files = [str(file) for file in sorted(Path(folder or ".").glob("*.toml"))]
    return _beginning(incomplete, [*REGISTRY, *files])


def complete_pipeline(incomplete: str) -> list[str]:
    """The stage that is being typed.

    >>> complete_pipeline("clip(l2, 1) | lap")
    ['clip(l2, 1) | laplace(']
    """
    from dpassay.pipeline.stages.base import STAGES

    before, bar, stage = incomplete.rpartition("|")
    blank = stage[: len(stage) - len(stage.lstrip())]
    head = f"{before}{bar}{blank}"
    return [f"{head}{name}{'(' * bool(STAGES[name].syntax.parameters)}" for name in _beginning(stage.strip(), STAGES)]


def complete_figure(incomplete: str) -> list[str]:
    """Figures that can be reproduced.

    >>> complete_figure("bay")
    ['bayes']
    """
    from dpassay.reproduce import FIGURES

    return _beginning(incomplete, [*FIGURES, "all"])


def complete_package(incomplete: str) -> list[str]:
    """Records of published packages."""
    from dpassay.packages.judging import recorded

    return _beginning(incomplete, recorded())


def complete_neighbours(incomplete: str) -> list[str]:
    """Relations of neighbors.

    >>> complete_neighbours("re")
    ['replace-record']
    """
    from dpassay.core.neighbours import KINDS

    return _beginning(incomplete, KINDS)
