"""Fit the configurations with the dkl of PYTHONPATH, and write their arrays: python child.py TREE OUT.npz NAME ...

A script, never imported: the folder that it lies in comes first on the path, and the tree's own tests are not used.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from configurations import CONFIGURATIONS, home_of_dkl


def run(tree: str, out: str, names: list[str]) -> None:
    """Every configuration in a folder of its own; one that fails leaves its error."""
    if home_of_dkl() != str(Path(tree).resolve()):
        sys.exit(f"dkl was imported from {home_of_dkl()}, not from {tree}; it has no dkl/__init__.py")
    warnings.simplefilter("ignore")
    arrays = {}
    for name in names:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = CONFIGURATIONS[name](Path(folder))
            except Exception as error:
                found = {"error": np.array(f"{type(error).__name__}: {error}")}
        arrays |= {f"{name}/{key}": array for key, array in found.items()}
        print(f"{tree}: {name} ({time.monotonic() - begun:.1f} s)", file=sys.stderr, flush=True)
    np.savez(out, **{key.replace("/", "|"): array for key, array in arrays.items()})


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], sys.argv[3:])
