"""System packages of tests marked `deploy`: installed if this may be done, else the test is skipped and says why."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import pytest

PLACES = ":/usr/sbin:/sbin"


def require(**packages: str) -> None:
    """require(buildah="buildah", slurmd="slurmd"): every command is there, from the Debian package named."""
    missing = {command: package for command, package in packages.items() if not find(command)}
    if not missing:
        return
    wanted = " ".join(sorted(set(missing.values())))
    said = _install(wanted)
    still = [command for command in missing if not find(command)]
    if still:
        pytest.skip(f"{', '.join(still)} missing, and {said}; install it: apt-get install {wanted}")


def find(command: str) -> str | None:
    """Where a program lies, also among those of the administrator."""
    return shutil.which(command.replace("_", "-"), path=os.environ["PATH"] + PLACES)


@lru_cache
def _install(packages: str) -> str:
    """Why the packages could not be installed; one process at a time tries."""
    if os.geteuid() != 0:
        return "only root may install it"
    if not shutil.which("apt-get"):
        return "there is no apt-get"
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages.split()]
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with (Path(tempfile.gettempdir()) / "dkl-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=600)
        if done.returncode:  # a list of packages that is too old, or none
            subprocess.run(["apt-get", "update", "--quiet"], env=quiet, capture_output=True, timeout=300)
            done = subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=600)
    return f"apt-get failed: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]}"
