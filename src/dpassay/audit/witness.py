"""What an audit found, in readable form: the inputs, some outputs of each, the rule, and the counts."""

import math
from collections.abc import Sequence

from dpassay.audit.examples import examples, shown_apart
from dpassay.audit.inputs.checks import shown
from dpassay.audit.outputs.outputs import Outputs, join, part
from dpassay.audit.resolved import ResolvedAudit
from dpassay.audit.storage.saving import AuditState
from dpassay.audit.testing.decision_rule import DecisionRule
from dpassay.audit.testing.experiment import SHOWN, GameResult, bound
from dpassay.core.guarantee import Guarantee
from dpassay.errors import counted, escape_control_chars
from dpassay.evidence.sampled import Example, SampledWitness

INPUTS = ("first", "second")
LONGEST_INPUT = 200  # characters
SEARCHED = 1 << 13  # outputs of each input in which rare features are looked for
NO_EVENT = "none: no learned rule distinguishes these inputs"
SHRUNK = "the smallest that was found to refute the claim too; event and counts below are its own"


def witness_of(question: ResolvedAudit, state: AuditState) -> SampledWitness | None:
    """The witness of an audit: its smallest pair, and the rule with the most evidence against the claim."""
    if state.inputs is None or state.game.rule is None:
        return None
    result = state.witness or GameResult(state.game, state.inputs, 0, state.alpha)
    best = result.game.best(question.hypothesis)
    kept = [join(list(batches)) for batches in result.game.kept if batches]
    some, failure, features = _for_the_reader(result.game.shown, best.rule, kept)
    # An event that shows nothing is not worth reporting: it is usually due to chance.
    shows = bound(result.game, question.hypothesis, result.alpha, question.options.fixed) > 0
    return SampledWitness(
        result.inputs,
        _event(best.rule, features) if shows else "",
        best.counts.right,
        best.counts.wrong,
        best.counts.runs,
        result.alpha,
        question.options.seed,
        result.number,
        best.counts.table() if len(result.inputs) == 2 else (),
        features if shows else (),
        some,
        failure,
    )


def _event(rule: DecisionRule, features: Sequence[str]) -> str:
    """The event in words; where features are weighed, also the one that weighs most."""
    said, what = rule.describe(), rule.distinguisher.describe()
    if not features or not rule.distinguisher.by_features:
        return said
    return said.replace(f"based on {what}:", f"based on {what}, above all {features[0]}:", 1)


def _for_the_reader(
    outputs: Sequence[Outputs], rule: DecisionRule, more: Sequence[Outputs]
) -> tuple[tuple[Example, ...], BaseException | None, tuple[str, ...]]:
    """Examples, the exception of one that failed, and features, if there are outputs of two inputs.

    Features too rare to occur in the first outputs are looked for in more of them.
    """
    if len(outputs) != 2:
        return (), None, ()
    try:
        some, failure = examples(outputs, rule)
        features = rule.distinguisher.weightiest([part(one, 0, SHOWN) for one in outputs])
        if not features and rule.distinguisher.by_features and len(more) == 2:
            features = rule.distinguisher.weightiest([part(one, 0, SEARCHED) for one in more])
    except Exception:  # an output may be anything, and describing it must not cost the verdict
        return (), None, ()
    return some, failure, tuple(escape_control_chars(feature).replace("\n", " ") for feature in features if feature)


def witness_rows(witness: SampledWitness, guarantee: Guarantee) -> list[tuple[str, str]]:
    """The rows that describe a game: the inputs, some outputs of each, the event, the counts and the frequencies."""
    rows = [("pair", SHRUNK)] if witness.number else []
    if len(witness.inputs) > 2:
        rows.append(("inputs", f"{len(witness.inputs)} candidates, the first {shown(witness.inputs[0], 100)}"))
    else:
        x, y = (shown(x, 10**6) for x in witness.inputs)
        for i, words in enumerate(shown_apart(x, y, LONGEST_INPUT)):
            rows.append((INPUTS[i], words))
            outputs = [_with_guess(example) for example in witness.examples if example.input == i]
            rows += [("" if k else "gives", output) for k, output in enumerate(outputs)]
    rows.append(("event", witness.event or NO_EVENT))
    rows += [("weighs", "most: " + "; ".join(witness.features))] if witness.features else []
    guesses = witness.right + witness.wrong
    rate = f"{witness.right:,} of {counted(guesses, 'guess', 'guesses')} correct"
    rows.append(("counts", f"{rate} in {counted(witness.runs, 'run')}"))
    rows += [("rates", _rates(witness, guarantee))] if witness.rates and witness.event else []
    return rows


def _with_guess(example: Example) -> str:
    return f"{example.output} → {'neither' if example.named is None else INPUTS[example.named]}"


def _rates(witness: SampledWitness, guarantee: Guarantee) -> str:
    """The most informative event, how often it occurred for each input, and the ratio of both."""
    rate = witness.rates[0]
    named, other = INPUTS[rate.named], INPUTS[1 - rate.named]
    own, others = f"{100 * rate.own:.3g}%", f"in {100 * rate.other:.3g}%" if rate.other else "in none"
    times = "" if math.isinf(rate.ratio) else f", {rate.ratio:.3g} times as often"
    seen = f"the {named} input is named in {own} of its runs and {others} of the {other}'s{times}"
    if guarantee.parameter != "epsilon":
        return seen
    allowed = f"{math.exp(guarantee.claimed):.3g}" if guarantee.claimed < 700 else f"e^{guarantee.claimed:.6g}"
    more = f" plus {guarantee.delta:g}" if guarantee.delta else ""
    return f"{seen}; {guarantee} allows {allowed} times as often{more}"


def table_rows(witness: SampledWitness) -> Sequence[tuple[str, ...]]:
    """The counts of two inputs as a table: a row for each input, a column for what was named; empty if unknown.

    >>> table_rows(SampledWitness(("a", "b"), "", 8, 2, 20, 0.1, 0, 0, ((3, 1, 4), (1, 5, 7))))[1:]
    [('first', '3', '1', '0', '4'), ('second', '1', '5', '1', '7')]
    """
    if not witness.table:
        return []
    rows = [("input", "named first", "named second", "neither", "runs")]
    for label, (first, second, runs) in zip(INPUTS, witness.table, strict=True):
        rows.append((label, f"{first:,}", f"{second:,}", f"{runs - first - second:,}", f"{runs:,}"))
    return rows
