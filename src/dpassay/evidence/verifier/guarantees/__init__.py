"""Guarantees other than (ε, δ)-DP."""
