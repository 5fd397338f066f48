"""Audit files: saved, continued, repeated."""
