"""Sets and pairs of vectors, and what stages make of them."""
