"""A distinguisher behind a guard: anomalies that only one input ever gave decide first."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from dpassay.audit.distinguishers.base import WEIGHTIEST, Distinguisher, Scores, require, shown_names
from dpassay.audit.distinguishers.frequencies import Frequencies, in_words
from dpassay.audit.outputs.outputs import Outputs
from dpassay.values import dataclass

ONE_SIDED = 2.5  # log-odds from which an anomaly counts as belonging to one input only


@dataclass(frozen=True)
class Guarded(Distinguisher):
    """Another distinguisher's score, except for outputs with an anomaly that only one input ever gave."""

    base: Distinguisher
    anomalies: Frequencies

    kind = "Guarded"

    @staticmethod
    def needed(anomalies: Frequencies) -> bool:
        """Whether some anomaly belongs to one input only."""
        return len(anomalies.logs) == 2 and bool((np.abs(anomalies.logs[1] - anomalies.logs[0]) > ONE_SIDED).any())

    def score(self, outputs: Outputs) -> Scores:
        """Infinite if the anomaly was seen from one input only."""
        scores, log_odds = self.base.score(outputs), self.anomalies.score(outputs)
        return np.where(np.abs(log_odds) > ONE_SIDED, np.copysign(np.inf, log_odds), scores)

    @property
    def likeness(self) -> bool:
        return self.base.likeness

    @property
    def asks(self) -> bool:
        return self.base.asks

    @property
    def estimates_odds(self) -> bool:
        return self.base.estimates_odds

    @property
    def by_features(self) -> bool:
        return self.base.by_features

    @property
    def turned(self) -> bool:
        return self.base.turned

    def describe(self) -> str:
        return f"{self.base.describe()}, and what sort of output it is"

    def certain(self, side: int) -> str:
        log_odds = self.anomalies.logs[1] - self.anomalies.logs[0]
        own = np.flatnonzero((2 * side - 1) * log_odds > ONE_SIDED)
        names = shown_names([in_words(str(self.anomalies.names[i])) for i in own], " or ")
        return f"the output is {names}" if names else ""

    def weightiest(self, outputs: Sequence[Outputs]) -> list[str]:
        """Anomalies of one input first: they decide."""
        logs = self.anomalies.logs
        own = np.flatnonzero(np.abs(logs[1] - logs[0]) > ONE_SIDED)
        decisive = replace(self.anomalies, names=tuple(self.anomalies.names[i] for i in own), logs=logs[:, own])
        return [*decisive.weightiest(outputs), *self.base.weightiest(outputs)][:WEIGHTIEST]

    def to_data(self) -> dict[str, Any]:
        return {"kind": self.kind, "base": self.base.to_data(), "oddities": self.anomalies.to_data()}

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        base, anomalies = cls.from_data(data["base"], at_hand), cls.from_data(data["oddities"], at_hand)
        if not isinstance(anomalies, Frequencies) or anomalies.candidates != 2:
            raise ValueError("it needs frequencies of anomalies for two inputs")
        require(base.candidates in (None, 2), "a distinguisher for two inputs")
        return cls(base, anomalies)
