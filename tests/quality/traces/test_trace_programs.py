"""Programs that people could have written are traced: nothing false is said of any, and most are decided.

A tenth of them is traced by default, another tenth of each kind than of the one before; all of them with `--all`.
"""

import re
from dataclasses import dataclass
from functools import cache

import pytest

import tiers
from dpassay import trace
from dpassay.errors import InputError, MechanismError
from dpassay.trace.result import TraceResult
from trace_programs import ALL, Program

ROUNDING = 1e-9  # of sums and logarithms in doubles, on both sides
PRINTED = 1e-5  # a sentence has six digits
MOST_OPEN = 0.2  # of all programs that can be decided
KINDS = list(dict.fromkeys(program.kind for program in ALL))

# "at most ε = 1, apart from a probability of at most 0.14%", in which the probability may be missing.
_AT_MOST = re.compile(r"(?:ε is at most|at most ε =|ε ≤) (∞|[\d.,]+(?:e-?\d+)?)")
_APART = re.compile(r"probability of at most ([\d.,]+(?:e-?\d+)?)(%?)")


def in_this_tier(program: Program) -> bool:
    same = [one for one in ALL if one.kind == program.kind]
    return tiers.in_full or (same.index(program) + KINDS.index(program.kind)) % 10 == 0


@dataclass(frozen=True)
class Outcome:
    """What a trace says of a program, and what of it is false."""

    said: str
    false: str
    decided: bool


@cache
def outcome(name: str) -> Outcome:
    program = next(one for one in ALL if one.name == name)
    try:
        result = trace(
            program.subject,
            pairs=[program.pair],
            epsilon=program.epsilon,
            delta=program.delta,
            hostile=False,
            time_limit=program.seconds,
        )
    except (MechanismError, InputError) as error:
        said = f"{type(error).__name__}: {error}"
        return Outcome(said, "" if program.may_fail else "it failed", decided=program.may_fail)
    except Exception as error:  # whatever the code is, a trace must not break on it
        return Outcome(f"{type(error).__name__}: {error}", "the trace broke", decided=False)
    decided = result.verdict.refuted or (
        program.right and result.pair_epsilon.upper <= program.epsilon * (1 + ROUNDING)
    )
    return Outcome(str(result.verdict), false_of(program, result), decided)


def false_of(program: Program, result: TraceResult) -> str:
    """What a trace says of a program and is not true, or nothing."""
    said = str(result.verdict)
    if result.verdict.proven:
        return "a trace proves nothing"
    if result.verdict.refuted and program.right:
        return f"refuted, although the claim of {program.epsilon:g} is true"
    if result.pair_epsilon.lower > program.truth * (1 + ROUNDING) + ROUNDING:
        return f"at least {result.pair_epsilon.lower:g} was said"
    if result.verdict.refuted:
        return ""
    printed = [number(found) * (1 + PRINTED) for found in _AT_MOST.findall(_APART.sub("", said))]
    uppers = [result.pair_epsilon.upper, *printed]
    apart = _APART.search(said)
    if apart is None:
        low = [upper for upper in uppers if upper < program.truth * (1 - ROUNDING) - ROUNDING]
        return f"at most {low[0]:g} was said" if low else ""
    probability = number(apart.group(1)) * (0.01 if apart.group(2) else 1)
    if min(uppers) < program.truth and probability < program.leak:
        return f"a probability of at most {probability:g} was said, and it is {program.leak:g}"
    if min(uppers) < program.truth * (1 - ROUNDING) - ROUNDING and not program.leak:
        return f"at most {min(uppers):g} was said"  # a rare event could excuse it, and these programs have none
    return ""


def number(text: str) -> float:
    return float("inf") if text == "∞" else float(text.replace(",", "").rstrip("."))


@pytest.mark.parametrize(
    "program",
    [pytest.param(one, id=one.name, marks=[] if in_this_tier(one) else pytest.mark.long) for one in ALL],
)
def test_nothing_false_is_said(program: Program) -> None:
    found = outcome(program.name)
    assert not found.false, f"{found.false} of {program.name}, whose loss is {program.truth:g}: {found.said}"


@pytest.mark.long
def test_most_programs_are_decided() -> None:
    rows, left = [f"{'kind':18}{'programs':>9}{'decided':>9}{'open':>6}{'false':>7}"], []
    for kind in KINDS:
        found = {one.name: outcome(one.name) for one in ALL if one.kind == kind}
        false = [name for name, one in found.items() if one.false]
        undecided = [name for name, one in found.items() if not one.decided and not one.false]
        decided = len(found) - len(false) - len(undecided)
        rows.append(f"{kind:18}{len(found):9}{decided:9}{len(undecided):6}{len(false):7}  {', '.join(undecided)}")
        left += undecided
    print("\n".join(rows))
    assert len(left) <= MOST_OPEN * len(ALL), "\n".join(rows)


def test_the_programs_are_half_right_and_half_wrong() -> None:
    assert len({one.name for one in ALL}) == len(ALL) >= 130
    assert 0.4 * len(ALL) <= sum(one.right for one in ALL) <= 0.6 * len(ALL)
    for kind in KINDS:
        assert len({one.right for one in ALL if one.kind == kind}) == 2, f"all {kind} are alike"
        assert any(in_this_tier(one) for one in ALL if one.kind == kind)
