"""What stages before and behind the noise do to inputs, records and pairs."""
