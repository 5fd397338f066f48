"""Every mechanism of a scan ends refuted, not refuted, or not run with the reason."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpassay.audit.remote.programs import Program
from dpassay.audit.runner import audit
from dpassay.core.files import write_whole
from dpassay.errors import DpassayError
from dpassay.scan.findings import FoundMechanism, Scan, in_order
from dpassay.scan.reading.index import FunctionSource, Index
from dpassay.scan.running.arguments import DIAGONAL, EPSILON, TWO_STEPS, ArgumentCall, InputKind, call_of
from dpassay.scan.running.programs import subject, works, write_program

ALPHA = 0.001  # for all mechanisms of one scan together
RUNS = 3_000
FIRST_ANSWER = 60.0
OUTCOMES = "outcomes.json"

Progress = Callable[[int, int, str], None]


def run_mechanisms(
    scan: Scan,
    index: Index,
    folder: Path,
    *,
    root: Path | None,
    python: Sequence[str] = (),
    progress: Progress | None = None,
) -> Scan:
    """Run what a scan found, in processes of their own; what is already in the folder is not run again."""
    folder.mkdir(parents=True, exist_ok=True)
    known = _read(folder / OUTCOMES)
    functions = {(one.module.name, one.qualified): one for one in index.functions()}
    ran: list[FoundMechanism] = []
    interrupted = False
    for number, mechanism in enumerate(scan.mechanisms):
        function = functions.get((mechanism.module, mechanism.name))
        if progress is not None:
            progress(number, len(scan.mechanisms), f"running {mechanism.name}")
        if interrupted or function is None:
            ran.append(mechanism)
            continue
        key = _key(mechanism, function)
        try:
            if key not in known:
                alpha = ALPHA / len(scan.mechanisms)
                known[key] = run_one(index, function, folder, root, python or (sys.executable,), alpha, mechanism)
                write_whole(folder / OUTCOMES, json.dumps(known, indent=1, ensure_ascii=False) + "\n")
        except KeyboardInterrupt:
            interrupted = True
        ran.append(replace(mechanism, **known[key]) if key in known else mechanism)
    return replace(scan, mechanisms=in_order(ran), interrupted=scan.interrupted or interrupted)


def _key(mechanism: FoundMechanism, function: FunctionSource) -> str:
    digest = hashlib.sha256(function.text.encode()).hexdigest()[:12]
    return f"{mechanism.module}:{mechanism.name}:{digest}"


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return data if isinstance(data, dict) else {}
    except (OSError, ValueError):
        return {}


def run_one(
    index: Index,
    function: FunctionSource,
    folder: Path,
    root: Path | None,
    python: Sequence[str],
    alpha: float,
    mechanism: FoundMechanism,
) -> dict[str, Any]:
    """One mechanism: its outcome, the ε shown, a reason, and the command that repeats it.

    A suspicion is aimed at: where a seed is suspected, each call gets a new object; for a wrong norm, vectors that are
    far apart in l1 are tried first.
    """
    fresh = any(one.rule.startswith("seed-") for one in mechanism.findings)
    call = call_of(index, function)
    if isinstance(call, str):
        return _not_run(f"{call}; dpassay scan --stub {function.qualified} writes what to complete")
    name = re.sub(r"\W+", "-", f"{function.module.name}-{function.qualified}").strip("-")
    said = ""
    aimed = (DIAGONAL,) if any(one.rule == "wrong-norm" for one in mechanism.findings) else ()
    for form in (*aimed, *call.forms):
        text = subject(call, form, root, fresh)
        said = works(text, form, python, folder, name)
        if not said:
            return _audited(call, form, text, folder, name, python, alpha)
        if "ModuleNotFoundError" in said or "did not finish" in said or "exits when" in said:
            break
    return _not_run(f"no arguments were found that it accepts: {said}")


def _not_run(reason: str) -> dict[str, Any]:
    return {"outcome": "not run", "reason": reason, "epsilon": "", "command": ""}


def _audited(
    call: ArgumentCall, form: InputKind, text: str, folder: Path, name: str, python: Sequence[str], alpha: float
) -> dict[str, Any]:
    """An audit of a subject that works."""
    path = write_program(text, folder, name)
    steps = 2 if form is DIAGONAL or not call.exact else 1  # the diagonal pair is 4 apart, two sensitivities of 2
    claimed, delta = steps * EPSILON, call.delta and (TWO_STEPS if steps == 2 else call.delta)
    command = shlex.join([*python, str(path)])
    options: dict[str, Any] = {"runs": RUNS, "alpha": alpha, "seed": 0, "bits": False, "shrink": False}
    if delta:
        options["delta"] = str(delta)
    save = folder / f"{name}.json"
    save.unlink(missing_ok=True)
    try:
        with Program(command, FIRST_ANSWER, independent_rows=True) as program:
            verdict = audit(program, [(form.first, form.second)], epsilon=str(claimed), save=save, **options)
    except DpassayError as error:
        return _not_run(str(error)[:300])
    if verdict.interrupted:
        raise KeyboardInterrupt
    pair = shlex.quote(json.dumps([form.first, form.second]))
    more = f" --delta {delta:g}" if delta else ""
    again = f"dpassay audit --command {shlex.quote(command)} --pair {pair} --epsilon {claimed:g}{more}"
    lower = verdict.value.lower
    return {
        "outcome": "refuted" if verdict.refuted else "not refuted",
        "epsilon": f"{claimed:g} → ≥ {lower:.3g}" if verdict.refuted else f"{claimed:g}",
        "reason": verdict.reason,
        "command": again,
    }
