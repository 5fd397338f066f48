"""Rewriters by name, by the folder of a trained model, or by a path in Python: what --model and --python take.

A rewriter is made by a function `make(epsilon, delta, **settings)`. Its ε is the parameter that the mechanism's authors
call ε; the resulting guarantee for one text is the `guarantee` of the rewriter it returns. A package can add its own
rewriters through entry points of the group `dpassay.rewriters`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from dpassay.audit.mechanisms.rewriting import is_rewriter
from dpassay.audit.options import Progress
from dpassay.errors import InputError, MechanismError
from dpassay.text.models.folder import MODEL
from dpassay.text.rewriters.base import Rewriter, TextGuarantee, blamed, upward

GROUP = "dpassay.rewriters"
VECTORS, TOKENS, WORDS = (f"dpassay.text.rewriters.{kind}" for kind in ("vectors", "tokens", "words"))
# The shipped rewriters: the function that makes each, and what it is.
SHIPPED: dict[str, tuple[str, str]] = {
    "adept": (f"{VECTORS}.latent:adept", "an autoencoder whose vectors get noise (Krishna et al. 2021)"),
    "dp-bart": (
        f"{VECTORS}.bart:make",
        "an encoder-decoder whose encoder's numbers get noise (Igamberdiev et al. 2023)",
    ),
    "dp-bart-as-published": (
        f"{VECTORS}.bart:as_published",
        "the same with the classic formula, too little noise",
    ),
    "dp-mlm": (f"{TOKENS}.masked:make", "a masked language model that draws each word (Meisenbacher et al. 2024)"),
    "dp-prompt": (
        f"{TOKENS}.prompt:make",
        "a language model that is asked to rewrite a text (Utpala et al. 2023)",
    ),
    "madlib": (
        f"{WORDS}.word_level:madlib",
        "noise on each word's vector, then the nearest word (Feyisetan et al. 2020)",
    ),
    "santext": (f"{WORDS}.word_level:santext", "each word by a near word of a vocabulary (Yue et al. 2021)"),
    "santext-plus": (f"{WORDS}.word_level:santext_plus", "the same, frequent words often kept; corrected"),
    "santext-plus-as-published": (f"{WORDS}.word_level:santext_plus_as_published", "no finite epsilon"),
    "custext": (
        f"{WORDS}.word_level:custext",
        "each word by one of its K nearest or any other (after Chen et al. 2023)",
    ),
    "custext-as-published": (
        f"{WORDS}.word_level:custext_as_published",
        "within groups of K words: no finite epsilon",
    ),
    "tem": (f"{WORDS}.word_level:tem", "santext with distances cut off at gamma (Carvalho et al. 2023)"),
}
MODEL_HINTS = {
    "adept": " (the folder of a model from 'dpassay train adept')",
    "dp-prompt": " (a transformers model's folder or hub name, or smollm2)",
    "dp-mlm": " (a masked transformers model's folder or hub name)",
    "dp-bart": " (an encoder-decoder transformers model's folder or hub name)",
    "dp-bart-as-published": " (an encoder-decoder transformers model's folder or hub name)",
}
STEPS = 60  # at most, in the search for the parameter that gives an ε
NO_FINITE = 1e-4  # of the requested ε: at such a parameter an infinite ε is not one of rounding
CLOSE = 1e-9  # relative: how close the search comes to the requested ε, from below


@dataclass(frozen=True)
class Specification:
    """How a rewriter was specified, as plain data: its name, folder or path, and its settings.

    >>> Specification.read("santext,vocabulary=glove.txt")
    Specification(name='santext', settings={'vocabulary': 'glove.txt'})
    """

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def read(text: str, more: Mapping[str, Any] | None = None) -> Specification:
        """A name, a folder, or package.module:name, with settings after commas; `more` are further settings."""
        name, *settings = [text] if Path(text).is_dir() else text.split(",")
        read: dict[str, str] = {}
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals or not key.strip() or not value.strip():
                raise InputError(f"a setting is KEY=VALUE, got {setting!r} in {text!r}: {name},KEY=VALUE,KEY=VALUE")
            if key.strip() in read:
                raise InputError(f"{key.strip()!r} is set twice in {text!r}")
            read[key.strip()] = value.strip()
        given = {key: str(value) for key, value in (more or {}).items() if value is not None}
        return Specification(name.strip(), {**read, **given})

    def __str__(self) -> str:
        return ",".join([self.name, *(f"{key}={value}" for key, value in self.settings.items())])

    def takes(self, setting: str) -> bool:
        """Whether the rewriter has a setting of this name."""
        maker, _ = found(self.name)
        return callable(maker) and setting in inspect.signature(maker).parameters

    @property
    def ready(self) -> bool:
        """Whether it names a finished rewriter, which has its own ε."""
        return is_rewriter(found(self.name)[0])

    @property
    def own(self) -> bool:
        """Whether the rewriter is the user's own, so that its guarantee is only declared; all others are shipped.

        >>> Specification.read("mine:RR").own, Specification.read("santext").own
        (True, False)
        """
        if self.name in SHIPPED or Path(self.name).is_dir():
            return False
        return ":" in self.name or any(point.name == self.name for point in entry_points(group=GROUP))

    def guarantee_of(self, rewriter: Rewriter) -> TextGuarantee:
        """The guarantee to state for a rewriter of this name; that of a user's own rewriter is marked as declared."""
        with blamed(str(self)):
            held = rewriter.guarantee
        if not self.own or math.isinf(held.epsilon):
            return held
        return replace(held, declared_by=held.declared_by or self.name, proofs=())

    def at(self, epsilon: float | None, delta: float | None = None) -> Rewriter:
        """The rewriter with its authors' ε, or with None if it needs no ε."""
        maker, settings = found(self.name)
        return _made(maker, {**settings, **self.settings}, epsilon, delta, str(self))

    def at_true(self, epsilon: float, delta: float | None = None, progress: Progress | None = None) -> Rewriter:
        """The rewriter whose guarantee for one text is this ε, or the largest one below it that can be found."""
        search, best, failure = _ParameterSearch(epsilon), None, None
        least: TextGuarantee | None = None
        for step in range(STEPS):
            if progress is not None:
                progress(step, STEPS, f"looking for the parameter that gives epsilon {epsilon:g}")
            parameter = search.next()
            try:
                rewriter = self.at(parameter, delta)
                with blamed(str(self)):
                    guarantee = rewriter.guarantee
            except (InputError, MechanismError) as error:
                # A parameter that is too large may be refused, or overflow.
                if isinstance(error, MechanismError) and not isinstance(error.__cause__, ArithmeticError):
                    raise
                failure = failure or error
                if best is None and least is None and parameter < 1e-6:
                    raise failure from None  # the parameter is not the problem
                search.tried(parameter, math.inf)
                continue
            kept = guarantee.epsilon
            if math.isinf(kept) and self.own and parameter > NO_FINITE * epsilon:  # perhaps too large for its doubles
                search.tried(parameter, kept)
                continue
            if math.isinf(kept):
                said = f"{self} satisfies no finite epsilon"
                raise InputError(f"{said}: leave it out, or compare it at the claimed epsilon")
            if epsilon * (1 - CLOSE) <= kept <= epsilon:
                return rewriter
            best = rewriter if kept <= epsilon else best
            if kept > epsilon and (least is None or kept < least.epsilon):
                least = guarantee
            search.tried(parameter, kept)
            if search.narrow or search.stuck >= 3 or parameter < 1e-300:
                break
        if best is not None and least is not None:
            return best
        if least is not None:
            whom = "one text" if least.neighbours.kind == "any" else str(least.neighbours)
            raise InputError(
                f"{self} needs at least epsilon {upward(least.epsilon)} for {whom}, the smallest that was found with "
                f"any of {step + 1} parameters; {epsilon:g} is too little for it"
            )
        if isinstance(failure, MechanismError):
            raise failure
        reached = "" if best is None else f"; the largest that was found is {best.guarantee.epsilon:.6g}"
        raise InputError(f"{self}: no parameter was found with which epsilon {epsilon:g} holds for one text{reached}")


class _ParameterSearch:
    """The search for the parameter that gives an ε: guarantees grow with it, and most are nearly proportional to it.

    >>> search = _ParameterSearch(100.0)
    >>> search.next()
    100.0
    >>> search.tried(100.0, 4800.0)  # 48 times the parameter
    >>> round(search.next(), 6)
    2.083333
    """

    def __init__(self, asked: float) -> None:
        self.asked = asked
        self.under: tuple[float, float] | None = None  # the best so far, and its ε
        self.over: tuple[float, float] | None = None  # the smallest whose ε is too large, and that ε
        self.stuck = 0  # how often in a row a far smaller parameter gave no smaller ε
        self.again = 0  # how often in a row the search landed on the same side: negative for the lower one

    def tried(self, parameter: float, kept: float) -> None:
        """Record the ε that a parameter gives."""
        if kept <= self.asked:
            self.under, self.again = (parameter, kept), min(self.again, 0) - 1
        else:
            before, self.over, self.again = self.over, (parameter, kept), max(self.again, 0) + 1
            if before is not None and self.under is None and math.isfinite(kept):
                smaller = parameter <= before[0] / 2
                self.stuck = self.stuck + smaller if kept >= before[1] * (1 - CLOSE) else 0

    @property
    def narrow(self) -> bool:
        """Whether there is nothing left to try."""
        return self.under is not None and self.over is not None and self.over[0] <= self.under[0] * (1 + CLOSE)

    def next(self) -> float:
        """The next parameter to try: by proportion with one side known, by interpolation or bisection with both."""
        aim = self.asked * (1 - CLOSE / 2 * (abs(self.again) > 1))
        if self.under is None and self.over is None:
            return self.asked
        if self.under is None or self.over is None:
            parameter, kept = self.over or self.under or (self.asked, self.asked)
            if math.isinf(kept):
                return parameter / 4
            share = (aim / kept) ** abs(self.again) if kept else 4.0  # farther each time
            return parameter * (min(share, 1 - CLOSE) if self.over else min(max(share, 2.0), 8.0))
        (low, least), (high, most) = self.under, self.over
        if math.isinf(most) or not least:
            return math.sqrt(low * high)
        below, above = math.log(aim / least), math.log(most / aim)
        # The Illinois rule: an end that stays counts less each time, so that it is replaced soon.
        below /= 2.0 ** max(self.again - 1, 0)
        above /= 2.0 ** max(-self.again - 1, 0)
        return float(low * (high / low) ** (below / (below + above)))


def names() -> dict[str, str]:
    """All names with a one-line description: the shipped rewriters, and those of installed packages.

    >>> "adept" in names()
    True
    """
    known = {name: about for name, (_, about) in SHIPPED.items()}
    for point in entry_points(group=GROUP):
        known.setdefault(point.name, f"from the package {point.dist.name if point.dist else point.module}")
    return known


def found(name: str) -> tuple[Callable[..., Any] | Rewriter, dict[str, str]]:
    """The function that makes the rewriter of a name, and the settings implied by the name: for a folder, its model.

    A folder with a model takes precedence over a name, so that a model in a folder called adept is found.
    """
    if (Path(name) / MODEL).is_file():
        return _of_folder(Path(name)), {"model": name}
    if name in SHIPPED:
        return _imported(SHIPPED[name][0]), {}
    for point in entry_points(group=GROUP):
        if point.name == name:
            return point.load(), {}
    if Path(name).is_dir():
        raise InputError(f"{name} holds no trained model: it has no {MODEL}; train one with 'dpassay train adept'")
    if ":" in name:
        from dpassay.audit.mechanisms.targets import load_object

        return load_object(name), {}
    near = get_close_matches(name, names(), n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(
        f"there is no rewriter {name!r}; {hint}give a name ({', '.join(names())}), the folder of a trained model, or "
        "package.module:name"
    )


def _of_folder(folder: Path) -> Callable[..., Any]:
    from dpassay.text.models.folder import system_of

    system = system_of(folder)
    if system not in SHIPPED:
        raise InputError(f"{folder} is a model of {system}, which does not rewrite text; adept does")
    return _imported(SHIPPED[system][0])


@lru_cache(maxsize=64)
def _imported(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def _made(
    maker: Any,
    settings: dict[str, str],
    epsilon: float | None,
    delta: float | None,
    asked: str,
) -> Rewriter:
    if is_rewriter(maker):
        if settings:
            raise InputError(f"{asked} is a rewriter already: it takes no settings")
        return _with_guarantee(maker, asked)
    try:
        parameters = inspect.signature(maker).parameters
    except (TypeError, ValueError):
        raise InputError(f"{asked} is neither a rewriter nor a function that makes one, but {maker!r:.80}") from None
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        allowed = [key for key in parameters if key not in ("epsilon", "delta")]
        for key in settings:
            if key not in allowed:
                raise InputError(f"{asked}: there is no setting {key!r}; there are {', '.join(allowed) or 'none'}")
        missing = [k for k in allowed if parameters[k].default is inspect.Parameter.empty and k not in settings]
        if missing:
            hint = MODEL_HINTS.get(asked, "") if missing[0] == "model" else ""
            raise InputError(f"{asked} needs the setting {missing[0]}: {asked},{missing[0]}=…{hint}")
    given = {key: value for key, value in (("epsilon", epsilon), ("delta", delta)) if key in parameters}
    if "epsilon" in given and epsilon is None and parameters["epsilon"].default is inspect.Parameter.empty:
        raise InputError(f"specify the epsilon for {asked}: --epsilon 50")
    if given.get("delta", 0) is None:
        del given["delta"]
    who = asked if epsilon is None else f"{asked} at epsilon {epsilon:g}"
    with blamed(who):
        made = maker(**given, **settings)
    if not is_rewriter(made):
        raise InputError(
            f"{asked} made {type(made).__name__}, which is not a rewriter: it needs rewrite(texts, rng) and guarantee"
        )
    return _with_guarantee(made, who)


def _with_guarantee(made: Any, who: str) -> Rewriter:
    """A rewriter whose guarantee can be read; if it cannot, the error is raised here."""
    with blamed(who):
        guarantee = made.guarantee
    if not isinstance(guarantee, TextGuarantee):
        raise MechanismError(
            f"{who} has {type(guarantee).__name__} as its guarantee, which says too little: give a "
            "dpassay.text.rewriters.base.TextGuarantee, as in TextGuarantee(epsilon)"
        )
    rewriter: Rewriter = made
    return rewriter
