"""What can be run, and how: each call with its own input and random numbers."""
