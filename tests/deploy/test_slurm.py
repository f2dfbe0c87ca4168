"""`dkl cluster slurm` on a real Slurm: a fit in one allocation and in elastic jobs, disturbed, has the same bits."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import zarr

from tests.cli.in_process import dkl_in, done
from tests.deploy.slurm import job, jobs_named, slurm, told, wait_for
from tests.deploy.system import require

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(400)]

CONFIG = """n_components = 150
learn = "cv"
groups = "each"
starts = 1
max_iter = 16
tol = 1e-12
"""
"""Long enough to be disturbed: passes with a checkpoint after every iteration."""
SIZE = ("--workers", "2", "--cpus", "1", "--memory", "1GiB", "--config", "fit.toml")
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A running Slurm."""
    require(slurmctld="slurmctld", slurmd="slurmd", sbatch="slurm-client", munged="munge")
    with slurm(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, a configuration, certificates, and the model that one process fits."""
    found = tmp_path_factory.mktemp("shared disk")
    X = np.random.default_rng(0).normal(size=(24_000, 6))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    np.savetxt(found / "a.csv", np.c_[X, y], delimiter=",", header="a,b,c,d,e,f,y", comments="", fmt="%.7g")
    (found / "fit.toml").write_text(CONFIG)
    done(found, "ingest", "a.csv", "rows.zarr", "--target", "y")
    done(found, "certificates", "tls")
    assert dkl_in(found, "fit", "rows.zarr", "here.zarr", "--config", "fit.toml").code == 0
    return found


def submit(system: dict[str, str], folder: Path, model: str, *more: str) -> str:
    """Submit the printed script; the number of the job."""
    (folder / f"{model}.sh").write_text(written(folder, model, *more))
    return told(system, "sbatch", "--parsable", f"--chdir={folder}", str(folder / f"{model}.sh")).strip()


def written(folder: Path, model: str, *more: str) -> str:
    """The script of a fit."""
    said = dkl_in(folder, "cluster", "slurm", "--for", "rows.zarr", "--fit", model, *SIZE, *more)
    assert said.code == 0, said
    return said.out


def in_the_middle(folder: Path, model: str) -> None:
    """A few iterations are done, and the fit is not."""
    steps = folder / f"{model}.fit"
    wait_for(lambda: len(list(steps.rglob("*.json"))) > 0, "a checkpoint", 120)
    first = max(path.stat().st_mtime for path in steps.rglob("*"))
    wait_for(lambda: max((p.stat().st_mtime for p in steps.rglob("*")), default=0) > first, "a newer checkpoint", 60)
    assert not (folder / model).exists()


def end_of(
    system: dict[str, str], number: str, folder: Path, states: tuple[str, ...] = ("COMPLETED",)
) -> dict[str, str]:
    """The record of a job that has ended as it should."""
    wait_for(lambda: job(system, number)["JobState"] in ENDED, f"the end of {number}", 240)
    found = job(system, number)
    logs = "\n".join(path.read_text(errors="replace")[-1500:] for path in folder.glob(f"*{number}*.log"))
    assert found["JobState"] in states, f"{found['JobState']}: {logs}"
    return found


def assert_same_bits(folder: Path, model: str) -> None:
    """Every array of the model but the seconds of its history."""
    found, expected = (zarr.open_group(folder / name, mode="r") for name in (model, "here.zarr"))
    names = set(expected.array_keys())
    assert set(found.array_keys()) == names
    assert {"history_seconds", "history_objective", "coef", "sigma"} <= names
    different = [name for name in names if found[name][...].tobytes() != expected[name][...].tobytes()]
    assert different in ([], ["history_seconds"])


def test_one_allocation_with_tls(system, folder):
    """One of its two workers dies in the middle: the other goes on, to the bits of one process."""
    number = submit(system, folder, "one.zarr", "--tls", "tls")
    in_the_middle(folder, "one.zarr")
    words = {"dask", "worker", f"{folder}/dkl-{number}/scheduler.json"}
    ours = [one for one in psutil.process_iter(["cmdline"]) if words < set(one.info["cmdline"] or ())]
    ours = [one for one in ours if "srun" not in one.name()]
    assert len(ours) == 2
    for process in (ours[0], *ours[0].children(recursive=True)):
        process.kill()
    end_of(system, number, folder)
    assert_same_bits(folder, "one.zarr")
    assert "srun: error" in (folder / f"dkl-{number}.log").read_text()
    assert "Scheduler at: tls://" in " ".join((folder / f"dkl-{number}" / "scheduler.log").read_text().split())


def test_requeued_in_the_middle(system, folder):
    """The signal of the time limit: the fit leaves its checkpoint, the job is queued again and goes on."""
    number = submit(system, folder, "again.zarr")
    in_the_middle(folder, "again.zarr")
    told(system, "scancel", "--signal=USR1", "--batch", number, check=False)
    wait_for(lambda: job(system, number)["Restarts"] == "1", "a restart", 60)
    wait_for(lambda: job(system, number)["JobState"] == "PENDING", "the queue", 60)
    told(system, "scontrol", "update", f"JobId={number}", "StartTime=now")  # else Slurm waits two minutes
    end_of(system, number, folder)
    assert_same_bits(folder, "again.zarr")
    log = (folder / f"dkl-{number}.log").read_text()
    assert "continues from here" in log


def test_array_goes_on(system, folder):
    """The first element is stopped in the middle, the second goes on, the third finds a model."""
    number = submit(system, folder, "array.zarr", "--array", "3")
    in_the_middle(folder, "array.zarr")
    element = told(system, "squeue", "-h", "-o", "%A", f"--job={number}", "--states=RUNNING").strip()
    told(system, "scancel", "--signal=USR1", "--batch", element, check=False)  # it complains of processes that end
    ends = [end_of(system, f"{number}_{element}", folder, ("COMPLETED", "FAILED")) for element in (1, 2, 3)]
    assert [(end["JobState"], end["ExitCode"]) for end in ends] == [("FAILED", "143:0")] + [("COMPLETED", "0:0")] * 2
    assert [end["Restarts"] for end in ends] == ["0"] * 3
    assert_same_bits(folder, "array.zarr")


def test_elastic_jobs_with_tls(system, folder, tmp_path):
    """Workers wait in the queue; later the job of one is cancelled: another takes its place, and no bit changes."""
    shared = tmp_path / "disk"  # dask-jobqueue quotes no path
    shutil.copytree(folder / "rows.zarr", shared / "rows.zarr")
    shutil.copytree(folder / "here.zarr", shared / "here.zarr")
    shutil.copy(folder / "fit.toml", shared)
    done(shared, "certificates", "safe")
    told(system, "sbatch", "--cpus-per-task=7", "--mem=1M", "--output=/dev/null", "--wrap=sleep 60")  # one core is left
    number = submit(system, shared, "elastic.zarr", "--elastic", "--tls", "safe")
    wait_for(lambda: jobs_named(system, "dkl-worker", "PENDING"), "a worker in the queue", 60)
    wait_for(lambda: len(jobs_named(system, "dkl-worker", "RUNNING")) == 2, "two workers", 180)
    first = set(jobs_named(system, "dkl-worker", "RUNNING"))
    in_the_middle(shared, "elastic.zarr")
    told(system, "scancel", min(first))
    wait_for(lambda: set(jobs_named(system, "dkl-worker", "RUNNING,PENDING")) - first, "a new job", 60)
    end_of(system, number, shared)
    assert_same_bits(shared, "elastic.zarr")
    wait_for(lambda: not jobs_named(system, "dkl-worker", "RUNNING,PENDING"), "no job that is left over", 60)


def test_workers_serve_their_lifetime(system, folder, tmp_path):
    """Jobs of a minute end before Slurm ends them, and others come; scancel of the cluster ends them all."""
    shared = tmp_path / "disk"
    shared.mkdir()
    words = ("cluster", "slurm", "--elastic", "--workers", "2", "--cpus", "1", "--memory", "1GiB", "--name", "brief")
    (shared / "open.sh").write_text(done(shared, *words, "--worker-time", "0:01:00"))
    number = told(system, "sbatch", "--parsable", f"--chdir={shared}", str(shared / "open.sh")).strip()
    seen: set[str] = set()

    def count() -> int:
        seen.update(jobs_named(system, "brief-worker", "RUNNING"))
        return len(seen)

    wait_for(lambda: count() >= 4, "two jobs that are replaced", 240)
    logs = "\n".join(path.read_text(errors="replace") for path in (shared / f"brief-{number}").glob("*.err"))
    assert "lifetime" in logs
    assert "DUE TO TIME LIMIT" not in logs
    told(system, "scancel", number)
    wait_for(lambda: not jobs_named(system, "brief-worker", "RUNNING,PENDING"), "no job that is left over", 60)
