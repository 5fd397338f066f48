"""The control corpus: its words give the dialect away, and its labels do not."""

from collections import Counter

import pytest

from dpassay.errors import InputError
from dpassay.text.corpora.corpus import read_corpus
from dpassay.text.corpora.dialects import NAMES, OPENINGS, dialects


def test_words_give_the_dialect_away_and_the_label_does_not():
    said = dialects(3000)
    assert len({u.text for u in said}) == 2 * len(NAMES) * len(OPENINGS)
    attribute = {u.text.split()[-1]: u.attribute for u in said}
    assert all(attribute[u.text.split()[-1]] == u.attribute for u in said)
    counts = Counter((u.label, u.attribute) for u in said)
    assert len(counts) == 2 * len(NAMES)
    # each of six is drawn with probability 1/6: 120 is 5.9 standard deviations
    assert all(abs(count - 500) < 120 for count in counts.values())


def test_it_is_read_by_its_name():
    assert read_corpus("dialects:20") == dialects(20)
    assert read_corpus("dialects") == dialects()
    with pytest.raises(InputError, match="write dialects:N with a whole number"):
        read_corpus("dialects:many")
    with pytest.raises(InputError, match="0 or more"):
        dialects(-1)
