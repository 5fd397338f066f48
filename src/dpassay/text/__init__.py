"""Text systems: corpora, encoders, the autoencoder, rewriting, reconstruction. They know nothing of checking."""
