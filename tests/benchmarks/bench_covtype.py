"""The newcomer's path on covtype: ingest, fit with cross-validated alpha, evaluate; each in its own process, as typed.

Needs covtype.csv.xz (581,012 rows): `--data FOLDER` or the environment variable DKL_DATA. Installing is not timed here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.data import find
from tests.benchmarks.report import report, watch_memory

FIT = ["--n-components", "1000", "--alpha", "0.3,1,10,100", "--cv", "5"]


def run(options: Any) -> None:
    """Run it once; three commands."""
    source = find(options, "covtype.csv.xz")
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        data, model = str(Path(folder, "covtype.zarr")), str(Path(folder, "model.zarr"))
        commands = {
            "ingest": ["ingest", source, data, "--scale", "standard", "--split", "test=0.2"],
            "fit": ["fit", data, model, *FIT],
            "evaluate": ["evaluate", model, data, "--json"],
        }
        seconds, said = {}, ""
        with watch_memory() as peak:
            for name, words in commands.items():
                start = time.perf_counter()
                done = subprocess.run([sys.executable, "-m", "dkl", *words], check=True, capture_output=True, text=True)
                seconds[name] = time.perf_counter() - start
                said = done.stdout
        found = json.loads(said)
    rows = [(name, f"{value:.1f} s") for name, value in seconds.items()]
    rows.append(("rows evaluated", f"{found['rows']:,}"))
    figures = {"seconds": sum(seconds.values()), "peak_gib": peak.most / 2**30, "accuracy": found["accuracy"]}
    report("covtype", rows, figures, {"seconds": 300.0, "peak_gib": 1.5})
