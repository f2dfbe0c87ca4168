"""dkl with small segments, legs and chunks on a slow disk, so that a kill has many moments to hit.

    python runner.py VERB ...          one command, as `dkl VERB ...`
    python runner.py --crashes FILE    many, each in a fork that dies at a given write to the disk (see `crash_runs`)

DKL_TEST_SEGMENT, DKL_TEST_CHUNK: bytes of a segment of text, and of a shard of a data set.
DKL_TEST_PAUSE: seconds that every change of the disk takes.  DKL_TEST_CRASH: the change at which to die.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from typing import Any

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir")


def shrink() -> None:
    """Segments, shards, blocks and legs are small."""
    import dkl.learn.resumable_pass
    import dkl.sources.text
    import dkl.store.dataset
    import dkl.sums.gram

    dkl.sources.text.SIZE = int(os.environ.get("DKL_TEST_SEGMENT", 16384))
    dkl.store.dataset.SMALLEST = int(os.environ.get("DKL_TEST_CHUNK", 4096))
    dkl.sums.gram.GramProgram.rows_wanted = 250
    dkl.learn.resumable_pass.SECONDS, dkl.learn.resumable_pass.SHARE = 0.0, 1e9


def changes_disk(event: str, args: Any) -> bool:
    """Whether an audit event is a change of a file or folder."""
    if event == "open":
        path, _, flags = args
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
        return bool(writes) and isinstance(path, str) and not path.startswith(("/dev/", "/proc/"))
    return event in CHANGES


def watch_disk(pause: float, last: int = 0) -> list[int]:
    """Make every change take a while, and die before change number `last`; the count so far."""
    count = [0]

    def hook(event: str, args: Any) -> None:
        if changes_disk(event, args):
            count[0] += 1
            if count[0] == last:
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(60)
            if pause:
                time.sleep(pause)

    sys.addaudithook(hook)
    return count


def crash_runs(orders: str) -> None:
    """Orders are a JSON file: {"runs": [{"cwd", "words", "crash", "out"}]}, one after the other, each in a fork.

    Prints one line for each: {"code", "seconds"}; a negative code is the signal that ended it.
    """
    import pandas  # noqa: F401
    import zarr  # noqa: F401

    import dkl.estimators.loading
    import dkl.store.ingest  # noqa: F401
    from dkl.cli import evaluate, fit, ingest, inspect, resume  # noqa: F401

    with open(orders, encoding="utf-8") as file:
        runs = json.load(file)["runs"]
    for run in runs:
        begun, pid = time.monotonic(), os.fork()
        if not pid:
            _in_fork(run)
        _, status = os.waitpid(pid, 0)
        took = time.monotonic() - begun
        print(json.dumps({"code": os.waitstatus_to_exitcode(status), "seconds": took}), flush=True)


def _in_fork(run: dict) -> None:
    from dkl.cli.main import main

    code = 99
    try:
        os.setsid()
        os.chdir(run["cwd"])
        out = os.open(run["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        count = watch_disk(0.0, run["crash"])
        code = main(run["words"])
        with contextlib.suppress(OSError):
            print(f"changes={count[0]}", flush=True)
    finally:
        os._exit(code)


if __name__ == "__main__":
    shrink()
    if sys.argv[1] == "--crashes":
        crash_runs(sys.argv[2])
    else:
        watch_disk(float(os.environ.get("DKL_TEST_PAUSE", 0)), int(os.environ.get("DKL_TEST_CRASH", 0)))
        from dkl.cli.main import run

        run()
