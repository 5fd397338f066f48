"""Commands about texts: training, rewriting, attacks, utility."""
