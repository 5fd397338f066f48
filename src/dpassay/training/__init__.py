"""Private training of language models, and audits of a training run from canaries."""
