"""Exit 0 if the scheduler or worker of this container answers: `python -m dkl.engine.alive 8787`, for health checks.

The port is that of its dashboard, which may answer on the loopback interface only; without one, it is `DKL_HEALTH_PORT`
of the environment, and a container without either (a job, a notebook) is healthy as long as it runs.
"""

from __future__ import annotations

import os
import sys
import urllib.request

SECONDS = 9.0


def alive(port: str) -> bool:
    """Whether dask answers at that port of this machine."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=SECONDS) as answer:
            return bool(answer.status == 200)
    except OSError as error:
        print(f"port {port}: {error}", file=sys.stderr)
        return False


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("DKL_HEALTH_PORT", "")
    sys.exit(0 if not given or alive(given) else 1)
