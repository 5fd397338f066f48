"""A stage that is defined here, in one place, and known everywhere: nothing else has to be told of it."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from dpassay import certify, check, parse
from dpassay.core.neighbours import Neighbours
from dpassay.errors import ExpressionError, InputError
from dpassay.exact.analysis import analyse
from dpassay.pipeline.regions import Ball
from dpassay.pipeline.stages.base import STAGES, OutputRegion, Stage
from dpassay.pipeline.syntax import Syntax, positive
from dpassay.report.terminal import stage_table

PAGE = Path(__file__).parents[3] / "docs" / "pipelines.md"


@pytest.fixture
def stretch() -> Iterator[type[Stage]]:
    before = dict(STAGES)

    @dataclass(frozen=True)
    class Stretch(Stage):
        """Multiply a clipped vector by a factor.

        Only this line is the help.
        """

        syntax = Syntax("stretch", factor=positive("stretch: factor"))
        keeps = "signs"
        factor: object

        def output_region(self, before: OutputRegion) -> OutputRegion:
            ball = before.region
            if not isinstance(ball, Ball):
                raise InputError("stretch needs clip before it")
            return OutputRegion(Ball(ball.p, ball.radius * self.factor, ball.dim), before.exact)

        def run(self, batch, rng):
            return float(self.factor.mid) * batch

    yield Stretch
    del STAGES["stretch"]
    assert list(STAGES.items()) == list(before.items())


def test_it_is_parsed_and_printed(stretch: type[Stage]) -> None:
    pipeline = parse("clip(l1, 1) | stretch(3) | laplace(2)", dim=4)
    assert isinstance(pipeline.stages[1], stretch)
    assert str(pipeline) == "clip(l1, 1) | stretch(3) | laplace(2)"
    assert str(parse("clip(l1, 1) | stretch(factor=6/C)", dim=4, values={"C": 4}).stages[1]) == "stretch(1.5)"


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("clip(l1, 1) | stretch", 14, "stretch needs factor: write stretch(factor)"),
        ("clip(l1, 1) | stretch(0)", 22, "stretch: factor must be positive"),
        ("stretch(2) | laplace(1)", 0, "stretch needs clip before it"),
        ("stretsh(2)", 0, "did you mean 'stretch'?"),
        ("laplace(stretch)", 8, "expected a number, got the word 'stretch'"),
    ],
)
def test_its_mistakes_are_pointed_at(stretch: type[Stage], text: str, position: int, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, dim=4)
    assert (caught.value.position, message in str(caught.value)) == (position, True), str(caught.value)


def test_it_runs(stretch: type[Stage]) -> None:
    outputs = parse("clip(l1, 2) | stretch(3)", dim=2).run(np.array([[4.0, 0.0], [0.5, -1.0]]), np.random.default_rng())
    assert outputs.tolist() == [[6.0, 0.0], [1.5, -3.0]]


def test_it_is_checked_through_its_region(stretch: type[Stage]) -> None:
    # Two vectors of l1 norm at most 3 are at most 6 apart, which noise of scale 2 hides at ε = 6/2, and no less.
    profile = analyse(parse("clip(l1, 1) | stretch(3) | laplace(2)", dim=4), Neighbours("any"))
    assert float(profile.pure.a) == pytest.approx(3, rel=1e-12)
    assert float(profile.pure.b) == pytest.approx(3, rel=1e-12)


def test_it_decides_nothing_until_the_verifier_knows_it(stretch: type[Stage]) -> None:
    for epsilon in ("3", "2.99"):
        verdict = check("clip(l1, 1) | stretch(3) | laplace(2)", epsilon=epsilon, dim=4)
        assert verdict.word == "open"
        assert "no certificate could be written" in verdict.reason


def test_it_is_listed_last(stretch: type[Stage]) -> None:
    page = io.StringIO()
    Console(file=page, width=120).print(stage_table())
    usage, what_it_does = page.getvalue().splitlines()[-1].split(maxsplit=1)
    assert (usage, what_it_does.rstrip()) == ("stretch(factor)", "multiply a clipped vector by a factor")


def test_it_has_a_certificate_when_the_verifier_has_its_half(stretch: type[Stage]) -> None:
    # The verifier knows no stage that it was not taught: it has a half of its own for each.
    with pytest.raises(InputError, match=r"cannot have a certificate.*unknown stage 'stretch'"):
        certify(check("clip(l1, 1) | stretch(3) | laplace(2)", epsilon=3, dim=4))


def test_every_stage_is_documented() -> None:
    page = PAGE.read_text()
    for name, form in STAGES.items():
        assert f"`{name}(" in page if form.syntax.parameters else f"`{name}`" in page, name
