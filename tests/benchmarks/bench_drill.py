"""drill: fits, learning and ingest on a cluster whose processes are killed, stopped, slowed, cut off and replaced.

`--minutes N` of it: each job runs by the command line until it has finished, however often its client has to be
started again (`--resume auto`, `dkl resume`), with a fault every few seconds, and its result is compared bit for bit
with that of the same command in one process that nobody disturbs. No attempt may take longer than five minutes.
`differences` counts results that are not the same bits, `hangs` attempts that were ended for their time, `lost` jobs
that could not finish.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dkl
from tests.benchmarks.drill_cluster import FAULTS, Faulty, end
from tests.benchmarks.report import report

ATTEMPT_SECONDS, ATTEMPTS, EVERY = 300.0, 40, (0.5, 5.0)
ROWS, INPUTS = 60_000, 12
BARS = {"differences": 0, "hangs": 0, "lost": 0, "faults": 100}


@dataclass(frozen=True)
class Job:
    """A command with its result's path in place of {out}, and how it goes on if its client has died."""

    name: str
    first: list[str]
    again: list[str]


def jobs(folder: Path) -> list[Job]:
    """What is drilled; the data are in the folder."""
    fit = ["fit", str(folder / "rows.zarr"), "{out}", "--resume", "auto", "--random-state", "1"]
    wide = [*fit, "--n-components", "600", "--cv", "3", "--alpha", "0.1,1"]
    learn = [*fit, "--n-components", "120", "--learn", "cv", "--groups", "each", "--max-iter", "6"]
    ingest = [
        "ingest",
        str(folder / "rows.csv"),
        "{out}",
        "--target",
        "y",
        "--scale",
        "standard",
        "--categorical",
        "auto",
    ]
    return [Job("fit", wide, wide), Job("learn", learn, learn), Job("ingest", ingest, ["resume", "{out}"])]


def write_rows(folder: Path) -> None:
    """A CSV of numbers and a category, and the same as a data set."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, INPUTS))
    y = np.digitize(np.sin(X[:, 0]) + X[:, 1] * X[:, 2], [-0.7, 0.7])
    words = np.array(["red", "green", "blue"])[rng.integers(0, 3, ROWS)]
    with (folder / "rows.csv").open("w") as file:
        file.write(",".join([*(f"x{i}" for i in range(INPUTS)), "word", "y"]) + "\n")
        for row, word, label in zip(X, words, y, strict=True):
            file.write(",".join([*(f"{value:.6f}" for value in row), word, str(label)]) + "\n")
    call(["ingest", str(folder / "rows.csv"), str(folder / "rows.zarr"), "--target", "y", "--drop", "word"]).wait()


def call(words: list[str]) -> subprocess.Popen:
    """The command, in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "dkl", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def bits(path: Path, name: str) -> dict[str, bytes]:
    """What a job made: the weights and sigmas of a model, or every file of a data set."""
    if name == "ingest":
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        return {str(file.relative_to(path)): file.read_bytes() for file in files}
    model = dkl.load(str(path))
    return {key: np.asarray(getattr(model, key)).tobytes() for key in ("coef_", "intercept_", "sigma_", "alpha_")}


def finish(job: Job, out: Path, cluster: Faulty, seen: Counter) -> bool:
    """Run a job to its end among faults; whether it got there."""
    for attempt in range(ATTEMPTS):
        words = job.first if attempt == 0 or not list(out.parent.glob(out.name + "*")) else job.again
        client = call([word.format(out=out) for word in words] + ["--scheduler", cluster.address])
        begun = next_fault = time.monotonic()
        while client.poll() is None:
            cluster.mend()
            if time.monotonic() - begun > ATTEMPT_SECONDS:
                seen["hangs"] += 1
                end(client)
            if time.monotonic() > next_fault:
                fault = str(cluster.rng.choice(FAULTS, p=[0.3, 0.15, 0.15, 0.15, 0.07, 0.08, 0.1]))
                if time.monotonic() - begun > 4.0 or "worker" in fault:
                    cluster.strike(fault, client)
                    seen[fault] += 1
                next_fault = time.monotonic() + cluster.rng.uniform(*EVERY)
            time.sleep(0.05)
        seen["attempts"] += 1
        if client.returncode == 0:
            return True
        cluster.mend()
    return False


def run(options: argparse.Namespace) -> None:
    """Jobs one after another until the time is over."""
    seen: Counter = Counter(dict.fromkeys((*FAULTS, "attempts", "hangs", "differences", "lost"), 0))
    done: Counter = Counter()
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        folder = Path(name)
        write_rows(folder)
        every = jobs(folder)
        right = {}
        for job in every:
            out = folder / "drilled.zarr"  # the same name, as the id of a data set holds it
            if call([word.format(out=out) for word in job.first]).wait():
                raise SystemExit(f"dkl {' '.join(job.first)} failed with nobody disturbing it")
            right[job.name] = bits(out, job.name)
            shutil.rmtree(out)
        cluster = Faulty(folder, 3, options.seeds)
        try:
            stop = time.monotonic() + 60 * options.minutes
            while time.monotonic() < stop:
                job = every[sum(done.values()) % len(every)]
                out = folder / "drilled.zarr"
                finished = finish(job, out, cluster, seen)
                seen["lost"] += not finished
                seen["differences"] += finished and bits(out, job.name) != right[job.name]
                done[job.name] += 1
                for left in folder.glob("drilled.zarr*"):
                    shutil.rmtree(left)
        finally:
            cluster.close()
    told = [("jobs", "   ".join(f"{name} {count}" for name, count in done.items()))]
    told += [(fault, str(seen[fault])) for fault in (*FAULTS, "attempts")]
    figures = {key: float(seen[key]) for key in ("differences", "hangs", "lost")}
    report("drill", told, figures | {"faults": float(sum(seen[fault] for fault in FAULTS))}, BARS)
