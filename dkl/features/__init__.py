"""Feature maps: a numpy block in, a numpy block out."""
