"""Trace files: saved, read, and run again."""
