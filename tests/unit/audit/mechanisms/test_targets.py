import functools
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from dpassay.audit.mechanisms.isolation import CallGenerators
from dpassay.audit.mechanisms.targets import as_mechanism, describe, draw, draw_singly, load_python
from dpassay.audit.remote.endpoint import Endpoint
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure, HasDistribution, Mechanism, Redrawn
from dpassay.pipeline.parser import parse


def generator() -> np.random.Generator:
    return np.random.default_rng(7)


def begun_by(calls: CallGenerators, number: int) -> Iterator[np.random.Generator]:
    """The generators of some calls, one after the other: a call's is that of the next begun anew."""
    return (calls.begin() for _ in range(number))


# What is a mechanism


class Coin:
    def sample(self, x, n, rng):
        return rng.integers(0, 2, size=n)


class Biased:
    def __init__(self, p):
        self.p = p

    def sample(self, x, n, rng):
        return rng.random(n) < self.p


class Broken:
    def __init__(self):
        raise OSError("no model file")

    def sample(self, x, n, rng):
        return [0] * n


class Hidden:
    __signature__ = "not to be seen"

    def __call__(self, x, n, rng):
        return [x] * n


def test_an_object_that_samples_is_left_alone():
    coin = Coin()
    assert as_mechanism(coin) is coin
    pipeline = parse("laplace(1)", dim=2)
    assert as_mechanism(pipeline) is pipeline


def test_a_class_is_instantiated_if_it_needs_no_arguments():
    assert isinstance(as_mechanism(Coin), Coin)
    with pytest.raises(InputError, match=r"class Biased needs arguments .*'p'.*give an instance"):
        as_mechanism(Biased)
    with pytest.raises(InputError, match=r"Broken\(\) raised OSError: no model file"):
        as_mechanism(Broken)
    with pytest.raises(InputError, match="class dict has no sample"):
        as_mechanism(dict)


def test_a_function_of_three_gives_the_batch_itself():
    batch = np.zeros((4, 2))
    mechanism = as_mechanism(lambda x, n, rng: batch)
    assert isinstance(mechanism, Mechanism)
    assert mechanism.sample(0, 4, generator()) is batch
    assert mechanism.replays


def test_a_function_of_two_is_called_for_each_output():
    mechanism = as_mechanism(lambda x, rng, scale=10: x + scale * int(rng.integers(5)))
    rng = generator()
    expected = [3 + 10 * int(rng.integers(5)) for _ in range(6)]
    assert mechanism.sample(3, 6, generator()) == expected
    assert mechanism.replays


def test_a_function_of_one_has_randomness_of_its_own():
    mechanism = as_mechanism(lambda x, *rest, **more: x + len(rest))
    assert mechanism.sample(3, 2, generator()) == [3, 3]
    assert not mechanism.replays


def test_partials_methods_and_callable_objects_are_functions():
    class Adder:
        def __call__(self, x, rng):
            return x + 1

        def again(self, x):
            return x + 2

    assert as_mechanism(Adder()).sample(1, 1, generator()) == [2]
    assert as_mechanism(Adder().again).sample(1, 1, generator()) == [3]
    assert as_mechanism(functools.partial(lambda a, x, rng: a + x, 5)).sample(1, 1, generator()) == [6]


def test_the_input_may_have_any_name():
    assert as_mechanism(lambda n, rng: n).sample(4, 1, generator()) == [4]


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (3, "3 cannot be run; give an object"),
        (None, "None cannot be run"),
        ("laplace(1)", r"'laplace\(1\)' cannot be run"),
        (lambda: 0, "has no parameter for the input; give"),
        (lambda x, n, rng, more: 0, r"needs \(x, n, rng, more\); give"),
        (lambda x, *, rng: 0, r"needs \(x, rng\); give"),
        (lambda x, n: 0, r"needs \(x, n\); give"),
        (lambda x, rng, n: 0, r"needs \(x, rng, n\); give"),
        (lambda rng: 0, r"needs \(rng\); give"),
        (Hidden(), r"parameters of Hidden cannot be seen; wrap it: lambda x: Hidden\(x\)"),
    ],
)
def test_what_cannot_be_run_is_named(thing, said):
    with pytest.raises(InputError, match=said):
        as_mechanism(thing)


def test_a_sample_with_other_parameters_is_named_at_once():
    class Short:
        def sample(self, x, n):
            return [x] * n

    for use in (as_mechanism, lambda m: draw(m, 0, 3, generator())):
        with pytest.raises(InputError, match=r"Short\.sample\(x, n\) cannot be called as sample\(x, n, rng\)"):
            use(Short())


# Drawing


def of(function: Callable) -> Mechanism:
    return as_mechanism(function)


def test_an_array_stays_what_it_is():
    class Mine(np.ndarray):
        pass

    for batch in (np.zeros((5, 3)), np.zeros((5, 3)).view(Mine), np.array(["a"] * 5, dtype=object)):
        drawn = draw(of(lambda x, n, rng, batch=batch: batch), 0, 5, generator())
        assert type(drawn) is type(batch)
        assert drawn.dtype == batch.dtype
        assert (drawn == batch).all()


@pytest.mark.parametrize("batch", [["a", None], (1.5, "x"), [[1, 2], [3]]])
def test_sequences_of_outputs_stay_as_they_are(batch):
    drawn = draw(of(lambda x, n, rng: batch), 0, 2, generator())
    assert type(drawn) is type(batch)
    assert drawn == batch


@pytest.mark.parametrize("batch", [np.zeros(3), np.zeros((3, 5)), [1, 2, 3], (1, 2, 3)])
def test_a_wrong_number_of_outputs(batch):
    with pytest.raises(InputError, match=r"gave 3 outputs where 5 were asked for: sample\(x, n, rng\) must return n"):
        draw(of(lambda x, n, rng: batch), 0, 5, generator())


@pytest.mark.parametrize("batch", [1.5, np.float64(1.5), np.array(1.5), "abcde", {1: 2}, iter([1, 2, 3, 4, 5])])
def test_what_is_no_batch(batch):
    with pytest.raises(InputError, match=r"gave a value of type .* where a batch was asked for"):
        draw(of(lambda x, n, rng: batch), 0, 5, generator())


def test_none_drawn_is_an_empty_list_and_fewer_are_refused():
    assert draw(Coin(), 0, 0, generator()) == []
    with pytest.raises(InputError, match="must be 0 or more, got -1"):
        draw(Coin(), 0, -1, generator())


def test_an_exception_is_an_output():
    def fails(x, n, rng):
        raise KeyError("word")

    assert draw(of(fails), 0, 1, generator()) == [Failure("KeyError")]
    assert draw(of(fails), 0, 1, generator())[0].said == "'word'"
    assert draw(of(fails), 0, 3, generator()) == [Failure("KeyError")] * 3


def test_a_failed_batch_is_drawn_again_one_by_one_and_says_so():
    calls = []

    def sometimes(x, n, rng):
        calls.append(n)
        values = rng.integers(0, 2, n)
        if not values.all():
            raise ZeroDivisionError("zero")
        return values

    stream = generator()
    expected = (
        CallGenerators(stream).begin().integers(0, 2, 8),
        [begun.integers(0, 2, 1)[0] for begun in begun_by(CallGenerators(stream), 8)],
    )
    assert not expected[0].all()
    batch = draw(of(sometimes), 0, 8, generator())
    assert isinstance(batch, Redrawn)
    assert calls == [8] + [1] * 8
    assert batch == [1 if v else Failure("ZeroDivisionError") for v in expected[1]]
    assert {type(y) for y in batch} == {float, Failure}  # as in a batch that is one array


def test_drawing_singly_asks_for_one_at_a_time():
    calls = []
    batch = draw_singly(of(lambda x, n, rng: calls.append(n) or np.full((n, 2), len(calls))), 0, 3, generator())
    assert calls == [1, 1, 1]
    assert [row.tolist() for row in batch] == [[1, 1], [2, 2], [3, 3]]
    assert not isinstance(batch, Redrawn)


def test_functions_of_one_output_fail_for_themselves():
    def sometimes(x, rng):
        return 1 // int(rng.integers(0, 2))

    calls = begun_by(CallGenerators(generator()), 20)
    expected = [1 if rng.integers(0, 2) else Failure("ZeroDivisionError") for rng in calls]
    batch = draw(of(sometimes), 0, 20, generator())
    assert batch == expected
    assert not isinstance(batch, Redrawn)


def test_leaving_the_program_is_a_failed_run():
    def leaves(x, rng):
        sys.exit(0)

    assert draw(of(leaves), 0, 2, generator()) == [Failure("SystemExit")] * 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError, MechanismError])
@pytest.mark.parametrize("n", [1, 4])
def test_some_exceptions_are_no_outputs(error, n):
    def one(x, rng):
        raise error("stop")

    def batch(x, n, rng):
        raise error("stop")

    for function in (one, batch):
        with pytest.raises(error, match="stop"):
            draw(of(function), 0, n, generator())


def test_too_little_memory_is_no_evidence():
    def huge(x, n, rng):
        raise MemoryError

    with pytest.raises(MechanismError, match="not enough memory to draw 9 outputs"):
        draw(of(huge), 0, 9, generator())


def test_an_exception_that_cannot_say_what_it_is():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    def fails(x):
        raise Mute

    assert draw(of(fails), 0, 1, generator()) == [Failure("Mute")]


def test_a_sampler_without_a_signature_is_called():
    class Holder:
        sample = Hidden()

    assert draw(Holder(), 1, 2, generator()) == [1, 1]


# Python objects by name


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_of_the_current_directory_comes_first(folder):
    (folder / "colorsys.py").write_text("def rewrite(x, rng): return x + '!'\nclass Nest:\n    one = lambda x: 1\n")
    sys.modules.pop("colorsys", None)
    loaded = load_python("colorsys:rewrite")
    assert draw(loaded, "a", 2, generator()) == ["a!", "a!"]
    assert loaded.describe() == describe(loaded) == {"kind": "python", "path": "colorsys:rewrite"}
    assert loaded.replays
    assert not isinstance(loaded, HasDistribution)
    assert not load_python("colorsys:Nest.one").replays
    assert sys.path.count(str(folder)) == 1


def test_a_law_is_passed_through(folder):
    (folder / "with_law.py").write_text("from dpassay import parse\nnoise = parse('laplace(1)', dim=2)\n")
    loaded = load_python("with_law:noise")
    assert isinstance(loaded, HasDistribution)
    assert loaded.distribution(np.array([1.0, 2.0])).centre.tolist() == [1.0, 2.0]
    assert draw(loaded, np.zeros(2), 3, generator()).shape == (3, 2)
    assert describe(loaded) == {"kind": "python", "path": "with_law:noise"}


@pytest.mark.parametrize("path", ["", "module", "module:", ":name", "noisy.py:f", "dir/noisy:f", ".noisy:f"])
def test_a_path_that_is_none(path):
    with pytest.raises(InputError, match=r"give package\.module:name, .* got "):
        load_python(path)


def test_modules_that_cannot_be_had(folder):
    (folder / "raises.py").write_text("raise RuntimeError('no weights')")
    (folder / "leaves.py").write_text("import sys; sys.exit(3)")
    (folder / "needs.py").write_text("import nowhere_at_all")
    (folder / "wrong.py").write_text("def f(x:\n")
    for module, said in [
        ("nosuch", "there is no module 'nosuch', neither in"),
        ("nosuch.part", "there is no module 'nosuch', neither in"),
        ("raises.part", "raised RuntimeError: no weights while"),
        ("raises", "the module raises raised RuntimeError: no weights while it was imported"),
        ("leaves", "raised SystemExit: 3 while"),
        ("needs", "raised ModuleNotFoundError: No module named 'nowhere_at_all' while"),
        ("wrong", "raised SyntaxError: .* while"),
    ]:
        with pytest.raises(InputError, match=said):
            load_python(f"{module}:name")


def test_names_that_are_not_there(folder):
    (folder / "names.py").write_text("def rewrite(x): return x\nclass Box:\n    other = 3\n")
    with pytest.raises(InputError, match="module names has no 'rewrit'; close names: rewrite"):
        load_python("names:rewrit")
    with pytest.raises(InputError, match="'Box' has no 'othr'; close names: other"):
        load_python("names:Box.othr")
    with pytest.raises(InputError, match="has no 'zzzzzz'; check the name"):
        load_python("names:zzzzzz")
    with pytest.raises(InputError, match="3 cannot be run"):
        load_python("names:Box.other")


def test_descriptions():
    assert describe(Coin()) == {"kind": "object", "type": f"{__name__}.Coin"}
    assert describe(of(helper)) == {"kind": "object", "type": f"{__name__}.helper"}
    assert describe(parse("clip(l2, 1) | laplace(2)", dim=32)) == {
        "kind": "pipeline",
        "pipeline": "clip(l2, 1) | laplace(2)",
        "dim": "32",
    }
    assert describe(Endpoint("https://example.org/a?b=c")) == {"kind": "url", "url": "https://example.org/a?b=c"}


def helper(x):
    return x


# Programs


def test_a_distribution_under_its_old_name_is_not_passed_over_in_silence():
    class Old:
        def sample(self, x, n, rng):
            return rng.normal(size=n)

        def law(self, x):
            return None

    with pytest.raises(InputError, match=r"rename it to distribution\(x\)"):
        as_mechanism(Old())
