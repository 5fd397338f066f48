"""The texts of outputs: their words and n-grams, the numbers in them, and what exceptions tell."""
