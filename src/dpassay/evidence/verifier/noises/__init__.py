"""What the verifier knows of each noise, written independently of the prover."""
