"""The findings on a record: from its formula, from the probabilities of an event, and from runs in its environment."""

from __future__ import annotations

import json
import math
import platform
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from dpassay.api import check
from dpassay.audit.remote.process import Process
from dpassay.audit.remote.programs import Program
from dpassay.audit.runner import audit
from dpassay.core.files import write_whole
from dpassay.core.guarantee import ZCDP, RenyiDP
from dpassay.core.numbers import double_below, down, log, number
from dpassay.core.records import read_json
from dpassay.errors import InputError, MechanismError, counted
from dpassay.packages.environment import Environment
from dpassay.packages.record import FOLDER, Record
from dpassay.pipeline.parser import evaluate

# One of at most 100 records: together their audits refute a true claim with a probability of at most 0.001.
ALPHA = 0.001 / 100
SEED = 0
FIRST_ANSWER = 300.0  # seconds: a package may import torch or read a hundred megabytes of vectors
ROUNDING = 1e-6  # relative: how far the doubles of a subject's `chances()` may be off
RECORDED = FOLDER.parent / "recorded.json"

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class PackageVerdict:
    """What is known about a mechanism: a verdict, an interval for ε, and what it rests on.

    `word` is refuted, proven (the formula read from the code satisfies the claim, and no runs refute it) or open.

    >>> PackageVerdict(word="refuted", lower=math.inf, upper=math.inf, evidence=["event"], reason="").shown
    '∞'
    >>> PackageVerdict(word="open", lower=0.25, upper=math.inf, evidence=["runs"], reason="").shown
    '≥ 0.25'
    """

    word: str
    lower: float
    upper: float
    evidence: list[str]
    reason: str
    runs: int = 0
    alpha: float | None = None
    seed: int | None = None
    date: str = ""
    python: str = ""
    digest: str = ""

    @property
    def shown(self) -> str:
        """The true ε, as far as it is known."""
        from dpassay.core.interval import outward

        if math.isinf(self.lower):
            return "∞"
        if math.isinf(self.upper):
            return f"≥ {outward(self.lower, -1, 4)}"
        low, high = f"{self.lower:.4g}", f"{self.upper:.4g}"
        return low if low == high else f"[{outward(self.lower, -1, 4)}, {outward(self.upper, 1, 4)}]"

    @property
    def rests_on(self) -> str:
        """What it rests on, in a few words."""
        return ", ".join(counted(self.runs, "run") if one == "runs" else one for one in self.evidence)


def judge_released(
    record: Record, envs: Path, interpreter: str | None = None, progress: Progress | None = None
) -> PackageVerdict:
    """Make the record's environment below a folder, if it has something to run, and judge it."""
    environment = Environment.of(record, envs)
    if record.subject and not record.not_run:
        environment.make(record, *([] if interpreter is None else [interpreter]))
    return judge(record, environment, progress)


def judge(record: Record, environment: Environment, progress: Progress | None = None) -> PackageVerdict:
    """All evidence of a record, combined; its environment must exist if it is run."""
    found = [_by_formula(record)] if record.formula else []
    if record.chances:
        found.append(_by_chances(record, record.chances))
    if record.subject and not record.not_run:
        # Its loop calls `mechanism` once for each output, so a batch is as good as single runs.
        with Program(environment.command(record), FIRST_ANSWER, independent_rows=True) as subject:
            if "def chances(" in record.subject:
                found.append(_by_chances(record, subject_chances(environment.command(record))))
            if "def mechanism(" in record.subject:
                found.append(_by_runs(record, subject, progress))
    known = max(found, key=lambda one: (one.word == "refuted", one.lower))
    words = {one.word for one in found}
    word = next((word for word in ("refuted", "proven") if word in words), "open")
    runs = next((one for one in found if one.runs), None)
    return replace(
        known,
        word=word,
        upper=min(one.upper for one in found),
        evidence=[name for one in found for name in one.evidence],
        runs=0 if runs is None else runs.runs,
        alpha=None if runs is None else runs.alpha,
        seed=None if runs is None else runs.seed,
        date=date.today().isoformat(),
        python=platform.python_version(),
        digest=record.digest,
    )


def _by_formula(record: Record) -> PackageVerdict:
    """The law that the code draws from, judged exactly; a law that is only documented proves nothing."""
    verdict = check(record.formula, dim=record.dim, **_stated(record))
    if verdict.proven and not record.read_from_code:
        reason = "The law that its documentation names satisfies the claim; the code, which is compiled, was not read."
        return PackageVerdict("open", 0.0, math.inf, ["documentation"], reason)
    return PackageVerdict(verdict.word, verdict.value.lower, verdict.value.upper, ["formula"], verdict.reason)


def _stated(record: Record) -> dict[str, Any]:
    """The claimed guarantee as `check` takes it."""
    if record.rho is not None:
        return {"guarantee": ZCDP(str(record.rho))}
    if record.order is not None:
        return {"guarantee": RenyiDP(str(record.order), str(record.epsilon))}
    return record.statement


def _by_chances(record: Record, chances: list[Any]) -> PackageVerdict:
    """An event whose probabilities are known: ε is at least the logarithm of (P - δ)/Q."""
    formulas = all(isinstance(one, int | str) for one in chances)
    often, seldom = (evaluate(str(one), {}) if formulas else number(one) for one in chances)
    above = often - evaluate(str(record.delta), {})
    shown = " and ".join(f"{float(down(one)):.4g}" for one in (often, seldom))
    reason = f"{record.event}: its probabilities are {shown}"
    if not above.a > 0:
        return PackageVerdict("open", 0.0, math.inf, ["event"], reason)
    lower = math.inf if seldom == 0 else down(log(above / seldom))
    if not formulas and math.isfinite(lower):
        lower = double_below(number(lower) - number(2 * ROUNDING))
    claimed = evaluate(str(record.epsilon), {})
    word = "refuted" if lower > float(claimed.b) else "open"
    return PackageVerdict(word, max(lower, 0.0), math.inf, ["event"], reason)


def subject_chances(command: str) -> list[float]:
    """The probabilities that a subject computes from its package's contents."""
    line = Process(shlex.split(command), "the subject", FIRST_ANSWER)
    try:
        said = line.exchange(b'{"chances": true}\n', 1).said
        often, seldom = json.loads(said or b"null")["chances"]
        if not 0 <= seldom <= often <= 1:
            raise ValueError("they are not two probabilities, the larger one first")
        return [float(often), float(seldom)]
    except (ValueError, TypeError, KeyError) as error:
        raise MechanismError(f"the subject returned no chances: {error}") from None
    finally:
        line.close()


def _by_runs(record: Record, subject: Program, progress: Progress | None) -> PackageVerdict:
    """An audit of the subject on the record's pair."""
    first, second = record.pair
    options = {"runs": record.runs, "alpha": ALPHA, "seed": SEED, "bits": False, "shrink": False}
    verdict = audit(subject, [(first, second)], progress=progress, **options, **record.statement)
    if verdict.interrupted:
        raise KeyboardInterrupt
    found = PackageVerdict(verdict.word, verdict.value.lower, math.inf, ["runs"], verdict.reason)
    return replace(found, runs=verdict.runs, alpha=ALPHA, seed=SEED)


def recorded(path: Path = RECORDED) -> dict[str, PackageVerdict]:
    """The findings, by the names of the records; empty if nothing has been recorded."""
    if not path.exists():
        return {}
    try:
        data = read_json(path, "file of what was found")
        return {name: _read(one) for name, one in data.items()}
    except InputError as error:
        raise InputError(f"{error}; write it with dpassay packages --run --record") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path} cannot be read: {error}; write it with dpassay packages --run --record") from None


def current(records: Mapping[str, Record], path: Path = RECORDED) -> dict[str, tuple[Record, PackageVerdict | None]]:
    """Each record with its finding; with None if it has changed since, or was never run."""
    before = recorded(path)
    known = {name: before.get(name) for name in records}
    return {
        name: (record, one if (one := known[name]) is not None and one.digest == record.digest else None)
        for name, record in records.items()
    }


def _read(data: dict[str, Any]) -> PackageVerdict:
    return PackageVerdict(**{**data, "lower": float(data["lower"]), "upper": float(data["upper"])})


def as_json(found: PackageVerdict) -> dict[str, Any]:
    """As data; infinities are the string "inf"."""
    return {**asdict(found), **{end: "inf" for end in ("lower", "upper") if math.isinf(getattr(found, end))}}


def write_recorded(found: dict[str, PackageVerdict], path: Path = RECORDED) -> None:
    """Save the findings."""
    data = {name: as_json(one) for name, one in sorted(found.items())}
    write_whole(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
