"""A run as seen from a terminal."""
