"""multi-freq-ldpy's clients: functions with their arguments, as in `functools.partial(GRR_Client, k=4, epsilon=1.0)`.

GRR, UE and HE have a formula; the others, including those for several attributes, are run.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from dpassay.adapters.base import FormulaReading, ReadObject, shown
from dpassay.adapters.confirming import MANY
from dpassay.adapters.pure_ldp import bits
from dpassay.core.guarantee import PureDP
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError


def read(thing: Any) -> ReadObject | None:
    """A client with its arguments as a claim; None for the library's other functions."""
    function = thing.func if isinstance(thing, partial) else thing
    name = str(getattr(function, "__name__", ""))
    if not name.endswith("_Client"):
        return None
    given = thing.keywords if isinstance(thing, partial) else {}
    # Clients for repeated reports take eps_perm, for all of them, and eps_1, for one: an output is one report.
    stated = next((given[key] for key in ("epsilon", "eps_1", "eps_perm") if key in given), None)
    if (isinstance(thing, partial) and thing.args) or stated is None or not {"k", "lst_k"} & set(given):
        raise InputError(
            f"multi-freq-ldpy's {name} needs all arguments except the input as keywords: "
            f"functools.partial({name}, k=4, epsilon=1.0), or lst_k=[4, 2], d=2 and epsilon for several attributes"
        )
    many = len(given["lst_k"]) if "lst_k" in given else 0
    return ReadObject(
        f"multi-freq-ldpy's {name}",
        PureDP(shown(stated)),
        None if many else _formula(name, given),
        neighbours=Neighbours("any"),
        mechanism=lambda x: thing(x),
        pairs=(([0] * many, [1] * many),) if many else ((0, 1),),
        reading=FormulaReading(runs=MANY),
    )


def _formula(name: str, given: dict[str, Any]) -> str | None:
    if "epsilon" not in given:
        return None
    size, epsilon = given["k"], shown(given["epsilon"])
    if name == "GRR_Client":
        return f"category({size}) | flip(exp({epsilon})/(exp({epsilon}) + {size} - 1))"
    if name == "HE_Client":
        return f"onehot({size}) | laplace(2/{epsilon})"
    if name == "UE_Client":
        root, optimal = math.exp(float(epsilon) / 2), bool(given.get("optimal", True))
        kept = 0.5 if optimal else root / (root + 1)
        wrong = 1 / (math.exp(float(epsilon)) + 1) if optimal else 1 / (root + 1)
        return bits(size, epsilon, kept, wrong, optimal)
    return None
