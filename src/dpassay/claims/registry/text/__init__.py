"""Systems for text."""
