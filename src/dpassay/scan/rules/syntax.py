"""Rules that one function's text shows by itself: accountants, randomized response, and slips of the pen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dpassay.scan.reading.index import dotted
from dpassay.scan.reading.names import role_of
from dpassay.scan.reading.values import SourceLine
from dpassay.scan.rules.context import Context, mentions

ACCOUNTS = re.compile(
    r"account|compos|privacy_spent|get_eps|epsilon|rdp|budget|spent|delta|privacy_loss|gdp|\beps", re.IGNORECASE
)
TOTALS = re.compile(r"(total|sum|spent|used|rdp|eps|epsilon|rho|loss|budget|cost)", re.IGNORECASE)
LIBRARY_ACCOUNTANTS = re.compile(
    r"RDPAccountant|PRVAccountant|GDPAccountant|compute_rdp|compute_dp_sgd_privacy|PoissonSampled|PoissonSubsampled|"
    r"RdpAccountant|PLDAccountant|get_noise_multiplier"
)


def check_syntax(context: Context) -> None:
    """All rules about text, on one function."""
    if not context.function.module.about_privacy:
        return
    node, file = context.function.node, context.function.module.file
    for rule, severity, line, said in [
        *overflow(context),
        *saturates(context),
        *drops_steps(context),
        *renyi_order(context),
        *limit_theorem(context),
        *twice_the_same(context),
        *only_set(node, context),
        *capitals(context),
        *words_copied(context),
        *selection(context),
        *sampling(context),
    ]:
        context.report(rule, severity, SourceLine(file, line), said)  # type: ignore[arg-type]


Found = Iterator[tuple[str, str, int, str]]


def _last(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)


def _accounts(context: Context) -> bool:
    return ACCOUNTS.search(context.function.qualified) is not None


def overflow(context: Context) -> Found:
    """δ = 0, or another small number, once e^ε is too large for a float."""
    for one in context.function.nodes:
        if isinstance(one, ast.If) and len(one.body) == 1 and isinstance(one.body[0], ast.Return):
            called = {_last(part) for part in ast.walk(one.test)}
            if called & {"isinf", "isfinite", "isnan"} and "exp" in called and _finite(one.body[0].value):
                said = "Once e^ε overflows the function returns a constant: no ε above 709.78 is ever reported."
                yield "accountant-overflow", "refuted", one.lineno, said
        if isinstance(one, ast.If) and _accounts(context) and _far_out(one.test):
            back = [line for line in one.body if isinstance(line, ast.Return)]
            if len(one.body) == 1 and back and _finite(back[0].value):
                said = "Above a fixed ε the function returns a constant, so a search for ε never reports more."
                yield "accountant-overflow", "suspicious", one.lineno, said
        if isinstance(one, ast.ExceptHandler) and _accounts(context):
            caught = ast.unparse(one.type) if one.type is not None else ""
            for line in one.body:
                if "Overflow" in caught and isinstance(line, ast.Return) and _finite(line.value):
                    said = "An overflow is answered with a finite number, so the loss that caused it is never reported."
                    yield "accountant-overflow", "suspicious", line.lineno, said


def _far_out(test: ast.expr) -> bool:
    """`epsilon > 700` or another number that the code names."""
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Gt | ast.GtE)
        and role_of(dotted(test.left)) == "epsilon"
        and _finite(test.comparators[0])
        and float(test.comparators[0].value) >= 10  # type: ignore[attr-defined]
    )


def _finite(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def saturates(context: Context) -> Found:
    """An accountant that never states more than a cap."""
    if not re.search(
        r"account|spent|get_eps|compute_eps|privacy_loss|total_eps", context.function.qualified, re.IGNORECASE
    ):
        return
    yield from _capped_search(context)
    for one in context.function.nodes:
        if isinstance(one, ast.Return) and isinstance(one.value, ast.Call) and _last(one.value) in ("clip", "clamp"):
            args = one.value.args
            if len(args) == 3 and _finite(args[2]) and mentions(args[0], "epsilon"):
                yield "accountant-saturates", "suspicious", one.lineno, "The ε that is stated never exceeds a cap."
        if isinstance(one, ast.Return) and isinstance(one.value, ast.Call) and _last(one.value) in ("min", "minimum"):
            args = one.value.args
            capped = any(_finite(arg) or role_of(dotted(arg)) == "bound" or "max" in dotted(arg) for arg in args)
            if len(args) == 2 and capped and any(mentions(arg, "epsilon") for arg in args):
                yield "accountant-saturates", "suspicious", one.lineno, "The ε that is stated never exceeds a cap."


def _capped_search(context: Context) -> Found:
    """A bisection for ε below a number that the code names, with nothing that raises it or says that it was reached."""
    function = context.function
    if any(isinstance(one, ast.Raise | ast.Assert) for one in function.nodes) or "inf" in function.text:
        return
    limits: dict[str, int] = {}
    for one in function.nodes:
        if isinstance(one, ast.Assign):
            target, value = one.targets[0], one.value
            pairs = (
                zip(target.elts, value.elts, strict=False)
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                else [(target, value)]
            )
            for name, number in pairs:
                if isinstance(name, ast.Name) and re.match(r"hi|up|right|max|eps_(hi|max|up)|r$", name.id):
                    if _finite(number):
                        limits[name.id] = one.lineno
                    elif name.id in limits and not (isinstance(number, ast.Name)):
                        return  # the limit is raised
        elif isinstance(one, ast.AugAssign) and dotted(one.target) in limits:
            return
    for loop in function.nodes:
        if not isinstance(loop, ast.For | ast.While):
            continue
        for one in ast.walk(loop):
            half = (
                isinstance(one, ast.BinOp)
                and isinstance(one.op, ast.Div | ast.Mult)
                and isinstance(one.left, ast.BinOp)
            )
            ends = {part.id for part in ast.walk(one) if isinstance(part, ast.Name)} if half else set()
            for reached in sorted(ends & limits.keys()):
                said = "The search for ε ends at a number that the code names: a larger ε is stated as that number."
                yield "accountant-saturates", "suspicious", limits[reached], said
                return


def drops_steps(context: Context) -> Found:
    """A composition that leaves out the first step."""
    if not _accounts(context):
        return
    said = "The composition leaves out the first step, which is not free."
    for one in context.function.nodes:
        if isinstance(one, ast.For) and isinstance(one.iter, ast.Call) and dotted(one.iter.func) == "range":
            args = one.iter.args
            from_one = len(args) == 2 and isinstance(args[0], ast.Constant) and args[0].value == 1
            whole = from_one and isinstance(args[1], ast.Name | ast.Attribute | ast.Call)
            adds = any(
                (
                    isinstance(line, ast.AugAssign)
                    and isinstance(line.op, ast.Add)
                    and TOTALS.search(ast.unparse(line.target))
                )
                or _last(line) in ("compose", "step", "accumulate", "spend", "add_event", "compose_with")
                for line in ast.walk(one)
            )
            if whole and adds and _is_steps(args[1]) and not _reads(one, one.target):
                yield "accountant-drops-step", "suspicious", one.lineno, said
        if isinstance(one, ast.For) and _tail(one.iter):
            added = [line for line in ast.walk(one) if isinstance(line, ast.AugAssign) and isinstance(line.op, ast.Add)]
            if any(TOTALS.search(ast.unparse(line.target)) for line in added):
                yield "accountant-drops-step", "suspicious", one.lineno, said
        if isinstance(one, ast.Call) and dotted(one.func) in ("sum", "np.sum", "math.fsum") and one.args:
            inner = one.args[0].generators[0].iter if isinstance(one.args[0], ast.GeneratorExp) else one.args[0]
            if _tail(inner) and TOTALS.search(ast.unparse(inner)):
                yield "accountant-drops-step", "suspicious", one.lineno, said
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult):
            for a, b in ((one.left, one.right), (one.right, one.left)):
                less = isinstance(a, ast.BinOp) and isinstance(a.op, ast.Sub) and _is_steps(a.left)
                if less and isinstance(a.right, ast.Constant) and a.right.value == 1 and TOTALS.search(ast.unparse(b)):  # type: ignore[attr-defined]
                    yield "accountant-drops-step", "suspicious", one.lineno, said


def _tail(node: ast.expr) -> bool:
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)):
        return False
    start = node.slice.lower
    return isinstance(start, ast.Constant) and start.value == 1 and node.slice.upper is None and node.slice.step is None


def _is_steps(node: ast.AST) -> bool:
    name = dotted(node).rpartition(".")[2].lower() or (ast.unparse(node).lower() if isinstance(node, ast.Call) else "")
    return (
        re.search(r"steps?$|rounds?$|iters?$|iterations?$|epochs?$|^t$|compositions?$|^k$|queries$|len\(", name)
        is not None
    )


def _reads(loop: ast.For, target: ast.expr) -> bool:
    name = dotted(target)
    return bool(name) and any(
        isinstance(one, ast.Name) and one.id == name for line in loop.body for one in ast.walk(line)
    )


def renyi_order(context: Context) -> Found:
    """A Rényi divergence divided by its order before it is converted to (ε, δ)."""
    converts = any(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, ast.Div)
        and any(_last(part) in ("log", "log1p") for part in ast.walk(one.left))
        and mentions(one.left, "delta")
        and isinstance(one.right, ast.BinOp)
        and isinstance(one.right.op, ast.Sub)
        and mentions(one.right, "order")
        for one in context.function.nodes
    )
    if not converts:
        return
    for one in context.function.nodes:
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) and role_of(dotted(one.right)) == "order":
            left = ast.unparse(one.left)
            if isinstance(one.left, ast.Name | ast.Attribute | ast.Subscript) and re.fullmatch(
                r"d|div\w*|.*diverg\w*|.*rdp\w*|eps_\w*|.*renyi\w*", left.lower()
            ):
                said = f"{left} is divided by the order before log(1/δ)/(α-1) is added: the conversion takes it whole."
                yield "renyi-divided-by-order", "suspicious", one.lineno, said
                return


def limit_theorem(context: Context) -> Found:
    """The central limit of many steps, used as if it were a bound."""
    for one in context.function.nodes:
        if _last(one) != "sqrt" or not isinstance(one, ast.Call) or not one.args:
            continue
        inner = one.args[0]
        if not isinstance(inner, ast.BinOp):
            continue
        grows = [
            part
            for part in ast.walk(inner)
            if isinstance(part, ast.Call) and _last(part) == "exp" and part.args and _inverse_square(part.args[0])
        ]
        if grows and isinstance(inner.op, ast.Sub) and isinstance(inner.right, ast.Constant):
            said = "This is the limit of many steps (Gaussian DP): for a given number of steps the true ε is larger."
            yield "accountant-limit", "suspicious", one.lineno, said
            return


def _inverse_square(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return ast.unparse(node.right).strip("()") in ("-2", "-2.0")
    squared = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.BinOp)
    return squared and isinstance(node.right.op, ast.Pow) and ast.unparse(node.right.right) in ("2", "2.0")  # type: ignore[attr-defined]


def twice_the_same(context: Context) -> Found:
    """The larger of two things that are the same."""
    for one in context.function.nodes:
        parts: list[ast.expr] = []
        if isinstance(one, ast.Call) and _last(one) in ("max", "min", "maximum") and len(one.args) == 2:
            parts = one.args
        elif isinstance(one, ast.List | ast.Tuple) and isinstance(one.ctx, ast.Load) and len(one.elts) == 2:
            parts = one.elts
        if len(parts) == 2 and ast.dump(parts[0]) == ast.dump(parts[1]) and not isinstance(parts[0], ast.Constant):
            about = mentions(parts[0], "bound") or mentions(parts[0], "clip") or mentions(parts[0], "sensitivity")
            extreme = isinstance(one, ast.Call) or isinstance(parts[0], ast.Subscript)
            if about and extreme:
                said = f"{ast.unparse(parts[0])} stands twice where two different bounds are meant."
                yield "bound-twice", "suspicious", parts[0].lineno, said


def _draws(node: ast.AST, drawn: set[str]) -> bool:
    for one in ast.walk(node):
        if _last(one) in ("random", "rand", "uniform", "random_sample", "binomial", "bernoulli"):
            return True
        if isinstance(one, ast.Name) and one.id in drawn:
            return True
    return False


def only_set(node: ast.FunctionDef | ast.AsyncFunctionDef, context: Context) -> Found:
    """A random bit that can become 1, and is left as it was where it should become 0."""
    if not context.private and not re.search(r"perturb|privati|randomi", node.name):
        return
    drawn = {
        target.id
        for one in context.function.nodes
        if isinstance(one, ast.Assign) and _draws(one.value, set())
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    blank = {
        target.id
        for one in context.function.nodes
        if isinstance(one, ast.Assign)
        and (_last(one.value) in ("zeros", "full", "zeros_like") or isinstance(one.value, ast.BinOp | ast.List))
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    for one in context.function.nodes:
        if not isinstance(one, ast.If) or one.orelse or len(one.body) != 1 or not _draws(one.test, drawn):
            continue
        line = one.body[0]
        if (
            isinstance(line, ast.Assign)
            and isinstance(line.targets[0], ast.Subscript)
            and isinstance(line.value, ast.Constant)
        ):
            container = dotted(line.targets[0].value)
            before = any(
                isinstance(each, ast.Assign)
                and each is not line
                and ast.dump(each.targets[0]) == ast.dump(line.targets[0])
                for each in context.function.nodes
            )
            if container and container not in blank and not before and line.value.value in (0, 1, True, False):
                said = f"{container} is set to {line.value.value} at random and otherwise left as it was: it never becomes the other value."  # noqa: E501
                yield "bit-never-reset", "suspicious", line.lineno, said


def capitals(context: Context) -> Found:
    """The new word gets the capitals, or another trait, of the old one."""
    if not context.private and not re.search(r"epsilon|priva", context.function.text):
        return
    for one in context.function.nodes:
        if isinstance(one, ast.If | ast.IfExp):
            asks = any(_last(part) in ("isupper", "istitle") for part in ast.walk(one.test))
            body = one.body if isinstance(one.body, list) else [one.body]
            acts = any(_last(part) in ("capitalize", "upper", "title") for line in body for part in ast.walk(line))
            if asks and acts:
                said = "The released word gets a capital letter if the private one has one, without noise."
                yield "input-shapes-output", "suspicious", one.lineno, said
                return


def words_copied(context: Context) -> Found:
    """Words outside a vocabulary, or stop words, that come out as they went in."""
    if "epsilon" not in context.roles and "epsilon" not in context.function.text and not context.claim:
        return
    for loop in context.function.nodes:
        if not isinstance(loop, ast.For):
            continue
        targets = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
        for one in loop.body:
            if not isinstance(one, ast.If) or not one.body or not isinstance(one.body[-1], ast.Continue | ast.Expr):
                continue
            tests = [
                part
                for part in ast.walk(one.test)
                if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.In | ast.NotIn)
            ]
            known = [
                part for part in tests if any(isinstance(n, ast.Name) and n.id in targets for n in ast.walk(part.left))
            ]
            tested = {n.id for part in known for n in ast.walk(part.left) if isinstance(n, ast.Name)}
            copies = [
                line
                for line in ast.walk(one)
                if _last(line) == "append"
                and isinstance(line, ast.Call)
                and line.args
                and isinstance(line.args[0], ast.Name)
                and line.args[0].id in targets & tested
            ]
            if known and copies and (isinstance(one.body[-1], ast.Continue) or one.orelse):
                said = "Words of some kind are copied to the output without noise."
                yield "words-copied", "suspicious", copies[0].lineno, said
                return


def selection(context: Context) -> Found:
    """The best of several private runs, at the ε of one."""
    for loop in context.function.nodes:
        if not isinstance(loop, ast.For):
            continue
        trains = [
            one
            for one in ast.walk(loop)
            if (
                isinstance(one, ast.Call)
                and any(
                    role_of(word.arg or "") in ("epsilon", "multiplier") or mentions(word.value, "epsilon")
                    for word in one.keywords
                )
            )
            or (
                isinstance(one, ast.Call)
                and any(isinstance(a, ast.Name | ast.Attribute) and mentions(a, "epsilon") for a in one.args)
            )
        ]
        compared = [
            one
            for one in ast.walk(loop)
            if isinstance(one, ast.If) and isinstance(one.test, ast.Compare) and "best" in ast.unparse(one.test).lower()
        ]
        target = ast.unparse(loop.target)
        trains = [
            one for one in trains if re.search(r"train|fit|learn|synth|generat|release|privat|run", _last(one).lower())
        ]
        compared = [one for one in compared if not mentions(one.test, "epsilon")]
        if trains and compared and role_of(target) != "epsilon":
            said = "The best of several private runs is kept: choosing by the data costs more than the ε of one run."
            yield "selection-over-runs", "suspicious", compared[0].lineno, said
            return


def sampling(context: Context) -> Found:
    """Shuffled batches with an accountant for Poisson sampling."""
    text = context.function.module.text
    for one in context.function.nodes:
        if not isinstance(one, ast.Call):
            continue
        words = {word.arg: word.value for word in one.keywords}
        off = words.get("poisson_sampling")
        if isinstance(off, ast.Constant) and off.value is False and _last(one).startswith("make_private"):
            said = "Poisson sampling is turned off, but the accountant still assumes it."
            yield "sampling-not-accounted", "suspicious", one.lineno, said
        shuffled = words.get("shuffle")
        if _last(one) == "DataLoader" and isinstance(shuffled, ast.Constant) and shuffled.value is True:
            accounted = LIBRARY_ACCOUNTANTS.search(text) and re.search(r"sampl\w*_(rate|prob\w*)|\bq\s*=", text)
            if accounted and "make_private" not in text and "oisson_sampl" not in text and "PrivacyEngine" not in text:
                said = "Batches are shuffled, but the accountant assumes Poisson sampling, which has another ε."
                yield "sampling-not-accounted", "suspicious", one.lineno, said
