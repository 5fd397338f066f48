"""Mechanisms that replace words."""
