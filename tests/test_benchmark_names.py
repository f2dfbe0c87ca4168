"""The command line of the benchmarks: every benchmark is listed, and every listed one is there."""

import subprocess
import sys
from pathlib import Path

from tests.benchmarks.__main__ import NAMES

FOLDER = Path(__file__).parent / "benchmarks"


def test_every_benchmark_is_listed_and_every_listed_one_is_there():
    files = {path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py")}
    assert files == set(NAMES)


def test_the_options_of_the_benchmarks_can_be_parsed():
    command = [sys.executable, "-m", "tests.benchmarks", "--help"]
    out = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    for name in NAMES:
        assert f"{name}: " in " ".join(out.stdout.split()), name
