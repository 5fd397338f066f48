"""Distinguishers that are made of others."""
