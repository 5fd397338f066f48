"""Everything dpassay raises on purpose.

    DpassayError
    ├── InputError            what was given cannot be used (exit code 2)
    │   ├── ExpressionError   a pipeline's text cannot be read; points at the character
    │   └── ClaimFileError    claim files cannot be used; names the line of each mistake
    ├── AmbiguousError        a question that yes or no would answer wrongly
    ├── CertificateError      a certificate cannot be read, or does not hold
    └── MechanismError        the mechanism itself failed (exit code 4)

Each message says what was given, what is allowed, and what to do.
"""

import re
from collections.abc import Iterable


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun, in the plural unless the number is 1; the plural has an s if none is given.

    >>> counted(1, "run"), counted(5000, "run"), counted(0, "guess", "guesses")
    ('1 run', '5,000 runs', '0 guesses')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def escape_control_chars(text: str) -> str:
    r"""Text that can be shown on any terminal: unprintable characters are escaped.

    >>> print(escape_control_chars("a" + chr(27) + "[2Jb"))
    a\x1b[2Jb
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode("ascii") for c in text)


_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")


def without_address(text: str) -> str:
    """The text of an object or an exception without memory addresses.

    Addresses are not part of a mechanism's output, but they may reveal which batch was drawn first.

    >>> without_address("<function f at 0x7f21>")
    '<function f >'
    """
    return _ADDRESS.sub("", text)


def in_one_line(kind: str, said: str) -> str:
    """An exception in one line: its kind, and its message, if any.

    >>> in_one_line("ValueError", "no\\nway"), in_one_line("SystemExit", "")
    ('ValueError: no way', 'SystemExit')
    """
    return f"{kind}: {' '.join(said.split())}" if said.strip() else kind


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest of the known names as the end of a sentence, or nothing if none is near.

    >>> did_you_mean("dimm", ["dim", "delta"]), did_you_mean("seed", ["dim"])
    ("; did you mean 'dim'?", '')
    >>> did_you_mean("ADEPT", ["adept"]), did_you_mean("--only", ["--json"])
    ("; did you mean 'adept'?", '')
    """
    from difflib import get_close_matches

    bare = {one.lstrip("-").lower(): one for one in sorted(known)}
    near = get_close_matches(name.lstrip("-").lower(), list(bare), n=1)
    return f"; did you mean {bare[near[0]]!r}?" if near else ""


class DpassayError(Exception):
    """Base of all errors that dpassay raises on purpose.

    >>> issubclass(InputError, DpassayError)
    True
    """


class InputError(DpassayError, ValueError):
    """A value that cannot be used.

    >>> raise InputError("epsilon must be a number from 0 to 1e+300, got -1")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: epsilon must be a number from 0 to 1e+300, got -1
    """


class ExpressionError(InputError):
    """A pipeline's text that cannot be read, with the position.

    >>> print(ExpressionError("unknown stage 'clop'", "encode | clop(l2)", 9))
    unknown stage 'clop'
      encode | clop(l2)
               ^
    """

    def __init__(self, message: str, text: str, position: int) -> None:
        self.message, self.text, self.position = message, text, position
        # A long text is shown only around the error.
        start, end = max(0, position - 60), position + 60
        before, after = "…" * (start > 0), "…" * (end < len(text))
        shown = before + "".join(c if c.isprintable() else " " for c in text[start:end]) + after
        super().__init__(f"{message}\n  {shown}\n  {' ' * (len(before) + position - start)}^")


class ClaimFileError(InputError):
    """Mistakes in claim files: for each a message, the file, and the line or 0.

    >>> print(ClaimFileError([("a.toml, line 2: dim must be a whole number above 0, got 'x'", "a.toml", 2)]))
    a.toml, line 2: dim must be a whole number above 0, got 'x'
    """

    def __init__(self, mistakes: Iterable[tuple[str, str, int]]) -> None:
        self.mistakes = tuple(dict.fromkeys(mistakes))
        super().__init__("\n".join(text for text, _, _ in self.mistakes))


class AmbiguousError(DpassayError, TypeError):
    """A question without a certain answer: the truth value of a verdict, or whether an interval exceeds a number in
    it.

    >>> from dpassay import Interval
    >>> Interval(1, 3) > 2
    Traceback (most recent call last):
    ...
    dpassay.errors.AmbiguousError: whether [1, 3] > 2 is not known: ask .lower > 2 (certainly) or .upper > 2 (possibly)
    """


class CertificateError(DpassayError):
    """A certificate that cannot be read or does not hold.

    >>> issubclass(CertificateError, DpassayError)
    True
    """


# The message about a mechanism whose every answer is None: probably a mistake, and no evidence either way.
ONLY_NONE = "the mechanism returned None on every run: did you forget `return`? (If None is an answer, return a text.)"


class MechanismError(DpassayError):
    """A mechanism that failed while it was run.

    >>> issubclass(MechanismError, DpassayError)
    True
    """
