"""The file that Coq checks: a comment with the claim, the import, and the statements."""

import json
import re
import textwrap
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from mpmath import mp

from dpassay.evidence.coq.claim import CertifiedClaim
from dpassay.evidence.coq.statements import statement
from dpassay.evidence.coq.terms import DIGITS, Unsupported, read_stages


def coq_file(source: str | Path | dict[str, Any]) -> str:
    """The certificate of a verdict as a file for Coq. Raises InputError if no theorem in `proofs` decides the claim.

    >>> from dpassay import certify, check
    >>> text = coq_file(certify(check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1)))
    >>> print(text[text.index("Theorem verdict"):].splitlines()[0])
    Theorem verdict : ~ laplace_private (I := index 32) 2 1 (both (in_l2 1)).
    """
    data = source if isinstance(source, dict) else json.loads(Path(source).read_text(encoding="utf-8"))
    body = _body(data)  # refuses other files
    return f"{_heading(data)}\n\nFrom Dpassay Require Import Certificate.\n\n{body}\n"


def coq_modules(title: str, certificates: Mapping[str, dict[str, Any]]) -> str:
    """Several certificates in one file, each in a module of its name; those that Coq cannot check are left out.

    The text is empty if none can be checked.
    """
    modules = []
    for name, data in certificates.items():
        try:
            body = _body(data)
        except Unsupported:
            continue
        module = module_name(name)
        modules.append(f"{_heading(data)}\n\nModule {module}.\n{body}\nEnd {module}.\n")
    if not modules:
        return ""
    top = f"(** * {_comment(title)}: claims as published *)\n\nFrom Dpassay Require Import Certificate.\n"
    return "\n".join([top, *modules])


def module_name(name: str) -> str:
    """A claim's name as Coq's.

    >>> module_name("adept-l1")
    'adept_l1'
    """
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _body(data: dict[str, Any]) -> str:
    if data.get("schema") != "dpassay/certificate/2":
        raise Unsupported("only certificates of pipelines can be written for Coq, not those about words")
    with mp.workdps(DIGITS):
        return "\n".join(statement(_claim(data)))


def _heading(data: dict[str, Any]) -> str:
    """A comment with the claim as the certificate states it."""
    step = data["steps"][0]
    about = f"{step['name'] or 'pipeline'}: {data['verdict']}. {step['source']}".strip()
    wrapped = "\n    ".join(textwrap.wrap(_comment(about), 112))
    return f"(** ** {wrapped}\n\n    {_comment(step['pipeline'])}\n    {_comment(_numbers(step))} *)"


def _claim(data: dict[str, Any]) -> CertifiedClaim:
    step = data["steps"][0]
    if step.get("guarantee") is not None:
        raise Unsupported("only epsilon and delta can be written for Coq, not another guarantee")
    epsilon, delta = _ends(step["epsilon"]), _ends(step["delta"])
    values = {name: _point(name, ends) for name, ends in step["parameters"].items()}
    values["dim"] = Fraction(step["dim"])
    if epsilon[0] == epsilon[1]:
        values["eps"] = epsilon[1]
    if delta[0] == delta[1]:
        values["delta"] = delta[1]
    return CertifiedClaim(
        verdict=data["verdict"],
        stages=tuple(read_stages(step["pipeline"], values)),
        dim=int(step["dim"]),
        neighbours=step["neighbours"],
        epsilon=epsilon[1],  # a claim that is known between two numbers is stated at the larger one
        delta=delta[1],
        between=_pure_bounds(data["steps"]),
    )


def _ends(value: Any) -> tuple[Fraction, Fraction]:
    if "inf" in value:
        raise Unsupported("an infinite epsilon cannot be written for Coq")
    return Fraction(value[0]), Fraction(value[1])


def _point(name: str, ends: Any) -> Fraction:
    low, high = _ends(ends)
    if low != high:
        raise Unsupported(f"the parameter {name} is known only between two numbers")
    return low


def _pure_bounds(steps: list[dict[str, Any]]) -> tuple[Fraction, Fraction] | None:
    """The best bounds on epsilon at delta 0 that the certificate states, rounded outward to 12 decimals."""

    def stated(kind: str, end: int) -> list[Fraction]:
        found = [s for s in steps if s["step"] == kind and s.get("guarantee") is None]
        found = [s for s in found if Fraction(s["delta"][1]) == 0 and s.get("quantity", "epsilon") == "epsilon"]
        return [Fraction(s["epsilon"][end]) for s in found if "inf" not in s["epsilon"]]

    lowers, uppers = stated("lower", 0), stated("upper", 1)
    if not lowers or not uppers:
        return None
    unit = 10**12
    return Fraction(max(lowers) * unit // 1, unit), Fraction(-(-min(uppers) * unit // 1), unit)


def _numbers(step: dict[str, Any]) -> str:
    given = {name: ends[0] for name, ends in step["parameters"].items() if name != "dim"}
    given |= {"dim": step["dim"], "neighbours": step["neighbours"], "epsilon": step["epsilon"][1]}
    given |= {} if Fraction(step["delta"][1]) == 0 else {"delta": step["delta"][1]}
    return ", ".join(f"{name} {value}" for name, value in given.items())


def _comment(text: str) -> str:
    """Text that ends no comment and opens no other."""
    text = "".join(c if c.isprintable() else " " for c in text).replace('"', "'")
    return text.replace("(*", "( *").replace("*)", "* )")
