"""The image, built and run for real: a fit inside it, without root, without a writable root, without network."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import dkl
from tests.deploy.images import NAME, Images
from tests.deploy.pods import machine

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(1800)]

FIT = """
set -e
dkl ingest sklearn:digits rows.zarr --scale minmax --split test=0.2
dkl fit rows.zarr model.zarr --n-components 200 --alpha 0.1 --random-state 0 --dtype float64 %s
dkl evaluate model.zarr rows.zarr
"""
WEIGHTS = "import dkl, hashlib; print('weights', hashlib.sha256(dkl.load('model.zarr').coef_.tobytes()).hexdigest())"


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """The image, built once."""
    made = Images(tmp_path_factory.mktemp("images"))
    made.build()
    return made


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """The weights of the same fit on this machine."""
    program = (FIT % "").replace("dkl ", f"{sys.executable} -m dkl ") + f'{sys.executable} -c "{WEIGHTS}"'
    cwd = tmp_path_factory.mktemp("outside")
    said = subprocess.run(["sh", "-c", program], cwd=cwd, capture_output=True, text=True, check=True).stdout
    return re.search("weights .*", said)[0]


def test_version(images):
    """The command is there, and is this version."""
    assert images.run("dkl", "--version").strip() == f"dkl {dkl.__version__}"


@pytest.mark.parametrize("where", ["", "--workers 2"])
def test_fit_inside(images, outside, where):
    """Rows, a fit, scores: alone and on a cluster in the container; the same weights as out here, bit for bit."""
    same = tuple(word for name, value in machine().items() for word in ("--env", f"{name}={value}"))
    said = images.run("sh", "-c", FIT % where + f'python -c "{WEIGHTS}"', options=same)
    accuracy = float(re.search(r"accuracy\D*([\d.]+)", said)[1])
    assert accuracy > (90 if accuracy > 1 else 0.9)
    assert re.search("weights .*", said)[0] == outside


def test_is_locked_down(images):
    """Not root, nothing to write to but /tmp, no tool that installs."""
    said = images.run("sh", "-c", "id -u; command -v pip || echo no pip; touch /opt/dkl/x", fails=True)
    assert said.splitlines()[:2] == ["1000", "no pip"]
    assert "Read-only file system" in said


def test_scheduler_is_healthy(images):
    """The health check of the image: it fails before the scheduler is there, and holds once it is."""
    script = """
    python -m dkl.engine.alive && echo before
    dask scheduler --dashboard-address 127.0.0.1:8787 --preload dkl.engine.preload >log 2>&1 &
    for i in $(seq 60); do python -m dkl.engine.alive 2>/dev/null && echo healthy && break; sleep 0.5; done
    grep -o 'dkl [0-9.]*, source' log
    """
    said = images.run("sh", "-c", script, options=("--env", "DKL_HEALTH_PORT=8787")).split("\n")
    assert "before" not in said
    assert "healthy" in said
    assert f"dkl {dkl.__version__}, source" in said


def test_memory_limit_holds(images):
    """A container with a limit tells dkl so: the plan's limit is that of the container."""
    said = images.run(
        "python", "-c", "from dkl.engine.memory import memory_limit; print(memory_limit())", options=("-m", "512m")
    )
    assert int(said) == 512 * 2**20


def test_labels_and_command(images):
    """What a registry shows, and what is checked: from the configuration of the image."""
    config = json.loads(images.buildah("inspect", "--type", "image", NAME))["Docker"]["config"]
    assert config["User"] == "1000:1000"
    assert config["Labels"]["org.opencontainers.image.version"] == dkl.__version__
    assert config["Labels"]["org.opencontainers.image.licenses"] == "BSD-3-Clause"
    assert config["Healthcheck"]["Test"][:3] == ["CMD", "python", "-m"]
    assert not config.get("Entrypoint")
