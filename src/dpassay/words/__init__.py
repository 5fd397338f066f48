"""Mechanisms that replace a word by a word: vocabularies with vectors, exact laws, and the worst pair of words."""
