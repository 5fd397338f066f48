"""The likelihood ratio of exact distributions, which no other distinguisher beats (Neyman and Pearson)."""

from functools import cached_property

import numpy as np

from dpassay.audit.distinguishers.base import Distinguisher, Scores
from dpassay.audit.outputs.outputs import Outputs
from dpassay.compute.kernels.likelihood_ratio import LikelihoodRatioTable
from dpassay.pipeline.distributions import Distribution, told_by_words
from dpassay.values import dataclass


@dataclass(frozen=True)
class LikelihoodRatio(Distinguisher):
    """The log-likelihood ratio of two distributions; for more, all log-likelihoods."""

    distributions: tuple[Distribution, ...]

    kind = "Likelihood"
    description = "the exact likelihood ratio"
    per_input = "distributions"
    not_in_file = "a mechanism that knows its distribution"

    @cached_property
    def width(self) -> int:
        """How many coordinates the distributions' outputs have, whatever a batch has."""
        return int(self.distributions[0].sample(1, np.random.default_rng(0)).shape[1])

    @cached_property
    def tables(self) -> tuple[LikelihoodRatioTable, LikelihoodRatioTable] | None:
        """The same for kernels, one table per input, if kernels can draw from the distributions."""
        return told_by_words(self.distributions)

    @property
    def estimates_odds(self) -> bool:
        return True

    def score(self, outputs: Outputs) -> Scores:
        rows = outputs.matrix(self.width)
        with np.errstate(invalid="ignore", over="ignore"):
            logs = [distribution.log_likelihood(rows) for distribution in self.distributions]
            return np.asarray(logs[1] - logs[0]) if len(logs) == 2 else np.stack(logs, axis=1)
