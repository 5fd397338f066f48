"""What a verdict means to the person whose text it is: how far an output can raise the odds between two inputs."""

import math

from dpassay.core.guarantee import GDP, ApproxDP, MetricDP, PureDP
from dpassay.core.interval import Interval, bound, nearest, outward
from dpassay.evidence.verdict import Verdict
from dpassay.report.pages.typeset import typeset

SHOWN = 4  # digits of a loss on a page, the same everywhere


def shown(value: Interval, *borders: float) -> str:
    """A number as pages write it, rounded to the nearest, or an interval or a lower bound, rounded outward.

    Rounding moves it across none of the `borders`, such as the claimed value; it gets more digits instead.

    >>> shown(Interval(5.65685424949, 5.65685424951)), shown(Interval(4.4, 4.6)), shown(Interval(1, 1))
    ('5.657', '[4.4, 4.6]', '1')
    >>> shown(Interval(38.39999999999, 38.40000000001)), shown(Interval(0.9999999999, 1))
    ('38.4', '1')
    >>> shown(Interval(0.8172595, math.inf)), shown(Interval(math.inf, math.inf))
    ('at least 0.8172', '∞')
    >>> shown(Interval(3840, 3840))
    '3,840'
    """
    if math.isinf(value.lower):
        return "∞"
    if number := nearest(value, *borders, significant=SHOWN):
        return number
    low = bound(value.lower, -1, *borders, significant=SHOWN)
    return (
        f"at least {low}"
        if math.isinf(value.upper)
        else f"[{low}, {bound(value.upper, 1, *borders, significant=SHOWN)}]"
    )


def _plain(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number and "e" not in number else number


def odds(loss: float, direction: int = -1) -> str:
    """What a loss turns even odds into, in three digits, rounded down (direction −1) or up (+1).

    >>> odds(5.65685), odds(1, 1), odds(0), odds(3800), odds(math.inf)
    ('286:1', '2.72:1', '1:1', '10^1650:1', 'no limit')
    """
    if math.isinf(loss):
        return "no limit"
    if loss > math.log(10.0) * 9:
        power = loss / math.log(10.0)
        return f"10^{math.floor(power) if direction < 0 else math.ceil(power)}:1"
    # The exponential is off by less than this.
    rounded = outward(math.exp(loss) * (1 + direction * 1e-14), direction, 3) if loss else "1"
    return f"{_grouped(_plain(rounded))}:1"


def _grouped(number: str) -> str:
    return f"{int(float(number)):,}" if float(number) >= 1000 else number


def meaning(verdict: Verdict) -> str:
    """One or two sentences without technical terms.

    >>> from dpassay import check
    >>> meaning(check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1))
    'An output can raise the odds between two inputs from 1:1 to 286:1. The claim allows 2.72:1 at most.'
    >>> meaning(check("clip(l1, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1))
    'Whatever the output, it raises the odds between two inputs from 1:1 to 2.72:1 at most, as claimed.'
    """
    return typeset(_meaning(verdict))


def definition(verdict: Verdict) -> str:
    """What the claimed guarantee says, in a sentence; empty where `meaning` says it.

    >>> from dpassay import check
    >>> definition(check("query(l1, 1) | laplace(1)", epsilon=1))
    '1-DP means that, for all neighboring inputs, any set of outputs is at most e^1 ≈ 2.72 times as likely ...'
    """
    guarantee = verdict.guarantee
    if not isinstance(guarantee, PureDP) or not math.isfinite(guarantee.claimed):
        return ""
    written = str(guarantee).removesuffix("-DP")
    factor = odds(guarantee.claimed, 1).removesuffix(":1")
    factor = (
        "equally likely under both inputs"
        if not guarantee.claimed
        else (f"at most e^{written} ≈ {factor} times as likely under one input as under the other")
    )
    return typeset(f"{guarantee} means that, for all neighboring inputs, any set of outputs is {factor}.")


def _meaning(verdict: Verdict) -> str:
    guarantee = verdict.guarantee
    if isinstance(guarantee, GDP):
        return (
            "The claim: distinguishing two inputs by the output is no easier than distinguishing a normal variable "
            "of mean 0 "
            f"from one of mean {guarantee.claimed:.5g}, both of variance 1, from a single observation."
        )
    allowed = odds(guarantee.claimed, 1)
    if isinstance(guarantee, MetricDP):
        return _per_unit(verdict, allowed)
    if isinstance(guarantee, ApproxDP):
        return _with_delta(verdict, guarantee, allowed.removesuffix(":1"))
    if not isinstance(guarantee, PureDP):
        return ""
    if verdict.word == "proven":
        return f"Whatever the output, it raises the odds between two inputs from 1:1 to {allowed} at most, as claimed."
    if verdict.value.lower <= 0:
        return f"The claim: an output raises the odds between two inputs from 1:1 to {allowed} at most."
    who = f"An output can raise the odds between two inputs from 1:1 to {odds(verdict.value.lower)}."
    if math.isinf(verdict.value.lower):
        who = "There is no limit to how far an output can raise the odds between two inputs."
    return f"{who} The claim allows {allowed} at most."


def _with_delta(verdict: Verdict, guarantee: ApproxDP, allowed: str) -> str:
    """The definition of (ε, δ)-DP in words: it is about sets of outputs, and bounds no single one."""
    rare = f"{guarantee.delta:.3g}"
    bounded = f"the probability of any set of outputs under one input is at most {allowed} times its probability "
    bounded += f"under the other, plus {rare}"
    if verdict.word == "proven":
        return f"{bounded[0].upper()}{bounded[1:]}, as claimed."
    if verdict.value.lower <= 0:
        return f"The claim: {bounded}."
    if math.isinf(verdict.value.lower):
        who = "However large the factor, the probability of some set of outputs under one input exceeds it times that "
        return f"{who}under the other, plus {rare}. The claim allows a factor of {allowed}."
    factor = odds(verdict.value.lower).removesuffix(":1")
    who = f"There is a set of outputs whose probability under one input exceeds {factor} times its probability under "
    return f"{who}the other, plus {rare}. The claim allows a factor of {allowed}."


def _per_unit(verdict: Verdict, allowed: str) -> str:
    if verdict.word == "proven" or verdict.value.lower <= 0:
        held = "Whatever the output, it" if verdict.word == "proven" else "The claim: an output"
        return f"{held} raises the odds between two inputs at distance 1 from 1:1 to {allowed} at most."
    factor = odds(verdict.value.lower).removesuffix(":1")
    seen = f"multiplies the odds by {factor} for each unit of their distance"
    seen = "raises the odds without limit" if math.isinf(verdict.value.lower) else seen
    return (
        f"There are two inputs between which an output {seen}. The claim allows {allowed.removesuffix(':1')} at most."
    )
