"""What an exception tells besides its message."""

import pytest

from dpassay.audit.mechanisms.python_objects import failure
from dpassay.audit.outputs.outputs import read
from dpassay.audit.outputs.texts.failures import told_by
from dpassay.pipeline.mechanism import Failure


class Coded(Exception):
    __slots__ = ("code",)


class Silent(Exception):
    def __str__(self):
        return "bad"


def coded(value):
    error = Coded("bad")
    error.code = value
    return error


def group(value):
    return ExceptionGroup("many", [ValueError("a"), ExceptionGroup("inner", [TypeError(value)])])


MAKERS = {
    "a member of a group": group,
    "a value in C": lambda value: UnicodeDecodeError("ascii", value.encode(), 0, 1, "reason"),
    "a value that a generator returned": lambda value: StopIteration(value, 1),
    "a slot": coded,
    "an argument that the message leaves out": Silent,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_values_that_no_message_has_are_told(make):
    said = [told_by(failure(make(value))) for value in ("smith", "jones")]
    assert "smith" in said[0]
    assert "jones" in said[1]
    assert read([failure(make("smith"))]).texts()[0] == said[0]
    assert read([failure(make("smith"))]).leaves[0]["output.message"] == said[0]


def test_a_message_is_not_repeated():
    assert told_by(failure(ValueError("row 5 is bad"))) == "row 5 is bad"
    assert told_by(Failure("ValueError", "said by a process")) == "said by a process"


def test_an_exception_whose_code_fails_tells_its_message():
    class Broken(ExceptionGroup):
        pass

    class Unsaid(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    assert told_by(failure(Broken("many", [Unsaid()]))) == "many (1 sub-exception)"
