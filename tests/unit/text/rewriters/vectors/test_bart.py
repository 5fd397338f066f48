"""DP-BART: its noise by the exact formula, what the decoder sees, and the loss of the classic formula."""

import math
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay import InputError

pytest.importorskip("transformers", reason="needs pip install 'dpassay[language-models]'")
torch = pytest.importorskip("torch")

import tiny_models  # noqa: E402
from dpassay.text.rewriters.base import PRETRAINED, TIMING, statement  # noqa: E402
from dpassay.text.rewriters.catalogue import Specification  # noqa: E402
from dpassay.text.rewriters.vectors import bart  # noqa: E402
from dpassay.text.rewriters.vectors.grid_noise import CubeNoise  # noqa: E402

LONG = "flights from boston to rome in the morning please"


def gaussian_delta(epsilon: float, shift: float) -> float:
    """The δ of Gaussian noise whose means are this many standard deviations apart."""

    def below(z: float) -> float:
        return math.erfc(-z / math.sqrt(2)) / 2

    return below(shift / 2 - epsilon / shift) - math.exp(epsilon) * below(-shift / 2 - epsilon / shift)


def test_the_noise_is_the_least_for_the_diameter_of_the_cube() -> None:
    rewriter = bart.make(8, tiny_models.encoder_decoder(), delta=1e-5, clip="0.1", longest="6")
    shift = 2 * 0.1 * math.sqrt(6 * 16) / rewriter.sigma
    assert gaussian_delta(8, shift) == pytest.approx(1e-5, rel=1e-6)
    assert rewriter.guarantee.epsilon == 8
    assert rewriter.guarantee.delta == 1e-5
    assert rewriter.guarantee.caveats == (PRETRAINED, TIMING)
    verdict = rewriter.exact()
    assert isinstance(verdict, dpassay.Proven)
    assert verdict.epsilon.lower == pytest.approx(8, rel=1e-9)


def test_the_classic_formula_loses_what_its_curve_says() -> None:
    rewriter = bart.as_published(250, tiny_models.encoder_decoder(), delta=1e-5, longest="64")
    assert rewriter.sigma == pytest.approx(math.sqrt(2 * math.log(1.25e5)) * 2 * 0.1 * math.sqrt(1024) / 250, rel=1e-12)
    true = bart.true_epsilon(0.1, 1024, rewriter.sigma, 1e-5)
    assert true == pytest.approx(1550.48, abs=0.01)  # by the exact curve, in 80 digits
    assert rewriter.guarantee.epsilon >= true
    assert rewriter.guarantee.claimed == 250
    assert not rewriter.guarantee.holds
    small = bart.as_published(3, tiny_models.encoder_decoder(), delta=1e-5)
    true = bart.true_epsilon(0.1, small.dim, small.sigma, 1e-5)
    assert gaussian_delta(true, 3 / math.sqrt(2 * math.log(1.25e5))) == pytest.approx(1e-5, rel=1e-6)


def test_the_classic_formula_is_refuted_by_the_exact_check() -> None:
    rewriter = bart.as_published(250, tiny_models.encoder_decoder(), delta=1e-5, longest="2")
    verdict = rewriter.exact()
    assert isinstance(verdict, dpassay.Refuted)
    assert verdict.epsilon.upper == pytest.approx(bart.true_epsilon(0.1, rewriter.dim, rewriter.sigma, 1e-5), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "longest"), [(250, "64"), (3, "20"), (40, "2")])
def test_what_is_stated_is_not_below_what_is_drawn(epsilon: float, longest: str) -> None:
    """OpenDP's map for noise on a grid gives more than the curve of continuous noise."""
    pytest.importorskip("opendp", reason="needs pip install 'dpassay[release]'")
    for make in (bart.as_published, bart.make):
        rewriter = make(epsilon, tiny_models.encoder_decoder(), longest=longest)
        stated = statement(rewriter)
        assert stated["guarantee"]["epsilon"] >= stated["drawn"]["epsilon_by_opendp"]
        assert "docs/proofs/grid.md" in stated["guarantee"]["proofs"]


def test_without_opendp_the_curve_of_continuous_noise_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bart, "find_spec", lambda name: None)
    rewriter = bart.as_published(250, tiny_models.encoder_decoder(), longest="64")
    assert rewriter.guarantee.epsilon == pytest.approx(1550.48, abs=0.01)


def test_states_are_clipped_and_have_one_size_for_texts_of_any_length() -> None:
    rewriter = bart.make(50, tiny_models.encoder_decoder(), clip="0.2", longest="6")
    states = rewriter.states(["", "to", LONG, " ".join([LONG] * 30)])
    assert states.shape == (4, 6 * 16)
    assert np.abs(states).max() == 0.2
    assert len({row.tobytes() for row in states}) >= 3


def test_the_decoder_sees_the_noisy_states_and_nothing_else() -> None:
    """Whatever the text, the same noisy numbers give the same words; the true length of a text is not used."""
    rewriter = bart.make(50, tiny_models.encoder_decoder(), longest="6", tokens="8")
    noisy = np.random.default_rng(0).normal(0, 30, (5, 6 * 16))

    class Noise:
        """Noise that takes the texts' own numbers to chosen ones."""

        def __init__(self, texts: list[str]) -> None:
            self.missing = noisy - rewriter.states(texts)

        def normal(self, mean: float, sigma: float, size: Any) -> np.ndarray:
            return self.missing

    written = []
    for texts in (["", "to", "to rome", "please", "show"], [LONG, LONG, "me", "", "in the morning"]):
        written.append(rewriter.rewrite(texts, Noise(texts)))  # type: ignore[arg-type]
    assert written[0] == written[1] == rewriter.decoded(noisy)
    assert len(set(written[0])) > 1


def test_released_noise_lies_on_a_grid_and_keeps_the_guarantee() -> None:
    pytest.importorskip("opendp", reason="needs pip install 'dpassay[release]'")
    rewriter = bart.make(50, tiny_models.encoder_decoder(), longest="6", tokens="4")
    noise = rewriter.noise
    assert noise.distance**2 >= 4 * noise.radius**2 * 96 > (noise.distance - 1) ** 2
    assert noise.kept(noise.scale) <= 50
    zcdp = noise.distance**2 / (2 * noise.scale**2)
    assert noise.kept(noise.scale) <= zcdp + 2 * math.sqrt(zcdp * math.log(1e5))  # the looser, well-known conversion
    released = noise.release(np.full((1, 96), 0.1))
    steps = released / (0.1 / noise.radius)
    assert steps == pytest.approx(np.round(steps), abs=1e-6)
    assert len(rewriter.release(["to rome", LONG])) == 2
    assert rewriter.statement()["drawn"]["epsilon_by_opendp"] <= 50


def test_values_outside_the_cube_are_brought_back_to_it() -> None:
    pytest.importorskip("opendp", reason="needs pip install 'dpassay[release]'")
    noise = CubeNoise(0.1, 2, 1e-6, 1e-5)
    assert noise.scale >= 1
    assert abs(noise.release(np.array([[5.0, -5.0]]))).max() <= 0.1 * (1 + 40 * noise.scale / noise.radius)


def test_a_folder_is_loaded_when_a_text_is_rewritten(tmp_path: Any) -> None:
    folder = tiny_models.saved(tiny_models.encoder_decoder(seed=3), tmp_path)
    published = Specification.read(f"dp-bart-as-published,model={folder},longest=4")
    rewriter = published.at_true(100)
    assert 100 * (1 - 1 / 256) <= rewriter.guarantee.epsilon <= 100  # the scale is at least 256 steps of the grid
    assert rewriter.guarantee.stated < 100
    assert "model" not in vars(rewriter)
    right = Specification.read(f"dp-bart,model={folder},longest=4,tokens=4").at_true(100, 1e-6)
    assert right.guarantee.delta == 1e-6
    texts = ["to rome", "please"]
    first, second = (right.rewrite(texts, np.random.default_rng(0)) for _ in range(2))
    assert first == second
    assert right.statement()["model"]["sha256"] == right.describe()["sha256"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"clip": "0"}, "clip must be a number"),
        ({"delta": 0}, "delta must be a number"),
        ({"longest": "65"}, "longest must be a whole number from 1 to 64"),
        ({"tokens": ""}, "tokens must be a whole number"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        bart.make(50, tiny_models.encoder_decoder(), **settings)


def test_other_models_are_refused() -> None:
    with pytest.raises(InputError, match="is a causal model; this mechanism needs an encoder-decoder one"):
        bart.make(1, tiny_models.causal())
