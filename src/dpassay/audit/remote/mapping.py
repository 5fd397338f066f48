"""Requests and answers of endpoints with their own format: a template and the path of the output, both plain data.

Nothing is evaluated: the template is JSON in which "$input" stands for the input, and the path has keys and positions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from dpassay.errors import InputError
from dpassay.values import dataclass

INPUT, SEED = "$input", "$seed"
DEEPEST = 100  # steps of a path, and levels of a template
_STEP = re.compile(r"""\.([A-Za-z_][\w-]*) | \[(-?\d{1,9})\] | \[("(?:[^"\\]|\\.)*")\] | \['([^'\\]*)'\]""", re.VERBOSE)


@dataclass(frozen=True, slots=True)
class Template:
    """A request as JSON with placeholders for the input and the seed.

    >>> Template.read('{"text": "$input", "raw": true}').fill("hello", 7)
    '{"text": "hello", "raw": true}'
    >>> Template.read('{"prompt": "Rewrite: $input"}').fill("hello", 7)
    '{"prompt": "Rewrite: hello"}'
    """

    text: str
    tree: Any

    @classmethod
    def read(cls, text: str) -> Template:
        """A template from its text, if it is valid."""
        try:
            tree = json.loads(text)
            inside = list(_texts(tree, DEEPEST))
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(
                f'the request must be JSON that contains {INPUT!r}, such as {{"text": "{INPUT}"}}; '
                f"got {text!r}: {error}"
            ) from None
        if not any(INPUT in one for one in inside):
            raise InputError(f'the request must contain "{INPUT}", where the input goes; got {text!r}')
        return cls(text, tree)

    @property
    def seeded(self) -> bool:
        """Whether it passes the seed on."""
        return any(SEED in one for one in _texts(self.tree, DEEPEST))

    def fill(self, x: Any, seed: int) -> str:
        """The request for an input that JSON can write."""
        return json.dumps(_mapped(self.tree, lambda text: _filled(text, x, seed)))


def _texts(tree: Any, depth: int) -> Iterator[str]:
    if depth < 0:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    if isinstance(tree, str):
        yield tree
    for inside in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _texts(inside, depth - 1)


def _mapped(tree: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(tree, str):
        return change(tree)
    if isinstance(tree, list):
        return [_mapped(one, change) for one in tree]
    return {key: _mapped(one, change) for key, one in tree.items()} if isinstance(tree, dict) else tree


def _filled(text: str, x: Any, seed: int) -> Any:
    if text in (INPUT, SEED):
        return x if text == INPUT else seed
    if INPUT in text and not isinstance(x, str):
        raise InputError(f"the request has {INPUT} inside a text, {text!r}, where only a text can go; got {x!r:.80}")
    # In one pass, so that an input that contains "$seed" stays unchanged.
    return re.sub(r"\$input|\$seed", lambda found: x if found[0] == INPUT else str(seed), text)


@dataclass(frozen=True, slots=True)
class AnswerPath:
    """Where an answer has the output: `$` is the answer, `.name` or `["a name"]` a key, `[0]` a position in a list.

    >>> AnswerPath.read("$.result[0]").find({"result": ["a", "b"]})
    'a'
    >>> AnswerPath.read("$.result[0]").find({"error": "busy"})
    Traceback (most recent call last):
    ...
    LookupError: it has no .result
    """

    text: str
    steps: tuple[str | int, ...]

    @classmethod
    def read(cls, text: str) -> AnswerPath:
        """A path from its text, if it is valid."""
        steps: list[str | int] = []
        place = 1 if text.startswith("$") else -1
        while 0 < place < len(text):
            found = _STEP.match(text, place)
            if found is None or len(steps) >= DEEPEST:
                place = -1
                break
            name, number, quoted, plain = found.groups()
            try:
                steps.append(int(number) if number else json.loads(quoted) if quoted else name or plain)
            except ValueError:  # an escape that JSON does not have
                place = -1
                break
            place = found.end()
        if place < 0:
            raise InputError(
                'the answer is a path such as $.result[0], $.choices[0].text or $["a key"], '
                f"and $ is all of it; got {text!r}"
            )
        return cls(text, tuple(steps))

    def find(self, tree: Any) -> Any:
        """The value at the path; a LookupError if there is none."""
        for step in self.steps:
            if not isinstance(tree, list if isinstance(step, int) else dict):
                raise LookupError(f"it has no {_shown(step)}")
            inside: Any = tree
            try:
                tree = inside[step]
            except LookupError:
                raise LookupError(f"it has no {_shown(step)}") from None
        return tree


def _shown(step: str | int) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step}"
