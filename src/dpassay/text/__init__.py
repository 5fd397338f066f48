"""Text systems: corpora, models, rewriters, reconstruction, utility."""
