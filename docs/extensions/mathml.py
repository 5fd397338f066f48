"""Formulas as MathML, which browsers draw by themselves: no script, no font, nothing from another host.

It knows the part of LaTeX that the pages use. What it does not know is an error, so that no formula is shown wrongly.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[0-9]+(?:[.,][0-9]+)*|\s+|.", re.DOTALL)


def _pairs(table: str) -> dict[str, str]:
    """Names and what they stand for, from a text in which they alternate."""
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


LETTERS = _pairs(
    """
    alpha α  beta β  gamma γ  delta δ  epsilon ϵ  varepsilon ε  zeta ζ  eta η  theta θ  iota ι  kappa κ  mu μ  nu ν
    xi ξ  pi π  rho ρ  sigma σ  tau τ  phi ϕ  varphi φ  chi χ  psi ψ  omega ω  Gamma Γ  Delta Δ  Theta Θ  Lambda Λ
    Xi Ξ  Pi Π  Sigma Σ  Phi Φ  Psi Ψ  Omega Ω  ell ℓ  infty ∞  partial ∂  emptyset ∅  varnothing ∅  top ⊤  lambda λ
    """
)
OPERATORS = _pairs(
    """
    le ≤  leq ≤  ge ≥  geq ≥  ne ≠  neq ≠  to →  pm ±  mp ∓  cdot ·  times ×  sim ∼  mid ∣  approx ≈  equiv ≡
    propto ∝  mapsto ↦  cap ∩  cup ∪  subset ⊂  subseteq ⊆  setminus ∖  notin ∉  dots …  ldots …  cdots ⋯  angle ∠
    lbrace {  rbrace }  lfloor ⌊  rfloor ⌋  lceil ⌈  rceil ⌉  langle ⟨  rangle ⟩  Vert ‖  lVert ‖  rVert ‖  vert |
    lvert |  rvert |  ll ≪  gg ≫  iff ⟺  implies ⟹  Rightarrow ⇒  rightarrow →  leftarrow ←  colon :  circ ∘
    bullet •  ast ∗  oplus ⊕  otimes ⊗  prime ′  forall ∀  exists ∃  preceq ⪯  succeq ⪰  star ⋆  lor ∨  land ∧  in ∈
    | ‖  { {  } }  % %  _ _  & &  # #  $ $
    """
)
LARGE = _pairs(
    """
    sum ∑  prod ∏  int ∫  iint ∬  bigcup ⋃  bigcap ⋂
    """
)
NAMES = re.findall(
    r"\w+", "ln log exp min max sup inf Pr cos sin tan cosh sinh tanh arccos arcsin arctan lim det arg deg dim erf"
)
ACCENTS = _pairs(
    """
    hat ^  bar ¯  tilde ~  vec →  widehat ^  overline ¯  widetilde ~  dot ˙
    """
)
SPACES = {",": "0.17em", ":": "0.22em", ";": "0.28em", "!": "-0.17em", " ": "0.33em", "quad": "1em", "qquad": "2em"}
STYLES = ("mathrm", "mathbb", "operatorname")
SIZES = {"big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr"}
DOUBLE_STRUCK = {"R": "ℝ", "Z": "ℤ", "N": "ℕ", "E": "𝔼", "P": "ℙ", "Q": "ℚ", "C": "ℂ"}
FENCES = "()[]|/.<>"
SIGN_FOLLOWS = ("", *"([{=<>,;:^_&")  # where + and - are signs of a number, not operations


class UnknownFormula(ValueError):
    """A formula with something that is not understood."""


def to_mathml(formula: str, block: bool = False) -> str:
    r"""A formula as a `<math>` element.

    >>> to_mathml(r"\frac12")
    '<math><mrow><mfrac><mn>1</mn><mn>2</mn></mfrac></mrow></math>'
    """
    reader = _Reader(formula)
    body = reader.row(())
    return f"<math display='block'>{body}</math>" if block else f"<math>{body}</math>"


class _Reader:
    """Reads a formula from left to right."""

    def __init__(self, formula: str) -> None:
        self.formula = formula
        self.tokens = TOKEN.findall(formula)
        self.at = 0

    def fail(self, what: str) -> UnknownFormula:
        return UnknownFormula(f"{what} in the formula {self.formula!r}; docs/extensions/mathml.py lists what is known")

    def peek(self) -> str:
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            raise self.fail("something is missing at the end")
        self.at += 1
        return token

    def row(self, ends: tuple[str, ...]) -> str:
        """Everything up to one of these tokens, which is not taken, or to the end of the formula."""
        parts = []
        while (token := self.peek()) and token not in ends:
            parts.append(self.scripted())
        if ends and not token:
            raise self.fail(f"{ends[0]} is missing")
        return f"<mrow>{''.join(parts)}</mrow>"

    def scripted(self) -> str:
        """One thing with its subscript and superscript."""
        limits = self.peek()[1:] in {"sup", "max", "min", "inf", "lim", *LARGE} and self.peek() not in (
            "\\int",
            "\\iint",
        )
        base = "<mrow></mrow>" if self.peek() in ("_", "^", "'") else self.atom()
        below, above = "", ""
        while (token := self.peek()) in ("_", "^", "'"):
            if token == "_":
                self.take()
                below = self.argument()
            elif token == "^":
                self.take()
                above += self.argument()
            else:
                self.take()
                above += "<mo>′</mo>"
        if above.count("<mo>′</mo>") and above != "<mo>′</mo>":
            above = f"<mrow>{above}</mrow>"
        kinds = ("munder", "mover", "munderover") if limits else ("msub", "msup", "msubsup")
        if below and above:
            return f"<{kinds[2]}>{base}{below}{above}</{kinds[2]}>"
        if below or above:
            kind = kinds[0] if below else kinds[1]
            return f"<{kind}>{base}{below or above}</{kind}>"
        return base

    def argument(self) -> str:
        """What a command or a script applies to: a group, or one thing; of a number its first digit."""
        token = self.peek()
        if token[:1].isdigit() and len(token) > 1:
            self.tokens[self.at] = token[1:]
            return f"<mn>{token[0]}</mn>"
        return self.atom()

    def group(self) -> str:
        """The text of a group in braces."""
        if self.take() != "{":
            raise self.fail("{ is missing")
        depth, start = 1, self.at
        while depth:
            if self.at >= len(self.tokens):
                raise self.fail("} is missing")
            depth += {"{": 1, "}": -1}.get(self.tokens[self.at], 0)
            self.at += 1
        return "".join(self.tokens[start : self.at - 1])

    def atom(self) -> str:
        before = "".join(self.tokens[: self.at]).rstrip()[-1:]
        token = self.take()
        if token == "{":
            body = self.row(("}",))
            self.take()
            return body
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        if token in "}&^_":
            raise self.fail(f"{token} has no place")
        shown = {"-": "−", "*": "∗"}.get(token, token)
        fixed = ' stretchy="false"' if token in "()[]|" else ' lspace="0" rspace="0"' if token == "/" else ""
        sign = ' form="prefix"' if token in "+-" and before in SIGN_FOLLOWS else ""
        return f"<mo{fixed}{sign}>{escape(shown)}</mo>"

    def command(self, name: str) -> str:
        if name in LETTERS:
            upright = ' mathvariant="normal"' if name[0].isupper() else ""
            return f"<mi{upright}>{LETTERS[name]}</mi>"
        if name in OPERATORS:
            return f'<mo stretchy="false">{escape(OPERATORS[name])}</mo>'
        if name in LARGE:
            return f"<mo>{LARGE[name]}</mo>"
        if name in NAMES:
            return (
                f"<mi>{name}</mi><mspace width='0.1em'/>" if self.peek() not in ("_", "^", "(") else f"<mi>{name}</mi>"
            )
        if name in SPACES:
            return f"<mspace width='{SPACES[name]}'/>"
        if name in ("frac", "tfrac", "dfrac"):
            above, below = self.argument(), self.argument()
            return f"<mfrac>{above}{below}</mfrac>"
        if name == "binom":
            above, below = self.argument(), self.argument()
            return f"<mrow><mo>(</mo><mfrac linethickness='0'>{above}{below}</mfrac><mo>)</mo></mrow>"
        if name == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if name in ACCENTS:
            return f"<mover accent='true'>{self.argument()}<mo stretchy='false'>{ACCENTS[name]}</mo></mover>"
        if name in STYLES:
            return self.styled(name)
        if name in ("text", "textrm"):
            return f"<mtext>{escape(self.group()).replace(' ', '&#160;')}</mtext>"
        return self.structure(name)

    def styled(self, name: str) -> str:
        text = self.group() if self.peek() == "{" else self.take()
        if name == "mathbb":
            if text not in DOUBLE_STRUCK:
                raise self.fail(f"\\mathbb{{{text}}} is not known")
            return f"<mi>{DOUBLE_STRUCK[text]}</mi>"
        variant = "" if len(text) > 1 else ' mathvariant="normal"'
        return f"<mi{variant}>{escape(text)}</mi>"

    def structure(self, name: str) -> str:
        if name in ("displaystyle", "textstyle", "limits", "nolimits"):
            return ""
        if name in SIZES:
            return f'<mo stretchy="true">{self.fence()}</mo>'
        if name == "left":
            opening = self.fence()
            body = self.row(("\\right",))
            self.take()
            return f"<mrow><mo>{opening}</mo>{body}<mo>{self.fence()}</mo></mrow>"
        if name == "begin":
            return self.cases()
        raise self.fail(f"\\{name} is not known")

    def fence(self) -> str:
        token = self.take()
        if token in FENCES:
            return "" if token == "." else escape(token)
        if token[1:] in OPERATORS:
            return escape(OPERATORS[token[1:]])
        raise self.fail(f"{token} is no bracket")

    def cases(self) -> str:
        kind = self.group()
        if kind not in ("cases", "aligned"):
            raise self.fail(f"\\begin{{{kind}}} is not known")
        rows: list[list[str]] = [[]]
        while True:
            rows[-1].append(self.row(("&", "\\\\", "\\end")))
            token = self.take()
            if token == "\\end":
                break
            if token == "\\\\":
                rows.append([])
        self.group()
        cells = "".join("<mtr>" + "".join(f"<mtd>{cell}</mtd>" for cell in row) + "</mtr>" for row in rows)
        opening = "<mo>{</mo>" if kind == "cases" else ""
        return f"<mrow>{opening}<mtable columnalign='left'>{cells}</mtable></mrow>"


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
