"""Runs of one input with the noise that would give the output of the other input."""
