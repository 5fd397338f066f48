"""The laws of drawn numbers and of formulas of them, and their exact losses."""
