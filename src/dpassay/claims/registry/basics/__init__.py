"""Basic mechanisms and properties of the definition."""
