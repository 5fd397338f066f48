"""Stages that bound, scale or round a vector."""
