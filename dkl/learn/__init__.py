"""One method per file: sums over rows, a small solve, a model."""
