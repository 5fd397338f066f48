"""What is wrong, at which line, and how a trace reports it."""
