"""What is read of an output: its leaves, features and relations."""
