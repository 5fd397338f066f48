"""What dpassay answers, as a value, as data, and as a certificate that the verifier checks."""
