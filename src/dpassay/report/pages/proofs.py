"""The proofs that a page carries, so that it can be read without the repository: HTML, with formulas as MathML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup, escape

from dpassay.core.theorems import Theorem
from dpassay.report.pages.mathml import UnknownFormula, to_mathml

HERE = Path(__file__).parents[1]
PLACES = (HERE / "proofs", HERE.parents[2] / "docs" / "proofs")  # as installed; in the repository
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
LINK = re.compile(r"\[([^]]*)\]\(([^)]*)\)")


def proof_texts(theorems: Iterable[Theorem]) -> list[tuple[str, Markup]]:
    """The name of each theorem, once, with its page.

    >>> [(name, text[:22]) for name, text in proof_texts([Theorem.LAPLACE, Theorem.LAPLACE])]
    [('laplace', Markup('<h3>Laplace noise</h3>'))]
    """
    found = {theorem.value: text for theorem in dict.fromkeys(theorems) if (text := _text(theorem))}
    return [(name, as_html(text, set(found))) for name, text in found.items()]


def proof_page(theorem: Theorem) -> Markup:
    """A proof as a page of its own, with links to the pages of others."""
    return as_html(_text(theorem), {one.value for one in Theorem}, "/proofs/")


def as_html(text: str, shown: set[str], at: str = "#proof-") -> Markup:
    """A proof. Links lead to the proofs that are shown, by default on the same page; others are only named.

    >>> as_html("See [Laplace](laplace.md), [Gauss](gaussian.md).", {"laplace"})
    Markup('<p>See <a href="#proof-laplace">Laplace</a>, Gauss.</p>\\n')
    """
    from markdown_it import MarkdownIt

    formulas: list[str] = []

    def kept(found: re.Match[str]) -> str:
        formulas.append(_formula(found))
        return f"\ue000{len(formulas) - 1}\ue001"

    def linked(found: re.Match[str]) -> str:
        name = found[2].removesuffix(".md")
        return f"[{found[1]}]({at}{name})" if name in shown else found[1]

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    page = markdown.render(LINK.sub(linked, FORMULA.sub(kept, text)))
    page = re.sub(r"<(/?)h([1-4])>", lambda found: f"<{found[1]}h{int(found[2]) + 2}>", page)
    page = re.sub("\ue000(\\d+)\ue001", lambda found: formulas[int(found[1])], page)
    return Markup(page)  # safe: Markdown without HTML, of this package's own files


def _formula(found: re.Match[str]) -> str:
    formula = " ".join((found[1] or found[2]).split())
    try:
        shown = to_mathml(formula, bool(found[1]))
        return shown.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "").replace(' display="inline"', "")
    except UnknownFormula:
        return str(Markup("<code>{}</code>").format(escape(formula)))


def _text(theorem: Theorem) -> str:
    for folder in PLACES:
        path = folder / f"{theorem.value}.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return ""
