"""The networks that can be trained with privacy."""
