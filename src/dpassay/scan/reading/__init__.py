"""Source code as text: what a package defines, where it draws noise, and what scales it. Nothing is executed."""
