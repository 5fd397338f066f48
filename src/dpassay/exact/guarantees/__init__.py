"""Metric DP, Rényi DP, zCDP and Gaussian DP."""
