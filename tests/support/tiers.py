"""Whether long tests run in full: `conftest.py` says so, before any test is imported, where `--all` was given."""

in_full = False


def repetitions(reduced: int, full: int) -> int:
    """How often something is tried: by default, and with `--all`."""
    return full if in_full else reduced
