"""What everything else builds on: certified numbers, intervals, guarantees, neighbours, the list of theorems."""
