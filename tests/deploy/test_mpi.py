"""A cluster that mpirun starts (dask-mpi), with TLS: a fit through it has the bits of one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dkl
from tests.cli.conftest import environment
from tests.cli.in_process import done
from tests.deploy.slurm import wait_for

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(240)]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("tls", [False, True])
def test_fit_on_ranks(tmp_path, tls):
    """Rank 0 is the scheduler, ranks 1 and 2 are workers; they end with mpirun."""
    if not (BIN / "mpirun").exists():
        pytest.skip("mpirun is missing; pip install --constraint deploy/constraints-dev.txt -e '.[dev]'")
    X = np.random.default_rng(0).normal(size=(3000, 4))
    np.savetxt(tmp_path / "a.csv", np.c_[X, X[:, 0] ** 2], delimiter=",", header="a,b,c,d,y", comments="")
    done(tmp_path, "ingest", "a.csv", "rows.zarr", "--target", "y")
    done(tmp_path, "fit", "rows.zarr", "here.zarr", "--n-components", "40", "--cv", "3")
    done(tmp_path, "certificates", "tls")
    more = {"DASK_CONFIG": str(tmp_path / "tls" / "dask.yaml")} if tls else {}
    env = environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)
    words = [BIN / "mpirun", "-n", "3", "--oversubscribe", BIN / "dask-mpi", "--scheduler-file", "cluster.json",
             "--nthreads", "1", "--memory-limit", "1GiB", "--no-dashboard",
             *(["--protocol", "tls"] if tls else [])]  # fmt: skip
    with (tmp_path / "log").open("wb") as out:
        ranks = subprocess.Popen(words, cwd=tmp_path, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        file = tmp_path / "cluster.json"
        wait_for(lambda: file.exists() and file.stat().st_size, "a scheduler", 60)
        fit = ["fit", "rows.zarr", "there.zarr", "--n-components", "40", "--cv", "3", "--scheduler", "cluster.json"]
        ran = subprocess.run([sys.executable, "-m", "dkl", *fit], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr + (tmp_path / "log").read_text()[-3000:]
        assert ('"tls://' in file.read_text()) == tls
        ranks.terminate()
        ranks.wait(30)
    finally:
        os.killpg(ranks.pid, signal.SIGKILL) if ranks.poll() is None else None
    one, other = (dkl.load(tmp_path / name).coef_ for name in ("here.zarr", "there.zarr"))
    assert np.array_equal(one, other)
