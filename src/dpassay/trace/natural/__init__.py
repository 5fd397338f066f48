"""Runs of the unwatched code in separate processes, and the events counted in them."""
