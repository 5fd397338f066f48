"""Which inputs are compared: stated, drawn from a region, searched for, and made smaller."""
