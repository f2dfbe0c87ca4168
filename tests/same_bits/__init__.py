"""Old and new code, fit by fit: the same bits, or which attributes differ."""
