"""python -m tests.same_bits OLD NEW: whether two source trees fit the same bits.

Each tree fits every configuration in a process of its own, on this machine. The table has one row for each: `same`, or
the attributes that differ with the largest difference relative to the largest number. Exit code 1 if any differ.
OLD may be a file that an earlier run wrote with --save-old, which saves half of the time.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.same_bits.compare import differences

HERE = Path(__file__).parent
MOST = 6
"""Attributes that a row of the table names."""


def names() -> list[str]:
    """All configurations."""
    said = "from configurations import CONFIGURATIONS; print(*CONFIGURATIONS, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", said], cwd=HERE, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def fit_all(tree: str, out: Path, chosen: list[str]) -> None:
    """Let a tree fit the configurations; nothing is written to it."""
    where = os.environ | {"PYTHONPATH": str(Path(tree).resolve()), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as scratch:
        words = [sys.executable, str(HERE / "child.py"), str(Path(tree).resolve()), str(out.resolve()), *chosen]
        subprocess.run(words, cwd=scratch, env=where, check=True)


def read(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Arrays of each configuration."""
    found: dict[str, dict[str, np.ndarray]] = {}
    with np.load(path) as arrays:
        for key in arrays.files:
            name, _, attribute = key.partition("|")
            found.setdefault(name, {})[attribute] = arrays[key]
    return found


def main() -> int:
    """0 if everything is the same."""
    parser = argparse.ArgumentParser(prog="python -m tests.same_bits", description=__doc__.split("\n")[0])
    parser.add_argument("old", help="a source tree, or a file of --save-old")
    parser.add_argument("new", help="a source tree")
    parser.add_argument("--only", nargs="+", default=["*"], help="names or patterns of configurations: 'learn*'")
    parser.add_argument("--save-old", type=Path, help="keep the arrays of OLD in this .npz file")
    options = parser.parse_args()
    chosen = [name for name in names() if any(fnmatch.fnmatch(name, pattern) for pattern in options.only)]
    if not chosen:
        parser.error(f"--only {' '.join(options.only)} names no configuration; there are: {', '.join(names())}")
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch, "old.npz"), Path(scratch, "new.npz")]
        if options.old.endswith(".npz"):
            files[0] = Path(options.old)
        else:
            fit_all(options.old, files[0], chosen)
        if options.save_old:
            shutil.copy(files[0], options.save_old)
        fit_all(options.new, files[1], chosen)
        old, new = (read(file) for file in files)
    return show(chosen, old, new)


def show(chosen: list[str], old: dict, new: dict) -> int:
    """The table; 1 if any row differs."""
    width, count = max(map(len, chosen)), 0
    for name in chosen:
        found = differences(old.get(name, {}), new.get(name, {}))
        count += bool(found)
        more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
        said = "; ".join(found[:MOST]) + more if found else f"same ({len(old[name])} arrays)"
        print(f"{name:{width}} | {said}")
    print(f"\n{len(chosen) - count} of {len(chosen)} configurations are the same" + (f", {count} differ" * bool(count)))
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
