"""The image of deploy/Containerfile, built on this machine: buildah in a chroot, on a base that debootstrap makes.

Set DKL_BASE_IMAGE to build on an image that is there instead.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.render import ROOT
from tests.deploy.system import find, require

NAME = "dkl-test"
EXTRAS = os.environ.get("DKL_IMAGE_EXTRAS", "s3,parquet,plot,tls,metrics")


def call(*words: object, seconds: float = 900, fails: bool = False) -> str:
    """Run a program; its output. A failure shows the end of what it said."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=seconds)
    if done.returncode and not fails:
        raise AssertionError(f"{words[0]} {words[1]}: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout + (done.stderr if fails else "")


class Images:
    """A store of images in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        require(buildah="buildah", podman="podman", runc="runc", debootstrap="debootstrap")
        if os.geteuid() != 0:
            pytest.skip("buildah --isolation chroot and debootstrap need root here; run make test-deploy as root")
        self.folder = folder
        self.store = ("--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "vfs")

    def buildah(self, verb: str, *words: object) -> str:
        """buildah on this store."""
        return call(find("buildah"), *self.store, verb, *words)

    def base(self) -> str:
        """An image with Python alone: that of the environment, or Debian's smallest system."""
        if "DKL_BASE_IMAGE" in os.environ:
            return os.environ["DKL_BASE_IMAGE"]
        system = self.folder / "system"
        packages = "--include=python3,python3-venv,ca-certificates"
        call(find("debootstrap"), "--variant=minbase", packages, release(), system, mirror())
        made = self.buildah("from", "scratch").strip()
        self.buildah("add", "--quiet", made, system, "/")
        self.buildah("config", "--env", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", made)
        self.buildah("commit", "--quiet", made, f"{NAME}-base")
        self.buildah("rm", made)
        return f"localhost/{NAME}-base"

    def wheels(self) -> Path:
        """What pip needs inside, where there is no index: downloaded by this environment, and for its Python."""
        folder = self.folder / "wheels"
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder)
        call(*pip, "--constraint", ROOT / "deploy" / "constraints-dev.txt", f"{ROOT}[{EXTRAS}]", "hatchling")
        for own in folder.glob("dkl-*"):  # the image makes its own
            own.unlink()
        return folder

    def build(self) -> None:
        """The image, from the files of this checkout."""
        options = {
            "BASE": self.base(), "EXTRAS": EXTRAS, "REVISION": "test",
            "PIP_OPTIONS": "--no-index --find-links /wheels",
        }  # fmt: skip
        arguments = [word for name, value in options.items() for word in ("--build-arg", f"{name}={value}")]
        self.buildah(
            "bud", "--isolation", "chroot", "--format", "docker", "--volume", f"{self.wheels()}:/wheels:ro",
            *arguments, "--tag", NAME, "--file", ROOT / "deploy" / "Containerfile", ROOT,
        )  # fmt: skip

    def run(self, *words: object, options: tuple[object, ...] = (), fails: bool = False) -> str:
        """A command in a container as Kubernetes would start it: not root, read-only, no capabilities, no network."""
        return call(
            find("podman"), *self.store, "--cgroup-manager", "cgroupfs", "--runtime", find("runc"), "run", "--rm",
            "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--read-only", "--read-only-tmpfs=false",
            "--tmpfs", "/tmp:rw,mode=1777", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
            "--network", "none", "--no-healthcheck", *options, f"localhost/{NAME}", *words, fails=fails,
        )  # fmt: skip


def release() -> str:
    """The release of Debian whose Python is this one (pip downloads for this Python)."""
    names = {(3, 11): "bookworm", (3, 13): "trixie"}
    if sys.version_info[:2] not in names:
        pytest.skip(f"no Debian has Python {sys.version_info[0]}.{sys.version_info[1]}; set DKL_BASE_IMAGE")
    return names[sys.version_info[:2]]


def mirror() -> str:
    """Where this machine's apt gets its packages."""
    texts = [path.read_text() for path in Path("/etc/apt").rglob("*") if path.suffix in (".list", ".sources")]
    found = re.search(r"^(?:URIs:|deb(?: \[.*?\])?)\s+(\S+)", "\n".join(texts), re.MULTILINE)
    return found[1] if found else pytest.skip("apt has no source here; set DKL_BASE_IMAGE")
