"""What a certificate states, and who judges it: brute force over small data sets, and formulas where it cannot.

Only `statements` knows the format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from mpmath import mp, mpf

import brute_force
from brute_force import Said
from oracle import Statement, Truth, Unreadable, judged, truth_of
from oracle.guarantees import Stated, judged_other
from oracle.losses import NOTHING_KNOWN
from oracle.shown import Block, proves, shown
from oracle.steps import relation
from oracle.text import Stage
from oracle.text import stages as read_stages


@dataclass(frozen=True)
class Subject:
    """The mechanism that a statement is about."""

    text: str
    values: tuple[tuple[str, mpf], ...]
    dim: int
    neighbours: str
    pairs: tuple[tuple[int, int, tuple[Block, ...]], ...] = ()  # each with its noise and where it comes in

    def showing(self, *steps: dict[str, Any]) -> Subject:
        """The same with the pairs of some steps."""
        pairs = []
        for step in steps:
            blocks = (Block(number(b["x"]), number(b["y"]), b["count"], b["positions"]) for b in step["pair"])
            pairs.append((step["noise"], step["at"], tuple(blocks)))
        return replace(self, pairs=tuple(pairs))

    @property
    def stages(self) -> list[Stage]:
        return read_stages(self.text, dict(self.values) | {"dim": mpf(self.dim)})

    @property
    def relation(self) -> tuple[str, ...]:
        """The first stage, if it defines which inputs are neighbours."""
        first = self.stages[0]
        return (first.name, *map(str, first.given.values())) if first.name in ("query", "rows") else ()

    def truth(self) -> Truth:
        """What is known about all neighbours, and about the pairs."""
        known = truth_of(self.text, dict(self.values), self.dim, self.neighbours)
        basic, count = relation(self.neighbours)
        if count > 1 or {stage.name for stage in self.stages} & {"poisson", "subsample", "shuffle", "times"}:
            return known
        added = basic == "add-remove-record" and self.stages[0].name != "query"
        dropped = [stage.mu for stage in self.stages if stage.name == "dropout" and basic == "word"]
        for pair in self.pairs:
            try:
                found = proves(shown(self.stages, self.dim, added, *pair))
            except Unreadable:
                continue
            known = known.at_least(found.behind_dropout(1 - mp.fprod(1 - mu for mu in dropped)))
        return known


def number(value: Any) -> mpf:
    with mp.workdps(50):
        return (mpf(value[0]) + mpf(value[1])) / 2


def _stated(what: str, data: dict[str, Any]) -> Stated:
    order = number(data["order"]) if "order" in data else mpf(2)
    return Stated(what, data["kind"], number(data["value"]), order, data.get("metric", ""))


def statements(certificate: dict[str, Any]) -> Iterator[tuple[Subject, Statement | Stated]]:
    """Everything that a certificate says of a mechanism's loss; what a pair shows with that pair."""
    claim, *steps = certificate["steps"]
    other = claim.get("guarantee")
    epsilon, delta = (number(other["value"]), mpf(0)) if other else (number(claim["epsilon"]), number(claim["delta"]))
    name = {"zcdp": "rho", "gdp": "mu"}.get(other["kind"], "eps") if other else "eps"
    own = {name: epsilon, "delta": delta} if name == "eps" else {name: epsilon}
    values = {key: number(value) for key, value in claim["parameters"].items() if key != "dim"} | own
    subject = Subject(claim["pipeline"], tuple(values.items()), claim["dim"], claim["neighbours"])
    if certificate["verdict"] != "open":
        lowers = [step for step in steps if step["step"] == "lower"]
        said = _stated(certificate["verdict"], other) if other else Statement(certificate["verdict"], epsilon, delta)
        yield subject.showing(*(() if other and other["kind"] == "metric" else lowers)), said
    for step in steps:
        if "guarantee" in step:
            about = (
                Subject(step["pipeline"], tuple(own.items()), subject.dim, subject.neighbours)
                if "pipeline" in step
                else subject
            )
            what = "at least" if step["step"] == "lower" else "at most"
            metric = step["guarantee"]["kind"] == "metric"
            yield (
                about.showing(*([step] if what == "at least" and not metric else [])),
                _stated(what, step["guarantee"]),
            )
            continue
        if step["step"] == "upper":
            yield subject, Statement("epsilon at most", number(step["epsilon"]), number(step["delta"]))
        if step["step"] == "lower":
            what = f"{step['quantity']} at least"
            yield subject.showing(step), Statement(what, number(step["epsilon"]), number(step["delta"]))
        if step["step"] == "witness":
            least_p, most_q = mpf(step["log_p"][0]), mpf(step["log_q"][1])
            if not mp.isinf(least_p) and not other:
                excess = mp.exp(least_p) - mp.exp(epsilon + most_q)
                yield subject.showing(step), Statement("epsilon at least", least_p - most_q, mpf(0))
                yield subject.showing(step), Statement("delta at least", epsilon, excess)
        if step["step"] == "repair":
            repaired = Subject(step["pipeline"], tuple(own.items()), subject.dim, subject.neighbours)
            if repaired.relation != subject.relation:
                raise AssertionError(f"the repair {step['pipeline']} is about other neighbors than {subject}")
            yield repaired, Statement("proven", number(step["epsilon"]), number(step["delta"]))


# ── The judges ──────────────────────────────────────────────────────────────────────────────────


def by_brute_force(subject: Subject, said: Statement | Stated) -> tuple[str, str]:
    """ "true" where no small data sets contradict a statement, "false" where some do, or "unknown"; and why."""
    if not isinstance(said, Statement):
        return "unknown", "another guarantee"
    values = tuple((key, mp.nstr(value, 45)) for key, value in subject.values)
    plain = Said(said.what, float(said.epsilon), float(said.delta))
    return brute_force.judged(subject.text, values, subject.dim, subject.neighbours, plain)


def by_formulas(subject: Subject, said: Statement | Stated) -> tuple[str, str]:
    """The same by tests/oracle, to 30 digits where it knows the truth."""
    try:
        if isinstance(said, Stated):
            about = subject.stages, subject.dim, subject.neighbours
            return judged_other(subject.truth() if said.kind != "metric" else NOTHING_KNOWN, said, *about)
        return judged(subject.truth(), said)
    except Unreadable as error:
        return "unknown", str(error)


def judge(certificate: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What a certificate states and one of the judges knows to be false, and what none of them can tell.

    Brute force comes first. It sees no less than a part in a thousand of a lower end; formulas see the rest.
    """
    false, unknown = [], []
    with mp.workdps(50):
        for subject, said in statements(certificate):
            words = [by_brute_force(subject, said)]
            if words[0][0] != "false":
                words.append(by_formulas(subject, said))
            where = f"{subject.text} (dim {subject.dim}, {subject.neighbours})"
            false += [f"{where}: {why}" for word, why in words if word == "false"]
            if all(word == "unknown" for word, _ in words):
                unknown.append(f"{where}: {words[-1][1] or said}")
    return false, unknown
