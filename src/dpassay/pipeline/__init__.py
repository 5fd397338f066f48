"""Mechanisms made of stages: the possible outputs of each stage, the distribution of the noise, and the text form."""
