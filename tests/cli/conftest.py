"""The command line in processes of its own, made small and slow by runner.py, and compared byte by byte."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
RUNNER = Path(__file__).with_name("runner.py")
PATIENCE = 60.0
"""Seconds in which any command must have ended."""
SMALL = [sys.executable, str(RUNNER)]
PLAIN = [sys.executable, "-m", "dkl"]


class Ran:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str, seconds: float = 0.0) -> None:
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def lines(self) -> list[str]:
        """What it said on stderr, without the progress line."""
        return [line for line in self.err.replace("\r", "\n").splitlines() if line.startswith("dkl: ")]

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


def environment(**more: str) -> dict[str, str]:
    """Of every process that is started here."""
    return os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"} | more


def take_interrupts() -> None:
    """Ctrl-C counts, also where the tests run in the background of a shell that ignores it for them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def start(cwd: Path, *words: str, program: list[str] = SMALL, **more: str) -> subprocess.Popen:
    """A command in a session of its own; its output goes to files, as pipes would outlive it in its children."""
    with (cwd / ".out").open("wb") as out, (cwd / ".err").open("wb") as err:
        return subprocess.Popen(
            [*program, *words], cwd=cwd, env=environment(**more), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True, preexec_fn=take_interrupts,
        )  # fmt: skip


def finish(process: subprocess.Popen, cwd: Path, seconds: float = PATIENCE) -> Ran:
    """Wait for its end; one that does not end is killed, with its children."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"not ended in {seconds:g} s: {(cwd / '.err').read_text()[-2000:]}") from None
    finally:
        kill_session(process)
    return Ran(process.returncode, (cwd / ".out").read_text(), (cwd / ".err").read_text())


def run(
    cwd: Path, *words: str, program: list[str] = SMALL, ok: bool = True, seconds: float = PATIENCE, **more: str
) -> Ran:
    """A command to its end."""
    ran = finish(start(cwd, *words, program=program, **more), cwd, seconds)
    assert not ok or ran.code == 0, f"{words}: {ran}"
    return ran


def kill_session(process: subprocess.Popen) -> None:
    """kill -9 of a process and of all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


def wait_until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Poll until the condition holds; its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.002)
    raise AssertionError(f"not reached in {seconds:g} s: {what}")


def assert_refused(ran: Ran, code: int, *words: str) -> None:
    """It ended with a code and one line that holds the words, and no traceback."""
    assert ran.code == code, ran
    assert len(ran.lines()) == 1, ran
    assert "Traceback" not in ran.err, ran
    for word in words:
        assert word in ran.lines()[0], ran


def tree(path: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def assert_same_tree(found: Path, expected: Path) -> None:
    """Not one byte of one file differs."""
    ours, theirs = tree(found), tree(expected)
    assert ours.keys() == theirs.keys()
    assert ours, f"{found} is empty"
    assert [name for name in ours if ours[name] != theirs[name]] == []


def leftovers(cwd: Path, *kept: str) -> list[str]:
    """What lies in a folder beside the files of the test."""
    return sorted(path.name for path in cwd.iterdir() if path.name not in {".out", ".err", *kept})


def write_csv(path: Path, rows: int, inputs: int, seed: int) -> None:
    """A table of numbers with three classes, compressed; y is the same for every seed."""
    shared = np.random.default_rng(1)
    base = shared.normal(size=rows)
    X = np.random.default_rng(seed).normal(size=(rows, inputs)) + base[:, None]
    labels = np.digitize(base, [-0.5, 0.5])
    lines = [",".join([*(f"{path.name[0]}{i}" for i in range(inputs)), "label"])]
    lines += [",".join([*(f"{v:.9g}" for v in row), f"c{label}"]) for row, label in zip(X, labels, strict=True)]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    os.utime(path, (1e9, 1e9))


def crash_each(folder: Path, runs: list[dict], **more: str) -> list[Ran]:
    """Run commands in forks that die at a given change of the disk; see runner.crash_runs."""
    orders = folder / "orders.json"
    for number, order in enumerate(runs):
        order["out"] = str(folder / f"out-{number}")
    orders.write_text(json.dumps({"runs": runs}))
    words = [*SMALL, "--crashes", str(orders)]
    done = subprocess.run(words, env=environment(**more), capture_output=True, text=True, timeout=240, check=True)
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    found = []
    for end, order in zip(ended, runs, strict=True):
        out = Path(order["out"])
        found.append(Ran(end["code"], "", out.read_text(), end["seconds"]))
        out.unlink()
    orders.unlink()
    return found


def run_each(cwd: Path, folder: Path, commands: Any, **more: str) -> list[Ran]:
    """Several commands in one folder, without the time to start each."""
    return crash_each(folder, [{"cwd": str(cwd), "words": list(words), "crash": 0} for words in commands], **more)


@contextlib.contextmanager
def session(process: subprocess.Popen) -> Iterator[subprocess.Popen]:
    """End it, and what it started, at the end of the block."""
    try:
        yield process
    finally:
        kill_session(process)
