"""Traces on file: saved, read, and run again."""
