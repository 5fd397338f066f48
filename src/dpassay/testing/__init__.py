"""Guarantees as tests: `assert_dp` and the pytest plugin."""
