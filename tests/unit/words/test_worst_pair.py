"""The worst pair of words, against plain numpy over all pairs and outputs."""

import numpy as np
import pytest

from dpassay.words import worst_pair
from dpassay.words.mechanisms import TEM, SanText
from dpassay.words.vocabulary import Vocabulary
from dpassay.words.worst_pair import worst_pairs

RNG = np.random.default_rng(18)


def vocabulary(words: int, dim: int, scale: float = 1.0) -> Vocabulary:
    return Vocabulary(tuple(f"w{i}" for i in range(words)), scale * RNG.standard_normal((words, dim)))


def distance(x: np.ndarray, y: np.ndarray, metric: str) -> float:
    if metric == "angle":
        return float(np.arccos(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1)))
    return float(np.linalg.norm(x - y, {"l2": 2, "l1": 1, "linf": np.inf}[metric]))


def plain_law(mechanism) -> np.ndarray:
    """ln P(y|x) by the definitions in the papers, one word at a time."""
    vectors, half = mechanism.vocabulary.vectors, mechanism.epsilon / 2
    logs = []
    for x in vectors:
        squared = mechanism.distance == "squared-l2"
        apart = np.array([distance(x, y, "l2" if squared else mechanism.distance) for y in vectors])
        apart = apart**2 if squared else apart
        if isinstance(mechanism, TEM):
            near = apart <= mechanism.gamma
            count = (~near).sum()
            if mechanism.far == "count":
                bucket = half * -mechanism.gamma + np.log(max(count, 1))
            else:
                bucket = half * (-mechanism.gamma + 2 * np.log(len(vectors) / near.sum()) / mechanism.epsilon)
            weights = np.where(near, np.exp(-half * apart), np.exp(bucket) / max(count, 1))
        else:
            weights = np.exp(-half * apart)
        logs.append(np.log(weights / weights.sum()))
    return np.array(logs)


def plain_worst(mechanism, metric: str, epsilon: float) -> dict[str, float]:
    logs, vectors = plain_law(mechanism), mechanism.vocabulary.vectors
    losses = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
    apart = np.array([[distance(x, y, metric) for y in vectors] for x in vectors])
    others = ~np.eye(len(vectors), dtype=bool)
    return {
        "loss": losses[others].max(),
        "ratio": (losses[others] / apart[others]).max(),
        "excess": (losses - epsilon * apart)[others].max(),
    }


CASES = {
    "santext": lambda v: SanText(v, 3.0),
    "santext by l1": lambda v: SanText(v, 0.7, distance="l1"),
    "santext by linf": lambda v: SanText(v, 5.0, distance="linf"),
    "santext by angle": lambda v: SanText(v, 9.0, distance="angle"),
    "santext by squares": lambda v: SanText(v, 1.0, distance="squared-l2"),
    "tem": lambda v: TEM(v, 3.0, gamma=2.0),
    "tem of the package": lambda v: TEM(v, 3.0, gamma=2.0, far="ratio"),
    "tem without far words": lambda v: TEM(v, 1.0, gamma=99.0),
}


@pytest.fixture
def interpreted(monkeypatch):
    """The search on a GPU, by Triton's interpreter where there is none."""
    pytest.importorskip("triton", reason="Triton is not made for this system")
    from dpassay.compute import devices
    from dpassay.compute.kernels import triton_word_gaps

    if not devices.has_gpu():
        monkeypatch.setattr(triton_word_gaps, "DEVICE", "cpu")
    monkeypatch.setattr(worst_pair, "usable", lambda device: (device, ""))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("words", [2, 3, 41, 150])
@pytest.mark.parametrize("case", CASES)
def test_intervals_hold_what_plain_numpy_finds(case, words):
    mechanism = CASES[case](vocabulary(words, 5))
    for metric in ("l2", "l1", "linf", "angle") if words == 41 else ("l2",):
        expected = plain_worst(mechanism, metric, 2.5)
        for device, every in (("cpu", False), ("cpu", True), ("numpy", True)):
            found = worst_pairs(mechanism, metric, 2.5, device, every)
            for aim, extreme in found.items():
                room = 1e-11 * (1 + abs(expected[aim])) + 1e-9 * (metric == "angle")  # of numpy's own rounding
                assert extreme.lower - room <= expected[aim] <= extreme.upper + room, (aim, device)
                assert extreme.upper - extreme.lower < 1e-10 * (1 + abs(expected[aim]))


@pytest.mark.parametrize("case", CASES)
def test_the_words_attain_the_lower_end(case):
    mechanism = CASES[case](vocabulary(60, 4))
    logs, vectors = plain_law(mechanism), mechanism.vocabulary.vectors
    for aim, found in worst_pairs(mechanism, "l2", 2.5, every=True).items():
        loss = logs[found.x, found.output] - logs[found.y, found.output]
        apart = distance(vectors[found.x], vectors[found.y], "l2")
        assert loss == pytest.approx(found.loss, abs=1e-11)
        assert apart == pytest.approx(found.distance, rel=1e-12)
        assert {"loss": loss, "ratio": loss / apart, "excess": loss - 2.5 * apart}[aim] == pytest.approx(
            found.lower, abs=1e-9
        )


def test_single_precision_is_made_good():
    """Distances of 10⁵ that differ by some thousandths, where single precision knows two decimals."""
    points = 7e4 * np.eye(300) + 0.003 * RNG.standard_normal((300, 300))
    mechanism = SanText(Vocabulary(tuple(f"w{i}" for i in range(300)), points), 2.0)
    short, every = worst_pairs(mechanism), worst_pairs(mechanism, every=True)
    for aim in worst_pair.AIMS:
        assert every[aim].lower == pytest.approx(short[aim].lower, rel=1e-12)
        assert max(every[aim].lower, short[aim].lower) <= min(every[aim].upper, short[aim].upper)
    assert {every["loss"].x, every["loss"].y} == {short["loss"].x, short["loss"].y}


def test_distances_that_are_not_kept_are_computed_again(monkeypatch):
    mechanism = TEM(vocabulary(140, 3), 2.0, gamma=1.5, far="ratio")
    kept = worst_pairs(mechanism)
    monkeypatch.setattr(worst_pair, "HELD", 0)
    again = worst_pairs(mechanism)
    assert [found.lower for found in again.values()] == pytest.approx([found.lower for found in kept.values()])


def test_two_words_at_one_place_lose_nothing_to_each_other():
    words = Vocabulary(("a", "b", "c"), np.array([[0.0], [0.0], [3.0]]))
    found = worst_pairs(SanText(words, 2.0))
    # Z(a) = 2 + e^-3, Z(c) = 1 + 2e^-3.
    exact = 3 + np.log((2 + np.exp(-3)) / (1 + 2 * np.exp(-3)))
    assert found["loss"].lower <= exact <= found["loss"].upper
    assert found["ratio"].lower <= exact / 3 <= found["ratio"].upper
    same = Vocabulary(("a", "b"), np.array([[1.0], [1.0]]))
    assert worst_pairs(SanText(same, 2.0))["ratio"].upper == 0


@pytest.mark.long(every=4)
@pytest.mark.parametrize(
    ("case", "every"),
    [
        *((case, False) for case in CASES),
        *(pytest.param(case, True, marks=() if case in ("santext", "tem") else pytest.mark.long) for case in CASES),
    ],
)
def test_a_gpu_finds_the_same(interpreted, case, every):
    mechanism = CASES[case](vocabulary(150, 3))
    metric = "l1" if case == "tem" else "l2"
    here, there = (worst_pairs(mechanism, metric, 2.5, device, every) for device in ("cpu", "cuda"))
    for aim in worst_pair.AIMS:
        assert there[aim].lower == pytest.approx(here[aim].lower, rel=1e-12, abs=1e-11)
        assert there[aim].upper == pytest.approx(here[aim].upper, rel=1e-12, abs=1e-11)
        assert (there[aim].x, there[aim].y) == (here[aim].x, here[aim].y)


def test_words_at_one_place_with_different_laws_lose_infinitely_much_per_unit():
    words = Vocabulary(("the", "cat", "dog"), np.array([[1.0], [1.0], [3.0]]))
    found = worst_pairs(SanText(words, 2.0, uniform=(0,)))["ratio"]
    assert found.upper == np.inf
    assert found.lower > 1e50
    assert {found.x, found.y} == {0, 1}


def test_parallel_vectors_have_no_angle_between_them_and_still_lose():
    words = Vocabulary(("a", "b", "c"), np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))
    found = worst_pairs(SanText(words, 2.0), "angle")["ratio"]
    assert found.upper == np.inf
    assert found.lower > 1e9


def test_a_gpu_sees_words_at_one_place(interpreted):
    words = Vocabulary(("the", "cat", "dog"), np.array([[1.0], [1.0], [3.0]]))
    for mechanism in (SanText(words, 2.0, uniform=(0,)), SanText(words, 2.0)):
        for every in (False, True):
            here, there = (worst_pairs(mechanism, device=device, every=every) for device in ("cpu", "cuda"))
            for aim in worst_pair.AIMS:
                assert there[aim].lower == pytest.approx(here[aim].lower, rel=1e-12)
                assert there[aim].upper == pytest.approx(here[aim].upper, rel=1e-12)


@pytest.mark.parametrize("scores", [(0.0, -3.0, -3.0), (0.0, 0.0, -4.0)])
def test_a_word_outside_the_vocabulary_can_be_the_worst(interpreted, scores):
    """A law that is the same for all words: only a word that is replaced uniformly differs from it."""

    class Constant(SanText):
        is_metric = False

        def scores(self, apart):
            return 0 * apart + (np.array(scores) if isinstance(apart, np.ndarray) else apart.new_tensor(scores))

    mechanism = Constant(vocabulary(3, 2), 1.0)
    logs = np.array(scores) - np.log(np.exp(scores).sum())
    losses = np.array([logs + np.log(3), -np.log(3) - logs])
    for device in ("cpu", "cuda"):
        assert worst_pairs(mechanism, device=device)["loss"].upper < 1e-12
        found = worst_pairs(mechanism, device=device, outside=True)["loss"]
        assert found.lower <= losses.max() + 1e-15
        assert losses.max() - 1e-15 <= found.upper < found.lower + 1e-12
        sign = 0 if found.y < 0 else 1
        assert min(found.x, found.y) == worst_pair.OUTSIDE
        assert losses[sign, found.output] == losses.max()
