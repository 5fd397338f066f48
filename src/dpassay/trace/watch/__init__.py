"""Sources of randomness and the numbers they give, watched during a run."""
