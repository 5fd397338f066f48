"""Bits, hashes and Bloom filters: local DP."""
