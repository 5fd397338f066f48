"""Private training of language models, and audits of training runs from canaries."""
