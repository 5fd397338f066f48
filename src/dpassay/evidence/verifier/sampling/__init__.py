"""Repeated steps and sampled records."""
