"""Runs of the code as it is, in processes of their own, and what is counted in them."""
