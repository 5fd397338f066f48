"""What trains needs numpy and torch alone, so that it runs on a machine that has no more."""

import subprocess
import sys

CORE = ("aggregation", "comparison", "federated", "networks.language_model", "randomness", "units")


def test_the_core_of_training_imports_numpy_and_torch_alone():
    modules = ", ".join(f"dpassay.training.{name}" for name in CORE)
    code = f"import sys, dpassay.text.corpora.flights, {modules}; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    others = {"pydantic", "mpmath", "scipy", "safetensors", "opacus", "transformers", "opendp", "rich", "typer"}
    assert not others & set(loaded)
