"""Reports on published claims."""
