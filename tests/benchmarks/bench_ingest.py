"""Ingest of a CSV of 2 GB against pandas.read_csv(chunksize=...) alone, in turn, each in its own process.

The file is made here: 50 columns of random numbers with six digits and a label of 5 classes.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.report import median_ratio, report, watch_memory

BYTES = 2_000_000_000
PANDAS = "import sys, pandas\nfor chunk in pandas.read_csv(sys.argv[1], chunksize=100_000):\n    pass"


def write_csv(path: Path, size: int) -> None:
    """Random rows until the file has the size."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        file.write(",".join([*(f"x{i}" for i in range(50)), "label"]).encode() + b"\n")
        while file.tell() < size:
            rows = np.c_[rng.standard_normal((20_000, 50)), rng.integers(0, 5, 20_000)]
            text = io.BytesIO()
            np.savetxt(text, rows, fmt=["%.6f"] * 50 + ["%d"], delimiter=",")
            for _ in range(20):  # making text is slow; the same rows come 20 times
                file.write(text.getvalue())


def timed(words: list[str]) -> float:
    """Seconds of one process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - start


def run(options: Any) -> None:
    """Alternate; the median ratio counts."""
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        source, data = Path(folder, "rows.csv"), Path(folder, "rows.zarr")
        write_csv(source, BYTES)
        timed(["-c", PANDAS, str(source)])
        ours, theirs, most = [], [], 0
        for _ in range(max(1, min(3, options.repeats))):
            theirs.append(timed(["-c", PANDAS, str(source)]))
            with watch_memory() as peak:
                ours.append(timed(["-m", "dkl", "ingest", str(source), str(data)]))
            most = max(most, peak.most)
            shutil.rmtree(data)
        size = source.stat().st_size
    rows = [
        ("dkl ingest", f"{min(ours):.1f} s, {size / min(ours) / 1e6:.0f} MB/s"),
        ("pandas.read_csv alone", f"{min(theirs):.1f} s, {size / min(theirs) / 1e6:.0f} MB/s"),
    ]
    figures = {"speed": median_ratio(theirs, ours), "peak_gib": most / 2**30}
    report("ingest", rows, figures, {"speed": 0.5, "peak_gib": 1.0})
