"""Every random stage and every noise that a text can name answers the questions that the analysis asks."""

from collections.abc import Iterator

import pytest

import dpassay.exact.analysis
import dpassay.pipeline.stages  # noqa: F401
from dpassay.errors import InputError
from dpassay.exact.mechanisms.questions import profile_of, reason
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.stages.base import NoiseStage


def kinds_of(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("dpassay."):
            yield one
            yield from kinds_of(one)


KINDS = [one for one in (*kinds_of(NoiseStage), *kinds_of(Noise)) if "syntax" in vars(one)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_its_bounds_are_registered(kind: type) -> None:
    assert profile_of.dispatch(kind) is not profile_of.dispatch(object)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.__name__ != "Flip"], ids=lambda kind: kind.__name__)
def test_it_says_why_a_claim_fails(kind: type) -> None:
    assert reason.dispatch(kind) is not reason.dispatch(object)


def test_what_is_not_known_has_no_bounds() -> None:
    with pytest.raises(InputError, match="no exact loss is known for the stage int"):
        profile_of(3, None)
