"""What everything else stands on: certified numbers, intervals, guarantees, neighbours, the list of theorems."""
