"""Mechanisms made of stages: what each stage can put out, the distribution of the noise, and the text form."""
