"""How the stages before and after the noise transform inputs, records and pairs."""
