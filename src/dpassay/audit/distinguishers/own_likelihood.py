"""The likelihood of an output according to the mechanism itself, from a method `log_prob(output, x)`."""

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from dpassay.audit.distinguishers.base import Distinguisher, Scores, TrainingSet
from dpassay.audit.outputs.outputs import Outputs
from dpassay.errors import MechanismError
from dpassay.pipeline.mechanism import Failure
from dpassay.values import dataclass


@dataclass(frozen=True)
class OwnLikelihood(Distinguisher):
    """The log-likelihood ratio of two inputs; for more, all log-likelihoods.

    They are not checked. If they are wrong, this is merely a worse distinguisher; its thresholds are chosen from runs,
    like those of all others.
    """

    log_prob: Callable[[Any, Any], Any]
    inputs: tuple[Any, ...]

    kind = "OwnLikelihood"
    order = 5
    description = "the likelihood ratio by the mechanism's own log_prob"
    per_input = "inputs"
    not_in_file = "a mechanism with a method log_prob(output, x)"

    @property
    def asks(self) -> bool:
        return True

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """The one that the mechanism offers, if it does."""
        return (one for one in training.offered if isinstance(one, cls))

    @property
    def estimates_odds(self) -> bool:
        return True

    def score(self, outputs: Outputs) -> Scores:
        """NaN if the run failed, or if no input can give the output."""
        rows = outputs.rows()
        logs = np.array([[self._log(output, x) for x in self.inputs] for output in rows])
        logs = logs.reshape(len(rows), len(self.inputs))
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(logs[:, 1] - logs[:, 0]) if len(self.inputs) == 2 else logs

    def _log(self, output: Any, x: Any) -> float:
        if isinstance(output, Failure):
            return np.nan
        given = self.log_prob(output, x)
        try:
            return float(given)
        except (TypeError, ValueError):
            said = f"log_prob(output, x) must give one number for one output, but gave {given!r:.60}"
            raise MechanismError(said) from None
