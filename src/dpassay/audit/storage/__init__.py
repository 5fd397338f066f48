"""Audits on file: saved, continued, repeated."""
