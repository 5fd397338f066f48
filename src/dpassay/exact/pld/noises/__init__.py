"""The loss of one coordinate, by the kind of its noise."""
