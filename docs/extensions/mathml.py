"""Formulas as MathML, which browsers draw by themselves: no script, no font, nothing from another host."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from dpassay.report.pages.mathml import UnknownFormula, to_mathml

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _checked(app: Sphinx, tree: Any) -> None:
    """Warn of formulas that are not understood as soon as a page is read."""
    from docutils import nodes
    from sphinx.util import logging

    for node in tree.findall(lambda node: isinstance(node, nodes.math | nodes.math_block)):
        try:
            to_mathml(node.astext())
        except UnknownFormula as error:
            logging.getLogger(__name__).warning("%s", error, location=node)
    verbatim = nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment
    for text in tree.findall(nodes.Text):
        if "$" in text and not isinstance(text.parent, verbatim) and app.env.docname != "reference/command-line":
            logging.getLogger(__name__).warning("a dollar sign outside a formula: %r", str(text), location=text.parent)


def _visit(block: bool) -> Any:
    from docutils import nodes

    def visit(self: Any, node: Any) -> None:
        try:
            shown = to_mathml(node.astext(), block)
        except UnknownFormula:
            shown = f"<code>{escape(node.astext())}</code>"
        self.body.append(f'<div class="math">{shown}</div>' if block else shown)
        raise nodes.SkipNode

    return visit


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx how formulas are drawn."""
    app.add_html_math_renderer("mathml", (_visit(False), None), (_visit(True), None))
    app.connect("doctree-read", _checked)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
