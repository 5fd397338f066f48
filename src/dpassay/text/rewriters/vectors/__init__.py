"""Rewriters that encode a text, add noise to its vector, and decode it."""
