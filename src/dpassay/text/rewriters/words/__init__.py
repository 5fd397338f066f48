"""Rewriters that replace each word."""
