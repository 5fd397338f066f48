"""Bounds for all pairs of a mechanism: curves of real pairs from below, theorems from above."""
