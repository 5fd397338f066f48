"""Classes, methods, coroutines, transformers and torch modules as mechanisms."""

import asyncio
import sys

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.mechanisms.python_objects import Transformer, awaited, failure
from dpassay.audit.mechanisms.targets import as_mechanism, describe, draw, load_python, one_at_a_time
from dpassay.errors import InputError
from dpassay.pipeline.mechanism import Failure

MODULE = """
import numpy as np

class Callable:
    def __call__(self, x, rng):
        return x + int(rng.integers(2))

class Model:
    def __init__(self):
        self.words = {"a": 1}

    def rewrite(self, text):
        return self.words.get(text, 0)

    def noisy(self, x, n, rng):
        return x + rng.laplace(size=n)

    @staticmethod
    def plain(x, rng):
        return -x

    @classmethod
    def made(cls, x):
        return cls().words["a"] + x

class Needy:
    def __init__(self, size):
        pass

    def run(self, x):
        return x

class Scaler:
    def transform(self, rows):
        return np.asarray(rows) * 2.0

class Fitted:
    def fit_transform(self, rows, y=None):
        rows = np.asarray(rows)
        return rows - rows.mean(axis=0)

async def later(x):
    import asyncio
    await asyncio.sleep(0)
    return x + 1

async def batch(x, n, rng):
    return x + rng.integers(0, 2, n)

class AsyncSampler:
    async def sample(self, x, n, rng):
        return [x] * n

class Empty:
    pass

model = Model()
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "odd_subjects.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    yield "odd_subjects"
    sys.modules.pop("odd_subjects", None)


def generator() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(
    ("name", "x", "outputs"),
    [
        ("Model.rewrite", "a", [1, 1, 1]),
        ("model.rewrite", "b", [0, 0, 0]),
        ("Model.plain", 3, [-3, -3, -3]),
        ("Model.made", 3, [4, 4, 4]),
        ("later", 3, [4, 4, 4]),
        ("AsyncSampler", "x", ["x", "x", "x"]),
        ("Scaler", 1.5, [[3.0]] * 3),
        ("Scaler", [1.0, 2.0], [[2.0, 4.0]] * 3),
        ("Scaler.transform", [1.0, 2.0], [[2.0, 4.0]] * 3),
        ("Fitted", [[1.0], [3.0]], [[[-1.0], [1.0]]] * 3),
    ],
)
def test_what_a_path_may_name(module, name, x, outputs):
    loaded = load_python(f"{module}:{name}")
    found = [y.tolist() if isinstance(y, np.ndarray) else y for y in draw(loaded, x, 3, generator())]
    assert found == outputs
    assert describe(loaded) == {"kind": "python", "path": f"{module}:{name}"}


def test_generators_are_passed_on(module):
    assert set(draw(load_python(f"{module}:Callable"), 5, 50, generator())) == {5, 6}
    assert draw(load_python(f"{module}:Model.noisy"), 5.0, 50, generator()).shape == (50,)
    assert set(draw(load_python(f"{module}:batch"), 5, 50, generator())) == {5, 6}
    assert load_python(f"{module}:batch").replays
    assert not load_python(f"{module}:later").replays
    assert one_at_a_time(load_python(f"{module}:Scaler"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Needy.run", "the class Needy needs arguments"),
        ("Needy", "the class Needy has no sample"),
        ("Empty", "the class Empty has no sample"),
        ("Model", "the class Model has no sample"),
    ],
)
def test_what_cannot_be_made(module, name, said):
    with pytest.raises(InputError, match=said):
        load_python(f"{module}:{name}")


def test_a_coroutine_that_fails_is_a_failed_run():
    async def failing(x):
        raise ValueError("no")

    assert draw(as_mechanism(failing), 0, 2, generator()) == [Failure("ValueError")] * 2


def test_coroutines_inside_a_running_loop():
    async def later(x):
        await asyncio.sleep(0)
        return x

    async def main():
        return draw(as_mechanism(later), 4, 2, generator())

    assert asyncio.run(main()) == [4, 4]


def test_what_is_kept_between_calls_belongs_to_one_loop():
    loops = set()

    async def seen(x):
        loops.add(id(asyncio.get_running_loop()))
        return 1

    draw(as_mechanism(seen), 0, 5, generator())
    assert len(loops) == 1
    assert awaited(7) == 7


def test_a_coroutine_is_audited():
    async def leaky(x):
        return x

    assert audit(leaky, [("a", "b")], epsilon=1).word == "refuted"


class Rows:
    def __init__(self, made):
        self.made = made

    def transform(self, rows):
        return self.made(rows)


def test_a_transformer_gives_one_row_for_one():
    assert draw(as_mechanism(Rows(lambda rows: [text.upper() for text in rows])), "a", 2, generator()) == ["A", "A"]
    assert draw(as_mechanism(Rows(lambda rows: [1, 2])), "a", 1, generator()) == [Failure("ValueError")]
    (whole,) = Transformer(Rows(lambda rows: np.asarray(rows)), "transform").sample([[1, 2], [3, 4]], 1, generator())
    assert whole.tolist() == [[1, 2], [3, 4]]
    assert describe(as_mechanism(Rows(list)))["type"].endswith("Rows")


def test_sparse_results_and_frames():
    sparse = pytest.importorskip("scipy.sparse")
    (row,) = as_mechanism(Rows(lambda rows: sparse.csr_matrix(np.asarray(rows)))).sample([0.0, 2.0], 1, generator())
    assert row.tolist() == [0.0, 2.0]


# torch


def test_torch_modules():
    torch = pytest.importorskip("torch")
    linear = torch.nn.Linear(2, 2)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
        linear.bias.zero_()
    mechanism = as_mechanism(linear)
    outputs = draw(mechanism, [1, 3], 2, generator())
    assert [y.tolist() for y in outputs] == [[1.0, 6.0]] * 2
    assert not mechanism.replays
    assert one_at_a_time(mechanism)
    assert describe(mechanism)["type"].endswith("linear.Linear")


def test_a_torch_module_keeps_its_mode():
    torch = pytest.importorskip("torch")
    dropout = torch.nn.Dropout(0.5)
    assert dropout.training
    assert {float(y[0]) for y in draw(as_mechanism(dropout), [1.0], 200, generator())} == {0.0, 2.0}
    dropout.eval()
    assert {float(y[0]) for y in draw(as_mechanism(dropout), [1.0], 20, generator())} == {1.0}


def test_torch_modules_of_words_and_of_texts():
    torch = pytest.importorskip("torch")

    class Length(torch.nn.Module):
        def forward(self, text):
            return {"length": torch.tensor(len(text)), "rest": [text]}

    assert draw(as_mechanism(Length()), "abc", 1, generator()) == [{"length": 3, "rest": ["abc"]}]
    embedding = torch.nn.Embedding(3, 2)
    (row,) = draw(as_mechanism(embedding), 1, 1, generator())
    assert row.tolist() == embedding.weight[1].tolist()
    double = torch.nn.Identity()
    assert draw(as_mechanism(double), 2.0, 1, generator()) == [2.0]
    assert audit(double, [([0.0, 1.0], [1.0, 0.0])], epsilon=1, shrink=False).word == "refuted"


def told(x, rng):
    if rng.random() < 0.5:
        raise ValueError(f"no model for {x}")
    return rng.normal()


def attributed(x, rng):
    error = ValueError("no model")
    error.record, error.model = x, object()  # an address is no output
    raise error


def caused(x, rng):
    try:
        _ = {}["none"] if x else 1 / 0
    except (KeyError, ZeroDivisionError) as error:
        raise ValueError("no model") from error


TELLING = [(told, "1' in "), (attributed, "record=1' in "), (caused, "'none'")]


@pytest.mark.parametrize(("subject", "telling"), TELLING)
def test_what_an_exception_tells_is_an_output(subject, telling):
    """Both inputs fail equally often and in the same way; only what the exception says depends on them."""

    def sometimes(x, rng):
        return 0.5 if rng.random() < 0.1 else subject(x, rng)

    verdict = audit(sometimes, [(0, 1)], epsilon=1, runs=1000, seed=0, until_refuted=True, bits=False)
    assert verdict.refuted
    assert any(telling in feature for feature in verdict.sampled.witness.features)


def test_addresses_in_messages_are_left_out():
    assert failure(ValueError("no <model at 0x7f00aa>")).told == "no <model >"
    error = ValueError("no")
    error.record, error.where = 3, object()
    assert failure(error).told == "no record=3"


def test_attributes_that_hold_others_and_earlier_exceptions_are_told():
    error = ValueError("no")
    error.rows, error.of, error.deep = [1, ("a", None)], {"x": 2}, [[[[[1]]]]]
    error.model = [object()]
    assert failure(error).told == "no rows=[1, ('a', None)] of={'x': 2}"
    error = ValueError("no")
    error.__context__ = KeyError("key")
    assert failure(error).told == "no after KeyError: 'key'"
    error.__cause__ = OSError("disk")
    assert failure(error).told == "no after OSError: disk"
    error.__cause__, error.__suppress_context__ = None, True  # raise ... from None
    assert failure(error).told == "no"
