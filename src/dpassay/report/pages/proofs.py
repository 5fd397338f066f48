"""The proofs that a page contains, so that it can be read without the repository: HTML, with formulas as MathML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup, escape

from dpassay.core.theorems import Theorem
from dpassay.report.pages.mathml import UnknownFormula, to_mathml

HERE = Path(__file__).parents[1]
PLACES = (HERE / "proofs", HERE.parents[2] / "docs" / "proofs")  # as installed; in the repository
LONG = 40  # characters of LaTeX, from which on a formula can be wider than a phone
RELATIONS = "=<>≤≥≠∈⊆→"
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
    return as_html(_text(theorem), {one.value for one in Theorem}, "/proofs/", 1)


def as_html(text: str, shown: set[str], at: str = "#proof-", level: int = 3) -> Markup:
    """A proof as HTML, its title at a level. Links lead to the proofs that are shown, by default on the same page.

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
    page = re.sub(r"<(/?)h([1-4])>", lambda found: f"<{found[1]}h{int(found[2]) + level - 1}>", page)
    page = re.sub("\ue000(\\d+)\ue001", lambda found: formulas[int(found[1])], page)
    return Markup(page)  # safe: Markdown without HTML, of this package's own files


def _formula(found: re.Match[str]) -> str:
    formula = " ".join((found[1] or found[2]).split())
    try:
        shown = to_mathml(formula, bool(found[1]))
        shown = shown.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "").replace(' display="inline"', "")
        return shown if found[1] or len(formula) < LONG else breakable(shown)
    except UnknownFormula:
        return str(Markup("<code>{}</code>").format(escape(formula)))


def breakable(shown: str) -> str:
    """An inline formula in parts that begin with a relation: browsers break no line inside a formula.

    >>> breakable("<math><mrow><mi>a</mi><mo>=</mo><mi>b</mi></mrow></math>")
    '<math><mrow><mi>a</mi></mrow></math><wbr><math><mrow><mo>=</mo><mi>b</mi></mrow></math>'
    """
    parts: list[str] = [""]
    for part in ElementTree.fromstring(shown)[0]:
        if part.tag == "mo" and part.text and part.text in RELATIONS and parts[-1]:
            parts.append("")
        parts[-1] += ElementTree.tostring(part, "unicode")
    return "<wbr>".join(f"<math><mrow>{part}</mrow></math>" for part in parts)


def _text(theorem: Theorem) -> str:
    for folder in PLACES:
        path = folder / f"{theorem.value}.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return ""
