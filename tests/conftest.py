"""Puts this folder on the path, so that every test can import `oracles` and `statistics_helper`."""

pytest_plugins = ["pytester"]
