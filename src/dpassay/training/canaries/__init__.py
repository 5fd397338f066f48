"""Canaries, membership, and audits of a training run."""
