"""Traces of code that needs another interpreter."""
