"""A mechanism made of stages: text ─► encode ─► bound ─► noise ─► decode."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import ONE
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution, as_vector
from dpassay.pipeline.regions import Everything, Sphere, check_dimension
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion, Stage
from dpassay.pipeline.stages.functions import Function
from dpassay.pipeline.stages.sampling import Sampling, Times
from dpassay.values import dataclass

MAX_STAGES = 100


@dataclass(frozen=True)
class Pipeline:
    """Stages in the order in which a value passes through them. A pipeline is a mechanism: it can be run.

    >>> from dpassay.pipeline.distributions import Laplace
    >>> from dpassay.pipeline.stages.noises.additive import Additive
    >>> from dpassay.pipeline.stages.bounds.scaling import Clip
    >>> adept = Pipeline((Clip("l2", 1), Additive(Laplace(2))), dim=32)
    >>> print(adept)
    clip(l2, 1) | laplace(2)
    >>> adept.sample(np.ones(32), 5, np.random.default_rng(0)).shape
    (5, 32)
    """

    stages: tuple[Stage, ...]
    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_dimension(self.dim))
        stages = list(self.stages)
        if not 1 <= len(stages) <= MAX_STAGES:
            raise InputError(f"a pipeline needs 1 to {MAX_STAGES} stages, got {len(stages)}")
        before = self._incoming
        for i, stage in enumerate(stages):
            if stage.neighbours and i:
                raise InputError(f"{stage.name} must be the first stage: it says how neighbors differ")
            if stage.comes_last and i < len(stages) - 1:
                raise InputError(f"{stage.name} must be the last stage: it repeats everything before it")
            if stage.followed_by and not any(after.name in stage.followed_by for after in stages[i + 1 : i + 2]):
                raise InputError(f"{stage.name} must come right before {' or '.join(stage.followed_by)}")
            if stage.on_words and not all(earlier.on_words for earlier in stages[:i]):
                raise InputError(f"{stage.name} works on words: it must come before all stages that give vectors")
            stages[i] = stage = stage.for_region(before.region)
            before = _passed(stage, before)
        object.__setattr__(self, "stages", tuple(stages))

    @property
    def _incoming(self) -> OutputRegion:
        """Anything, or unit vectors, or a single value if the dimension is that of a later function."""
        first, *rest = self.stages
        if first.takes_unit_vectors:
            return OutputRegion(Sphere(ONE, self.dim))
        single = first.takes_one_value and any(stage.opaque for stage in rest)
        return OutputRegion(Everything(1 if single else self.dim))

    def output_regions(self) -> list[OutputRegion]:
        """The possible inputs of each stage, and finally the possible outputs of the pipeline."""
        regions = [self._incoming]
        for stage in self.stages:
            regions.append(_passed(stage, regions[-1]))
        return regions

    @property
    def noise_positions(self) -> list[int]:
        """The positions of the random stages; word dropout is not one of them."""
        return [i for i, stage in enumerate(self.stages) if stage.random]

    @property
    def neighbours(self) -> Neighbours:
        """What the stages suggest: a query's data sets, texts that differ in one word, or any two inputs."""
        first = self.stages[0]
        if first.neighbours:
            return Neighbours(first.neighbours[0])
        return Neighbours("word" if first.on_words else "any")

    @property
    def told_by_its_text(self) -> bool:
        """Whether its text describes it fully: it has no user-defined function or kind of stage."""
        own = [stage for stage in self.stages if not type(stage).__module__.startswith("dpassay.")]
        return type(self) is Pipeline and not own and not any(getattr(s, "function", None) for s in self.stages)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Pass a batch of inputs through all stages."""
        return run_steps(self.stages, self.noise_positions, batch, rng)

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        """Draw n outputs for one input: a vector, or a text if the pipeline can encode one."""
        if isinstance(x, str):
            return self.run([x] * n, rng)
        return self.run(np.tile(as_vector(x), (n, 1)), rng)

    def distribution(self, x: Any) -> Distribution:
        """The exact distribution of the output, if the noise is the last stage that changes it."""
        stages = list(self.stages)
        if isinstance(stages[0], Sampling):
            raise InputError(f"after {stages[0].name} the distribution is a mixture, which has no closed form here")
        while len(stages) > 1 and _passes_on(stages[-1]):
            stages.pop()
        if self.noise_positions != [len(stages) - 1] or stages[0].on_words:
            raise InputError("the distribution is known only for a pipeline whose only random stage is the last one")
        last = stages.pop()
        assert isinstance(last, NoiseStage)
        batch = [x] if isinstance(x, str) else as_vector(x)[None, :]
        return last.distribution(run(stages, batch, np.random.default_rng(0))[0])

    def __str__(self) -> str:
        return " | ".join(str(stage) for stage in self.stages)


def _passed(stage: Stage, before: OutputRegion) -> OutputRegion:
    """The outputs of a stage. After noise, only values that swamp it are certainly reached, by one more bound."""
    after = stage.output_region(before)
    if not before.far and not isinstance(stage, NoiseStage):
        return after
    swamped = before.exact and isinstance(before.region, Everything) and stage.outweighs_noise
    return replace(after, exact=after.exact and swamped, far=True)


def _passes_on(stage: Stage) -> bool:
    """Whether a stage returns its input: a decoder without a function, or a single step."""
    return (isinstance(stage, Function) and stage.function is None) or (isinstance(stage, Times) and stage.steps == 1)


def run(stages: Sequence[Stage], batch: Any, rng: np.random.Generator) -> Any:
    """Pass a batch through some stages."""
    for stage in stages:
        batch = stage.run(batch, rng)
    return batch


def run_steps(stages: Sequence[Stage], noises: Sequence[int], batch: Any, rng: np.random.Generator) -> Any:
    """Pass a batch through all stages, as often as the last one states; the outputs of all steps are concatenated."""
    first, last = stages[0], stages[-1]
    if not isinstance(first, Sampling) and not isinstance(last, Times):
        return run(stages, batch, rng)
    noise = noises[0] if noises else len(stages)

    outputs: list[Any] = []
    for _ in range(last.steps if isinstance(last, Times) else 1):
        if isinstance(first, Sampling):
            for drawn in first.draws(len(batch), rng):
                summed = np.asarray(run(stages[:noise], batch, rng), dtype=float)
                outputs.append(run(stages[noise:], np.where(drawn[:, None], summed, 0.0), rng))
        else:
            outputs.append(run(stages, batch, rng))
    return outputs[0] if len(outputs) == 1 else np.concatenate([np.asarray(one) for one in outputs], axis=1)
