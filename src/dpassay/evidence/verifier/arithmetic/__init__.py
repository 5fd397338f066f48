"""The verifier's own certified numbers and sums, and what they may cost."""
