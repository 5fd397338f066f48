"""What everything else builds on: certified numbers, intervals, guarantees, neighbors, the list of theorems."""
