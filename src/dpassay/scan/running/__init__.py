"""Mechanisms that a scan found, run in processes with limits: arguments from names, neighbors, and an audit."""
