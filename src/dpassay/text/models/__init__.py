"""Networks, encoders and classifiers, and how a trained model is stored in a folder."""
