"""Every parameter once: docstrings, flags, TOML comments and refusals are made from its record."""
