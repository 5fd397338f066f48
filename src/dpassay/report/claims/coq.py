"""The published claims as files for Coq: one per system, with a module per claim."""

from collections.abc import Mapping
from pathlib import Path

from dpassay.claims.registry import SYSTEMS
from dpassay.core.files import write_whole
from dpassay.evidence.certificate import certify
from dpassay.evidence.coq import coq_modules
from dpassay.evidence.coq.writing import module_name
from dpassay.evidence.verdict import Verdict


def write_modules(folder: Path, verdicts: Mapping[str, Verdict]) -> int:
    """Write the verdicts that Coq can check, and return how many files there are."""
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for name, text in modules(verdicts).items():
        write_whole(folder / name, text)
        written += 1
    return written


def modules(verdicts: Mapping[str, Verdict]) -> dict[str, str]:
    """The text of each file by its name."""
    files = {}
    for system in SYSTEMS.values():
        own = {claim.name: verdicts[claim.name] for claim in system.claims if claim.name in verdicts}
        certificates = {name: certify(verdict) for name, verdict in own.items() if not verdict.open}
        if text := coq_modules(system.title, certificates):
            files[f"{module_name(system.name)}.v"] = text
    return files
