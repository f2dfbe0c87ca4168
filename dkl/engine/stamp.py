"""The versions of this process; each process of a cluster is asked for `dkl.engine.stamp:STAMP`.

`source` is a digest of the files that run on workers and on the scheduler: a version number does not tell two checkouts
of the same version apart.
"""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numpy", "dask", "distributed", "zarr")
REMOTE_CODE = (
    "checks", "cost", "losses", "penalties", "kernels", "features", "sources", "sums", "engine", "solvers", "store",
    "prepare", "learn", "torch",
)  # fmt: skip
"""Modules and folders whose functions run on workers and on the scheduler."""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _source() -> str:
    """A digest of the files, independent of line ends; empty if there are no files."""
    root, found = Path(__file__).parent.parent, hashlib.sha256()
    patterns = [pattern for name in REMOTE_CODE for pattern in (f"{name}.py", f"{name}/*.py")]
    files = sorted(path for pattern in patterns for path in root.glob(pattern))
    for path in files:
        found.update(path.relative_to(root).as_posix().encode())
        found.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return found.hexdigest()[:12] if files else ""


STAMP: dict[str, str] = {
    "dkl": _version("dkl"),
    "source": _source(),
    "python": platform.python_version(),
    **{name: _version(name) for name in PACKAGES},
}
