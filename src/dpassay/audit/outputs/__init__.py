"""What is read from an output: its leaves, features and relations."""
