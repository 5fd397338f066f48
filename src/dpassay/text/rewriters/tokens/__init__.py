"""Rewriters that draw a text token by token from a language model."""
