"""One trial: a copy of the tree, one file of it changed, its mirror tests run there in a process of their own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COPIED = ("dkl", "tests", "pyproject.toml")
LIBRARIES = (
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "pandas",
    "zarr",
    "xarray",
)
LIBRARIES += ("dask.array", "dask.dataframe", "distributed", "sklearn.linear_model", "sklearn.pipeline")
"""What most tests load."""
NOTHING_FAILED, FAILED, NO_TESTS = 0, 1, 5
"""What pytest returns; other codes are modules, or conftest.py, that cannot be loaded."""


class Run(NamedTuple):
    """How one run of pytest ended: its code (None: out of time), its seconds, and the end of what it said."""

    code: int | None
    seconds: float
    said: str

    @property
    def caught(self) -> bool:
        """Whether the tests noticed; a module that can no longer be loaded is noticed too, and so is a crash."""
        return self.code not in (NOTHING_FAILED, NO_TESTS)

    @property
    def how(self) -> str:
        """The first test that failed, or how else it ended."""
        if self.code is None:
            return "time-out"
        failed = [line.split(" ", 1)[1] for line in self.said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return failed[0].split(" - ")[0] if failed else f"exit code {self.code}"


@contextlib.contextmanager
def copied(root: Path, scratch: Path) -> Iterator[Path]:
    """A copy of the tree, with its compiled files, that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    try:
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name)
            elif source.exists():
                shutil.copy2(source, folder / name)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def change(folder: Path, file: str, code: str) -> None:
    """Write the mutant into its copy, and remove what was compiled of the module it replaces."""
    path = folder / file
    path.write_text(code)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


class Warm:
    """A process that runs pytest again and again; closed, it ends after what it has under way."""

    def __init__(self, libraries: tuple[str, ...] = LIBRARIES) -> None:
        command = [sys.executable, Path(__file__).with_name("warm.py"), *libraries]
        environ = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ, start_new_session=True
        )

    def run_tests(self, folder: Path, tests: list[str], limit: float | None, cluster: bool, *options: str) -> Run:
        """pytest in a folder, its processes ended with it."""
        marks = "not long" if cluster else "not long and not cluster"
        loaded = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
        arguments = ["-q", "-p", "no:cacheprovider", "--tb=line", "-W", loaded, "-m", marks, *options, *tests]
        began = time.monotonic()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"folder": str(folder), "arguments": arguments, "limit": limit}) + "\n")
        self.process.stdin.flush()
        code = json.loads(self.process.stdout.readline())
        return Run(code, time.monotonic() - began, (folder / "said.txt").read_text(errors="replace")[-20_000:])

    def close(self) -> None:
        """No more runs."""
        self.process.communicate()


class Clean(NamedTuple):
    """What the tree without a mutant does: seconds of each test file, and the tests that fail even so."""

    seconds: dict[str, float]
    failing: list[str]


def run_clean(warm: Warm, folder: Path, tests: list[str], cluster: bool, *options: str) -> Clean:
    """Run all tests once where nothing is changed."""
    record = folder / "clean.xml"
    run = warm.run_tests(folder, tests, None, cluster, f"--junitxml={record}", *options)
    if run.code not in (NOTHING_FAILED, FAILED, NO_TESTS):
        raise RuntimeError(f"pytest ended with {run.code} where nothing was changed:\n{run.said[-2000:]}")
    seconds: dict[str, float] = dict.fromkeys(tests, 0.0)
    for case in ElementTree.parse(record).iter("testcase"):
        name = case.get("classname", "").replace(".", "/")
        file = next((test for test in tests if name.startswith(test.removesuffix(".py"))), None)
        if file is not None:
            seconds[file] += float(case.get("time", "0"))
    lines = run.said.splitlines()
    failing = [line.split(" ", 1)[1].split(" - ")[0] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return Clean(seconds, failing)
