"""Mechanisms that run elsewhere: programs, HTTP endpoints, workers."""
