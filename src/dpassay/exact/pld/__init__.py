"""The privacy loss of a pair of distributions, and its sums."""
