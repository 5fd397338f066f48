"""The guessing game: runs, rules, counts, and what they imply."""
