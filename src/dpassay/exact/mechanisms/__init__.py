"""One file per noise or choice: what is known of its loss."""
