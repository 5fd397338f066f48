"""The loss of one step in which records are sampled."""
