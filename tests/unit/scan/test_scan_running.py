import sys
from pathlib import Path

import dpassay
from dpassay.scan.running.programs import stub

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
