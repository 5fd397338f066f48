import json

import pytest

from dpassay.audit.remote.mapping import AnswerPath, Template
from dpassay.errors import InputError


@pytest.mark.parametrize(
    ("template", "x", "filled"),
    [
        ('"$input"', [1, 2.5], [1, 2.5]),
        ('{"a": ["$input", 1, null, true]}', None, {"a": [None, 1, None, True]}),
        ('{"a": "$input", "b": "$seed"}', {"c": "d"}, {"a": {"c": "d"}, "b": 9}),
        ('{"a": "<$input> by $seed"}', "x", {"a": "<x> by 9"}),
        ('{"a": "$input"}', '", "evil": "$seed', {"a": '", "evil": "$seed'}),
        ('{"a": "say $input"}', "$seed $input \\1", {"a": "say $seed $input \\1"}),
        ('{"$input": "$input"}', "x", {"$input": "x"}),
    ],
)
def test_templates(template, x, filled):
    assert json.loads(Template.read(template).fill(x, 9)) == filled


@pytest.mark.parametrize("text", ["", "{", "{}", '{"$input": 1}', "$input", "[" * 200 + '"$input"' + "]" * 200])
def test_what_is_no_template(text):
    with pytest.raises(InputError, match="the request must"):
        Template.read(text)


def test_only_text_goes_into_text():
    with pytest.raises(InputError, match="where only a text can go"):
        Template.read('{"a": "say $input"}').fill(3, 9)


TREE = {"a": [{"b c": 1, "d-e": [5, 6]}, "x"], "0": "zero", "'": "quote"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", TREE),
        ("$.a[1]", "x"),
        ('$.a[0]["b c"]', 1),
        ("$.a[0]['b c']", 1),
        ("$.a[0].d-e[-1]", 6),
        ('$["0"]', "zero"),
        ('$["\'"]', "quote"),
    ],
)
def test_paths(path, found):
    assert AnswerPath.read(path).find(TREE) == found


NO_PATHS = ["", "a", ".a", "$a", "$.", "$.a[", "$[x]", "$..a", "$.a[*]", '$["\\x"]', "$.a b", "$[1e3]", "$.__class__()"]


@pytest.mark.parametrize("path", NO_PATHS)
def test_what_is_no_path(path):
    with pytest.raises(InputError, match="the answer is a path"):
        AnswerPath.read(path)


@pytest.mark.parametrize("path", ["$.b", "$[0]", "$.a[2]", "$.a[-3]", "$.a.b", "$.__class__", '$.a["0"]'])
def test_paths_that_lead_nowhere(path):
    with pytest.raises(LookupError, match="it has no "):
        AnswerPath.read(path).find(TREE)
