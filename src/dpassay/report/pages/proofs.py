"""The proofs that a page carries, so that it can be read without the repository."""

from collections.abc import Iterable
from pathlib import Path

from dpassay.core.theorems import Theorem

HERE = Path(__file__).parents[1]
PLACES = (HERE / "proofs", HERE.parents[2] / "docs" / "proofs")  # as installed; in the repository


def proof_texts(theorems: Iterable[Theorem]) -> list[tuple[str, str]]:
    """The name of each theorem, once, with its page: Markdown, formulas in LaTeX.

    >>> [(name, text.splitlines()[0]) for name, text in proof_texts([Theorem.LAPLACE, Theorem.LAPLACE])]
    [('laplace', '# Laplace noise')]
    """
    return [(theorem.value, text) for theorem in dict.fromkeys(theorems) if (text := _text(theorem))]


def _text(theorem: Theorem) -> str:
    for folder in PLACES:
        path = folder / f"{theorem.value}.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return ""
