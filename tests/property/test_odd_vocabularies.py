"""Every word mechanism with every option on small vocabularies of odd content: a verdict whose certificate verifies.

What cannot be judged or written down is refused with a reason. Nothing ends in another error.
"""

import itertools
import math

import numpy as np
import pytest

import dpassay
from dpassay.errors import InputError

VOCABULARIES = {
    "two equal vectors": {"a": [1.0, 2.0], "b": [1.0, 2.0]},
    "two of three equal": {"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [3.0, 1.0]},
    "a zero vector": {"x": [0.0, 0.0], "y": [1.0, 2.0], "z": [3.0, 1.0]},
    "only zero vectors": {"x": [0.0, 0.0], "y": [0.0, 0.0], "z": [0.0, 0.0]},
    "two words": {"x": [0.0, 1.0], "y": [1.0, 0.0]},
    "numbers and stop words": {"x": [0.0, 1.0], "7": [1.0, 0.0], "the": [2.0, 1.0], "8": [1.0, 1.0], "y": [1.0, 0.0]},
    "only numbers": {"7": [0.0, 1.0], "8": [1.0, 0.0]},
    "huge": {"x": [1e99, 1.0], "y": [-1e99, 1.0], "7": [0.0, 1.0]},
    "small": {"x": [1e-300, 0.0], "y": [2e-300, 0.0], "7": [0.0, 1e-200]},
    "far and near": {"x": [1e60, 0.0], "y": [1e-60, 0.0], "7": [0.0, 1.0], "the": [0.0, 1 + 2.0**-52]},
}
MECHANISMS = [
    ("santext", {}),
    ("santext", {"distance": "squared-l2"}),
    ("santext", {"distance": "angle"}),
    ("tem", {}),
    ("tem", {"gamma": "0.7", "far": "ratio"}),
    ("custext", {}),
    ("custext", {"K": 2}),
]
RULES = [
    {},
    *({kind: rule} for kind in ("unknown", "stop_words", "numbers") for rule in ("copied", "dropped", "replaced")),
]
CLAIMS = [{}, {"metric": "angle"}, {"metric": "linf"}, {"delta": 0}]


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("name", "settings"), MECHANISMS)
@pytest.mark.parametrize("content", VOCABULARIES)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_each_verdict_is_certified_or_refused_with_a_reason(content, name, settings, tmp_path):
    words, file = VOCABULARIES[content], tmp_path / "words.txt"
    file.write_text("".join(f"{word} {' '.join(map(repr, row))}\n" for word, row in words.items()))
    for rules, claim in itertools.product(RULES, CLAIMS):
        try:
            verdict = dpassay.check(name, epsilon=1, vocabulary=file, device="numpy", **settings, **rules, **claim)
        except InputError:
            continue
        if verdict.open:
            continue
        assert dpassay.verify(dpassay.certify(verdict), vocabulary=file).verdict == verdict.word


def saved(tmp_path, **rows):
    file = tmp_path / "words.txt"
    file.write_text("".join(f"{word.strip('_')} {' '.join(map(repr, row))}\n" for word, row in rows.items()))
    return file


def test_equal_vectors_lose_nothing_in_custext(tmp_path):
    """Words at one place have one law, so that every epsilon holds."""
    verdict = dpassay.check("custext", epsilon="1e-5", vocabulary=saved(tmp_path, a=[1.0, 2.0], b=[1.0, 2.0]))
    assert verdict.proven
    assert (verdict.epsilon.lower, verdict.epsilon.upper) == (0, 0)


def test_numbers_outside_the_vocabulary_are_inputs_too(tmp_path):
    """A replaced number has the uniform law: the largest loss is over all pairs of three laws."""
    file = saved(tmp_path, x=[0.0, 1.0], y=[1.0, 1.0])
    for rules in ({"numbers": "replaced"}, {"stop_words": "replaced"}, {"unknown": "replaced"}):
        verdict = dpassay.check("santext", epsilon=4, delta=0, vocabulary=file, **rules)
        away = math.log((1 + math.exp(2)) / 2)  # the uniform law against 'x', at the output 'y'
        pair = 2.0  # 'x' against 'y': ε/2 at the distance 1
        assert verdict.epsilon.lower <= max(away, pair) <= verdict.epsilon.upper
    alone = saved(tmp_path, x=[0.0, 1.0], y=[0.0, 1.0], z=[5.0, 1.0])
    verdict = dpassay.check("custext", epsilon=4, vocabulary=alone, K=3, unknown="replaced")
    scores = np.array([[0.0, 0.0, -2.0], [0.0, 0.0, -2.0], [-2.0, -2.0, 0.0]])
    logs = scores - np.log(np.exp(scores).sum(axis=1))[:, None]
    laws = np.vstack([logs, np.full(3, -math.log(3))])
    exact = (laws[:, None] - laws[None]).max()
    assert verdict.epsilon.lower <= exact <= verdict.epsilon.upper


def test_a_copied_number_is_named_with_its_distance_if_it_has_one(tmp_path):
    """Metric DP is about pairs with a distance; where the copied words have none, the reason says so."""
    far = dpassay.check("santext", epsilon=4, numbers="copied", vocabulary=saved(tmp_path, x=[0.0, 1.0], y=[1.0, 1.0]))
    assert far.refuted
    assert far.witness.distance is None
    assert "at any finite distance" in far.reason
    file = saved(tmp_path, **{"_7": [0.0, 1.0], "_8": [3.0, 5.0], "x": [1.0, 1.0]})
    near = dpassay.check("santext", epsilon=4, numbers="copied", vocabulary=file)
    assert (near.witness.x, near.witness.y, near.witness.distance) == ("7", "8", 5.0)
    assert "at any finite distance" not in near.reason
    assert dpassay.verify(dpassay.certify(near), vocabulary=file).ok
