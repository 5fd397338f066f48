"""Self-contained pages and notebook cards."""
