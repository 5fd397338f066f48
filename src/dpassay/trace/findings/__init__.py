"""What is wrong at which line, and how a trace says it."""
