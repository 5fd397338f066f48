import math
import sys
from pathlib import Path

import dpassay
from dpassay.scan.running.arguments import DELTA, EPSILON, ArgumentCall, call_of
from dpassay.scan.running.programs import stub
from dpassay.scan.scanning import scan_and_index

MODULE = """
import sys
import numpy as np


def too_little(value: float, epsilon, sensitivity):
    '''epsilon-DP.'''
    return value + np.random.laplace(0, sensitivity / epsilon / 8)


def unknown(value, epsilon, something):
    return value + np.random.laplace(0, 1 / epsilon)
"""


def test_a_mechanism_is_run_and_refuted_or_says_why_not(tmp_path: Path) -> None:
    (tmp_path / "noise.py").write_text(MODULE)
    result = dpassay.scan(tmp_path / "noise.py", run=True, work=tmp_path / "work")
    outcomes = {one.name: one for one in result.mechanisms}
    assert outcomes["too_little"].outcome == "refuted"
    assert "--pair '[0.0, 2.0]' --epsilon 0.5" in outcomes["too_little"].command
    assert outcomes["unknown"].outcome == "not run"
    assert "'something'" in outcomes["unknown"].reason
    kept = (tmp_path / "work" / "outcomes.json").read_text()
    again = dpassay.scan(tmp_path / "noise.py", run=True, work=tmp_path / "work")
    assert [one.outcome for one in again.mechanisms] == [one.outcome for one in result.mechanisms]
    assert (tmp_path / "work" / "outcomes.json").read_text() == kept


def test_a_module_that_exits_when_it_is_imported_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "noise.py").write_text(MODULE.replace("import numpy as np", "import numpy as np\nsys.exit(0)"))
    result = dpassay.scan(tmp_path / "noise.py", run=True, work=tmp_path / "work")
    reasons = {one.name: one.reason for one in result.mechanisms}
    assert "exits when it is imported" in reasons["too_little"]
    assert "noise" not in sys.modules


def test_a_stub_is_python_up_to_what_is_left_out() -> None:
    compile(stub("unknown", "noise"), "subject.py", "exec")


TEXTS = """
import numpy as np


class Rewriter:
    '''Word-level metric differential privacy.'''

    def __init__(self, epsilon):
        self.epsilon = epsilon
        self.places = {"paris": 0.0, "london": 50.0}

    def rewrite(self, text):
        noisy = self.places[text] + np.random.laplace(0, 1 / self.epsilon)
        return min(self.places, key=lambda word: abs(self.places[word] - noisy))
"""
STEPS = """
import numpy as np


def gaussian(values, epsilon, delta):
    '''(epsilon, delta)-DP sum of numbers from 0 to 1.'''
    return np.sum(values) + np.random.normal(0, np.sqrt(2 * np.log(1.25 / delta)) / epsilon)
"""


def test_what_is_claimed_of_a_pair_follows_from_the_claim(tmp_path: Path) -> None:
    """Far texts are not neighbors under metric DP; two steps have more than twice the δ."""
    (tmp_path / "texts.py").write_text(TEXTS)
    (tmp_path / "steps.py").write_text(STEPS)
    calls = {}
    _, index = scan_and_index(tmp_path)
    for function in index.functions():
        calls[function.name] = call_of(index, function)
    assert "distance between texts" in str(calls["rewrite"])
    assert isinstance(calls["gaussian"], ArgumentCall)
    assert not calls["gaussian"].exact
    assert calls["gaussian"].delta >= (1 + math.exp(EPSILON)) * DELTA
