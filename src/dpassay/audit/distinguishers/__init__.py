"""Distinguishers: each scores an output by which input it seems to come from, and is one file of this package.

No verdict relies on a distinguisher being good: a bad one only guesses worse. docs/audit.md lists them. Any file in
this package is imported here, and its distinguisher takes part.
"""

import pkgutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

from dpassay.audit.distinguishers.base import KINDS, Bits, Distinguisher, TrainingSet
from dpassay.audit.distinguishers.boosted_tables import BoostedTables
from dpassay.audit.distinguishers.combined.guarded import Guarded
from dpassay.audit.distinguishers.combined.on_leaves import OnLeaves
from dpassay.audit.distinguishers.frequencies import Frequencies
from dpassay.audit.outputs.outputs import Outputs

for module in pkgutil.walk_packages(__path__, f"{__name__}."):
    import_module(module.name)


def fit_all(
    outputs: Sequence[Outputs], inputs: tuple[Any, ...], bits: Bits = "no", offered: Sequence[Distinguisher] = ()
) -> Iterator[Distinguisher]:
    """All distinguishers that suit these outputs (one batch for each input), cheap ones first.

    `bits`: whether the bit patterns of floats are used, in addition to everything else or alone. `offered`: those that
    the mechanism offers. `decided` distinguishers are not included: they are fitted to all runs, see `Exclusive`.
    """
    training = TrainingSet(tuple(outputs), inputs, bits, tuple(offered))
    if bits == "only":
        yield from (OnLeaves if training.structured else BoostedTables).fit_float_bits(training)
        return
    anomalies = Frequencies.of_anomalies(training)
    guarded = Guarded.needed(anomalies)
    kinds = [kind for kind in KINDS.values() if not kind.decided]
    found = [kind.fit(training) for kind in sorted(kinds, key=lambda kind: kind.order)]
    for distinguisher in chain(*found, Frequencies.of_values(training) if training.structured else ()):
        yield Guarded(distinguisher, anomalies) if guarded else distinguisher
    if len(anomalies.names) > 1:
        yield anomalies
