"""A scan by reading: every function of what is scanned, its noise, and the rules on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from dpassay.errors import InputError
from dpassay.scan.findings import SEVERITIES, FoundMechanism, Scan, ScanFinding, in_order
from dpassay.scan.reading.index import FunctionSource, Index, Module
from dpassay.scan.reading.libraries import DRAWING
from dpassay.scan.reading.names import role_of
from dpassay.scan.reading.values import Log, SourceLine, Used
from dpassay.scan.reading.walk import Walk
from dpassay.scan.rules.context import Context, protects
from dpassay.scan.rules.flows import check_flows
from dpassay.scan.rules.scales import check_scales
from dpassay.scan.rules.seeds import check_module_seeds, check_seeds
from dpassay.scan.rules.slips import check_slips
from dpassay.scan.rules.syntax import check_syntax
from dpassay.scan.sources import Skipped, parse, sources

Progress = Callable[[int, int, str], None]
EXACT = ("opendp", "diffprivlib")


def scan_path(place: Path, *, subject: str = "", tests: bool = False, progress: Progress | None = None) -> Scan:
    """Read a folder, a file or a wheel, and check the rules; nothing of it is executed."""
    return scan_and_index(place, subject=subject, tests=tests, progress=progress)[0]


def scan_and_index(
    place: Path, *, subject: str = "", tests: bool = False, progress: Progress | None = None
) -> tuple[Scan, Index]:
    """The same, with the index of what was read, which running needs."""
    skipped = Skipped()
    modules: list[Module] = []
    interrupted = False
    count = lines = 0
    try:
        for source in sources(place, skipped, tests):
            count += 1
            lines += source.content.count(b"\n")
            module = parse(source, skipped)
            if module is not None:
                modules.append(module)
            if progress is not None and count % 50 == 0:
                progress(0, count, "reading files")
    except KeyboardInterrupt:
        interrupted = True
    if not count and not interrupted:
        raise InputError("; ".join(skipped.sentences) or f"{place} has no Python files to scan")
    index = Index(modules)
    mechanisms, others, stopped = check_index(index, skipped, progress)
    made = Scan(
        subject or str(place), mechanisms, others, count, lines, tuple(skipped.sentences), 0, interrupted or stopped
    )
    return made, index


def check_modules(
    modules: list[Module], skipped: Skipped, progress: Progress | None = None
) -> tuple[tuple[FoundMechanism, ...], tuple[ScanFinding, ...], bool]:
    """The mechanisms of some modules with their findings, the other findings, and whether Ctrl-C ended it."""
    return check_index(Index(modules), skipped, progress)


def check_index(
    index: Index, skipped: Skipped, progress: Progress | None = None
) -> tuple[tuple[FoundMechanism, ...], tuple[ScanFinding, ...], bool]:
    """The same for modules whose names are already resolved."""
    wanted = [one for one in index.functions() if one.module.about_privacy]
    mechanisms: list[FoundMechanism] = []
    loose: list[ScanFinding] = []
    stopped = False
    try:
        for done, function in enumerate(wanted):
            try:
                mechanism, findings = read_function(index, function)
            except RecursionError:
                skipped.sentences.append(
                    f"{function.module.file}: {function.qualified} is nested too deeply to be read"
                )
                continue
            if mechanism is not None:
                mechanisms.append(replace(mechanism, findings=tuple(findings)))
            else:
                loose += findings
            if progress is not None and done % 20 == 0:
                progress(done, len(wanted), "checking functions")
    except KeyboardInterrupt:
        stopped = True
    kept, others = once(mechanisms, loose)
    return in_order(kept), others, stopped


def read_function(index: Index, function: FunctionSource) -> tuple[FoundMechanism | None, list[ScanFinding]]:
    """One function: the mechanism that it is, if it is one, and what the rules find."""
    log = Walk(index, function).read() if _worth_reading(index, function) else Log(function)
    context = Context(index, log)
    check_scales(context)
    check_seeds(context)
    check_module_seeds(function.module, context)
    check_flows(context)
    check_syntax(context)
    check_slips(context)
    uses = [one for one in context.uses() if one.other is not None and (context.calibrated(one) or protects(one))]
    chosen = [one for one in log.draws if one.law in ("choice", "uniform", "geometric", "gumbel")]
    chosen += [one for one in log.draws if one.library.startswith("opendp.")]  # a measurement is a whole mechanism
    local = context.private and bool(context.roles & {"epsilon", "sensitivity"}) and bool(chosen)
    if not uses and not local:
        return None, context.found
    if uses:
        _floating_point(context, uses)
    noise = [f"{one.noise.law}({one.noise.terms[0] if one.noise.terms else '?'})" for one in uses]
    noise += [one.law for one in chosen if not uses]
    place = SourceLine(function.module.file, function.node.lineno)
    parameters = {name: role for name in log.parameters if (role := role_of(name))}
    made = FoundMechanism(
        function.qualified, function.module.name, place, context.claim, parameters, tuple(dict.fromkeys(noise))
    )
    return made, context.found


def _worth_reading(index: Index, function: FunctionSource) -> bool:
    """Whether a function can draw, seed or scale: otherwise its text is enough."""
    if function.name in index.drawing or function.called & {"seed", "manual_seed", "set_seed"}:
        return True
    built = index.method(function.owner, "__init__") if function.owner is not None else None
    if built is not None and built.called & DRAWING:
        return True
    roles = {role_of(arg.arg) for arg, _ in function.parameters}
    if function.owner is not None and function.name == "__init__":
        return bool(function.claim)
    return bool(roles & {"epsilon", "delta", "sensitivity"}) or (
        function.owner is not None
        and bool({role_of(name) for name in function.owner.attributes} & {"epsilon", "sensitivity"})
    )


def _floating_point(context: Context, uses: list[Used]) -> None:
    """Information: one for each mechanism that draws in floating point."""
    numbers = {number for use in uses for number in use.noise.draws}
    drawn = [one for one in context.log.draws if one.number in numbers and not one.library.startswith(EXACT)]
    direct = [one for one in drawn if len(one.where.chain) == 1]
    if direct:
        said = f"{direct[0].law} noise is drawn in floating point, whose last digits can reveal the input."
        context.report("floating-point-noise", "information", direct[0].where.place, said)


def once(
    mechanisms: list[FoundMechanism], loose: list[ScanFinding]
) -> tuple[list[FoundMechanism], tuple[ScanFinding, ...]]:
    """Each rule once for each line, at its worst; it stays with the function that holds the line, if it is listed."""
    owners: dict[tuple[str, str, int], tuple[int, ScanFinding, int]] = {}
    for number, mechanism in enumerate([*mechanisms, None]):
        for one in mechanism.findings if mechanism is not None else loose:
            spot = (one.rule, one.place.file, one.place.line)
            home = mechanism is not None and mechanism.name == one.function
            rank = SEVERITIES.index(one.severity) * 2 + (not home)
            if spot not in owners or rank < owners[spot][0]:
                owners[spot] = (rank, one, number)
    kept = [replace(mechanism, findings=_of(owners.values(), number)) for number, mechanism in enumerate(mechanisms)]
    return kept, _of(owners.values(), len(mechanisms))


def _of(owners: Iterable[tuple[int, ScanFinding, int]], number: int) -> tuple[ScanFinding, ...]:
    mine = [one for _, one, owner in owners if owner == number]
    return tuple(sorted(mine, key=lambda one: (SEVERITIES.index(one.severity), one.place.line)))
