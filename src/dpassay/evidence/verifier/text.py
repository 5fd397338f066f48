"""The verifier's own reader of a pipeline's text.

Stages are separated by |; their arguments are l1, l2, linf, tanh, sigmoid, or formulas with + − * / ^, brackets, exp,
ln, sqrt, pi and the names that the claim gives values to. This is a subset of Python's grammar, so Python's parser
makes the tree, and only the few kinds of nodes that have a meaning are read here. Nothing is evaluated as code.
"""

import ast
import math
import re
from collections.abc import Mapping
from fractions import Fraction

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import (
    ONE,
    ZERO,
    Number,
    exact_fraction,
    exact_name,
    exactly,
    is_decimal,
    is_narrow,
    iv,
    largest,
    middle,
    quotient,
    show,
    smallest,
    under_name,
)
from dpassay.evidence.verifier.regions.regions import DIRECTIONS, LARGEST, SINGLE, ParsedStage, RegionShape
from dpassay.values import dataclass

_CHARACTERS = re.compile(r"[A-Za-z0-9_.,()=+*/^|\s-]*", re.ASCII)
_NAME = re.compile(r"(?<![A-Za-z0-9_.])(?=[A-Za-z_])")  # where a name begins; the e of 1e5 is not one
_LARGEST_LOG = 10**7
_NOTHING = iv.mpf("1e-50")  # how far from 0 a formula whose value is 0 may be
_FUNCTIONS = {"exp": iv.exp, "ln": iv.log, "sqrt": iv.sqrt}
_STAGES: dict[str, dict[str, str]] = {  # the parameters in order, and what each must be
    "encode": {},
    "decode": {},
    "minmax": {},
    "round": {},
    "rows": {},
    "poisson": {"rate": "probability"},
    "subsample": {"m": "size", "n": "size"},
    "shuffle": {"batches": "size"},
    "times": {"steps": "size"},
    "clamp": {"low": "real", "high": "real"},
    "repeat": {"times": "size"},
    "hash": {"k": "size"},
    "bloom": {"k": "size", "hashes": "size"},
    "clip": {"norm": "l1 l2 linf", "radius": "positive"},
    "normalise": {"norm": "l2"},
    "squash": {"kind": "tanh sigmoid"},
    "category": {"k": "size"},
    "onehot": {"k": "size"},
    "binary": {"integer": "bits", "fraction": "bits"},
    "query": {"norm": "l1 l2 linf", "distance": "positive", "moves": "any monotone"},
    "counts": {"norm": "l1 l2 linf", "distance": "positive"},
    "dropout": {"mu": "probability"},
    "discrete_laplace": {"scale": "positive"},
    "discrete_gaussian": {"sigma": "positive"},
    "laplace": {"scale": "positive"},
    "staircase": {"epsilon": "positive", "sensitivity": "positive", "gamma": "probability"},
    "truncated_laplace": {"scale": "positive", "bound": "positive"},
    "bounded_laplace": {"scale": "positive", "low": "real", "high": "real"},
    "gaussian": {"sigma": "positive"},
    "radial": {"norm": "l1 l2 linf", "scale": "positive"},
    "mahalanobis": {"scale": "positive", "least": "positive", "largest": "positive"},
    "vmf": {"kappa": "positive"},
    "purkayastha": {"kappa": "positive"},
    "onesided": {"scale": "positive", "zero": "probability", "lost": "probability"},
    "leak": {"chance": "probability"},
    "flip": {"keep": "probability"},
    "bits": {"even": "probability", "odd": "probability", "zero": "probability"},
    "topk": {"k": "size"},
    "exponential": {"rate": "positive"},
    "noisymax": {"noise": "laplace exponential gumbel", "scale": "positive"},
    "softmax": {"temperature": "positive"},
}
_DEFAULTS: dict[str, dict[str, Number | str]] = {
    "normalise": {"norm": "l2"},
    "onesided": {"zero": ZERO, "lost": ZERO},
    "query": {"moves": "any"},
}
_WORDS = frozenset(word for stage in _STAGES.values() for kind in stage.values() for word in kind.split())
_WORDS -= {"real", "size", "bits", "positive", "probability"}
TAKEN = frozenset({*_WORDS, *_FUNCTIONS, "least_sigma", "pi", "eps", "delta"})  # names that mean something already


@dataclass(frozen=True, slots=True)
class Call:
    """A stage as written in the text."""

    name: str
    arguments: Mapping[str, Number | str]


def _refused(why: str) -> CertificateError:
    return CertificateError(f"the pipeline's text {why}"[:200])


def read_text(text: str, values: Mapping[str, Number]) -> list[Call]:
    """The stages in a text, with the values of their arguments."""
    if not _CHARACTERS.fullmatch(text):
        raise _refused("has characters that are not allowed in it")
    # With a leading _ no name is a Python keyword.
    source = _NAME.sub("_", " ".join(text.split()).replace("^", "**"))
    try:
        tree, stages = ast.parse(source, mode="eval").body, []
        while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
            stages.append(tree.right)
            tree = tree.left
        reader = _PipelineReader(source, {"pi": +iv.pi, **values})
        return [reader.stage(node) for node in [tree, *reversed(stages)]]
    except SyntaxError as error:
        deep = " because it is nested too deeply" if "nested" in str(error) else ""
        raise _refused(f"cannot be read{deep}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise _refused("is nested too deeply") from None


@dataclass(frozen=True, slots=True)
class _PipelineReader:
    source: str
    values: Mapping[str, Number]

    def stage(self, node: ast.expr) -> Call:
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        name = call.func.id[1:].replace("normalize", "normalise") if isinstance(call.func, ast.Name) else ""
        if name not in _STAGES:
            raise _refused(f"has the unknown stage {name[:40]!r}")
        names = list(_STAGES[name])
        if len(call.args) > len(names):
            raise _refused(f"gives {name} too many arguments")
        given = dict(zip(names, call.args, strict=False))
        for keyword in call.keywords:
            key = (keyword.arg or "")[1:]
            if key in given or key not in names:
                raise _refused(f"gives {name} the argument {key[:40]!r}, or gives it twice")
            given[key] = keyword.value
        return Call(name, {key: self.argument(value) for key, value in given.items()})

    def argument(self, node: ast.expr) -> Number | str:
        word = isinstance(node, ast.Name) and node.id[1:] in _WORDS
        return node.id[1:] if isinstance(node, ast.Name) and word else self.number(node)

    def number(self, node: ast.expr) -> Number:
        """The value of a formula."""
        written = self.source[node.col_offset : node.end_col_offset]
        if isinstance(node, ast.BinOp):
            return _joined(node.op, self.number(node.left), self.number(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            return (-1 if isinstance(node.op, ast.USub) else 1) * self.number(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
            name = node.func.id[1:]
            if name in _FUNCTIONS and not node.keywords:
                return _applied(name, self.number(node.args[0]))
        if isinstance(node, ast.Name) and node.id[1:] in self.values:
            return under_name(self.values[node.id[1:]], node.id[1:])
        if isinstance(node, ast.Constant):
            plain = "0" + re.sub(r"\.(?![0-9])", "", written)  # also for .5 and 2.
            if is_decimal(plain):
                return exactly(Fraction(plain))
            raise _refused(f"has the number {written[:40]!r}: a number is a decimal with an exponent of at most 1000")
        plain = re.sub(r"(?<![A-Za-z0-9])_", "", written)
        raise _refused(f"uses {plain[:40]!r}, to which the claim gives no value")


def _applied(name: str, value: Number) -> Number:
    if (name == "exp" and abs(value).b > _LARGEST_LOG) or (name != "exp" and not value.a > 0):
        raise _refused(f"takes {name} of {show(value)}")
    square = exact_fraction(value) if name == "sqrt" else None
    if square is not None:
        root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
        if root**2 == square:
            return exactly(root)
    found, of = _FUNCTIONS[name](value), exact_name(value)
    return under_name(found, f"{name} {of}") if of else found


def _joined(sign: ast.operator, first: Number, second: Number) -> Number:
    if isinstance(sign, ast.Add | ast.Sub):
        return first + second if isinstance(sign, ast.Add) else first - second
    if isinstance(sign, ast.Mult):
        return first * second
    if isinstance(sign, ast.Pow):
        return _raised(first, second)
    if not isinstance(sign, ast.Div) or 0 in second:
        raise _refused("divides by zero" if isinstance(sign, ast.Div) else "uses a sign that is not allowed in it")
    return quotient(first, second)


def _raised(base: Number, exponent: Number) -> Number:
    whole = round(middle(exponent))
    if exponent.a == whole and exponent.b == whole and abs(whole) <= 10_000:
        return base**whole
    if not base.a > 0 or abs(exponent * iv.log(base)).b > _LARGEST_LOG:
        raise _refused("takes a power that is too large or not real")
    return iv.exp(exponent * iv.log(base))


def stage_of(call: Call, before: RegionShape) -> ParsedStage:
    """A stage as written in the text, for values of a region; invalid arguments are refused."""
    name, given = call.name, {**_DEFAULTS.get(call.name, {}), **call.arguments}
    words: dict[str, str] = {}
    wholes: dict[str, int] = {}
    numbers: dict[str, Number] = {}
    for key, kind in _STAGES[name].items():
        if key not in given:
            raise _refused(f"gives {name} no {key}")
        value, own = given[key], f"says that {name}'s {key}"
        if isinstance(value, str) or kind not in ("real", "size", "bits", "positive", "probability"):
            if not isinstance(value, str) or value not in kind.split():
                raise _refused(f"{own} is not {' or '.join(kind.split())}")
            words[key] = value
        elif not is_narrow(value, _NOTHING):
            raise _refused(f"{own} is a number that is not known precisely enough")
        elif kind in ("size", "bits"):
            low, high = (1, LARGEST) if kind == "size" else (0, 30)
            if not (low <= value.a and value.b <= high and value.a == value.b == int(middle(value))):
                raise _refused(f"{own} is {show(value)}: it must be a whole number from {low} to {high}")
            wholes[key] = int(middle(value))
        elif kind == "positive" and not value.a > 0:
            raise _refused(f"{own} is {show(value)}: it must be positive")
        elif kind == "probability" and (value.b < 0 or value.a > 1):
            raise _refused(f"{own} is {show(value)}: it must be from 0 to 1")
        else:  # an enclosure of 0 or 1 may exceed them by rounding; a probability does not
            inside = largest([ZERO, smallest([ONE, value])]) if kind == "probability" else value
            numbers[key] = inside
    return _for_region(ParsedStage(name, words, wholes, numbers), before)


def _for_region(stage: ParsedStage, before: RegionShape) -> ParsedStage:
    """The same stage in terms of the others: leak and lost noise are mixtures, flipped bits are bits."""
    name, numbers = stage.name, stage.numbers
    if name in ("exponential", "softmax"):
        rate = numbers["rate"] if name == "exponential" else 1 / numbers["temperature"]
        return ParsedStage("top-k" if before.kept else "exponential", {}, {"k": before.kept}, {"rate": rate})
    if name == "noisymax" and before.kept:
        raise CertificateError("topk must come right before exponential or softmax")
    if name == "noisymax" and stage.words["noise"] == "gumbel":
        return ParsedStage("exponential", {}, {"k": 0}, {"rate": 1 / numbers["scale"]})
    if name == "dropout" and not numbers["mu"].b < 1:
        raise CertificateError("the pipeline's text: dropout: mu must be below 1")
    if name in ("clamp", "bounded_laplace") and not numbers["low"].b < numbers["high"].a:
        raise CertificateError(f"the pipeline's text: {name}: low must be below high")
    if name == "bloom" and stage.wholes["hashes"] > stage.wholes["k"]:
        raise CertificateError("the pipeline's text: bloom: there are more hashes than bits")
    if name == "mahalanobis":
        if not numbers["least"].a <= numbers["largest"].b:
            raise CertificateError("the pipeline's text: mahalanobis: the least eigenvalue is not the least")
        single = {"scale": numbers["scale"] * iv.sqrt(numbers["least"])}
        return stage if before.dim > 1 else ParsedStage("laplace", {}, {}, single)
    if name == "radial" and (stage.words["norm"] == "l1" or before.dim == 1):
        return ParsedStage("laplace", {}, {}, numbers)
    if name == "counts":
        return ParsedStage("query", {**stage.words, "moves": "any", "values": "whole"}, {}, numbers)
    if name == "leak":
        return ParsedStage("mixture", {}, {}, {"atom": numbers["chance"], "lost": 1 - numbers["chance"]})
    if name == "onesided" and (numbers["zero"].b > 0 or numbers["lost"].b > 0):
        rest = 1 - numbers["zero"] - numbers["lost"]
        if rest.b < 0:
            raise _refused("says that onesided's zero and lost add up to more than 1")
        noise = {"weight": largest([ZERO, rest]), "scale": numbers["scale"]}
        return ParsedStage("mixture", {}, {}, {"atom": numbers["zero"], "lost": numbers["lost"], **noise})
    if name == "flip" and before.kind == "categories":
        return ParsedStage("flip", {}, {"k": before.count}, numbers)
    if name == "flip":
        keep = numbers["keep"]
        return ParsedStage("bits", {}, {}, {"even": keep, "odd": keep, "zero": 1 - keep})
    return stage


def check_place(stages: list[ParsedStage], stage: ParsedStage, before: RegionShape) -> None:
    """Refuse a stage that makes no sense after these stages, on values of this region."""
    name, kind = stage.name, before.kind
    if name in ("query", "rows", "poisson", "subsample", "shuffle") and stages:
        raise CertificateError(f"{name} must be the first stage")
    if stages and stages[-1].name == "topk" and name not in ("exponential", "top-k"):
        raise CertificateError("topk must come right before exponential or softmax")
    if name == "topk" and kind in ("categories", "repeated"):
        raise CertificateError(f"topk cannot work on the region {kind}")
    if stages and stages[-1].name == "times":
        raise CertificateError("times must be the last stage")
    if name == "subsample" and stage.wholes["m"] > stage.wholes["n"]:
        raise CertificateError("the pipeline's text: subsample: m must be at most n")
    if name == "poisson" and not stage.numbers["rate"].a > 0:
        raise CertificateError("the pipeline's text: poisson: rate must be above 0")
    if name == "dropout" and any(earlier.name != "dropout" for earlier in stages):
        raise CertificateError("dropout must come before all other stages")
    if name == "bits" and before.values not in ("bits", "sparse"):
        raise CertificateError(f"bits cannot be flipped in the region {kind}")
    if name in SINGLE and before.dim != 1 and not (name == "onehot" and before.dim == stage.wholes["k"]):
        raise CertificateError(f"{name} takes one value, but {before.dim} coordinates come in")
    if name in ("radial", "mahalanobis") and kind == "repeated":
        raise CertificateError(f"{name} draws one noise for the whole vector, not one for each copy")
    if name in DIRECTIONS and (kind != "sphere" or before.dim == 1):
        raise CertificateError(f"{name} needs unit vectors of at least two dimensions")
    vectors = name in ("gaussian", "exponential", "repeat") or "scale" in stage.numbers
    if vectors and kind == "categories":
        raise CertificateError(f"{name} cannot work on a category's name")
