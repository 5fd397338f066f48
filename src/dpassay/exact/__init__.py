"""The exact analysis: from a pipeline to bounds on its privacy loss, a witness, and repairs."""
