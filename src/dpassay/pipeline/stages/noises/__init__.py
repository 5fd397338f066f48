"""Stages that add noise."""
