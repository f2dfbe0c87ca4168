"""What is installed here, as plain text: asked of every process of a cluster by the name `dkl.engine.stamp:STAMP`.

`source` is a digest of the files whose functions run on other machines: a version number alone does not tell two
checkouts of the same version apart.
"""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numpy", "dask", "distributed", "zarr")
REMOTE_CODE = ("kernels", "features", "sums", "solvers", "engine", "learn", "store", "sources")
"""Folders whose functions run on workers and on the scheduler."""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _source() -> str:
    """A digest of the files, whatever their line ends; empty if they are not there as files."""
    root, found = Path(__file__).parent.parent, hashlib.sha256()
    files = sorted(path for folder in REMOTE_CODE for path in (root / folder).glob("*.py"))
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
