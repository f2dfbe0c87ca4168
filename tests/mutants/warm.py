"""A process that has the libraries loaded and forks itself for every run of pytest: most of a short run is imports.

One line of JSON in, {"folder", "arguments", "limit"}; one line out, the exit code, or null if it took longer than that.
Nothing of dkl or its tests is loaded here, so each fork takes them from its own folder.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

PAUSE, BROKEN = 0.02, 70


def run(folder: str, arguments: list[str]) -> None:
    """In the fork: pytest in a folder, its words in a file there."""
    os.setsid()
    os.chdir(folder)
    said = os.open(Path(folder) / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ |= {"PYTHONPATH": folder, "HYPOTHESIS_STORAGE_DIRECTORY": f"{folder}/.hypothesis"}
    sys.path[0] = folder
    code = BROKEN
    try:
        code = int(sys.modules["pytest"].main(arguments))
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def watch(child: int, limit: float | None) -> int | None:
    """Wait for the fork, end what it has started, and say how it ended."""
    deadline, ended = time.monotonic() + (limit or float("inf")), 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            time.sleep(PAUSE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
        return None
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    """Load the libraries named on the command line, then serve until the input ends."""
    for name in ("pytest", *sys.argv[1:]):
        importlib.import_module(name)
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if not child:
            run(wanted["folder"], wanted["arguments"])
        print(json.dumps(watch(child, wanted["limit"])), flush=True)


if __name__ == "__main__":
    main()
