"""Figures for pages and papers."""
