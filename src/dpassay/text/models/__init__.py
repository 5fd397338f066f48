"""Networks, encoders and classifiers, and how a trained model is kept in a folder."""
