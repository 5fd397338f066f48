"""The stages of a pipeline."""
