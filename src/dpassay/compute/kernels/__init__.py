"""Draws and counts by numpy, numba and Triton, with the same steps in the same order."""
