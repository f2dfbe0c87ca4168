"""Ratios measured side by side in one run: python -m tests.benchmarks NAME."""
