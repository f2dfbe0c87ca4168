"""dkl cluster: scripts that shells accept, run with stand-ins for Python and batch systems; hostile values; sizes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

import dkl
from dkl.cli.cluster_size import propose
from dkl.cli.elastic import elastic_cluster
from tests.cli.conftest import environment, wait_until
from tests.cli.in_process import dkl_in, done

GIB = 2**30
SIZE = ("--workers", "2", "--cpus", "3", "--memory", "2GiB")
WAYS = {
    "slurm": ("slurm",), "array": ("slurm", "--array", "3"), "elastic": ("slurm", "--elastic"), "pbs": ("pbs",),
    "local": ("local",),
}  # fmt: skip
HOSTILE = "a 'b' $(touch hit) `touch hit` \"c\"; touch hit & @queue@ #"
PYTHON = """#!/bin/bash
# Stands in for Python: notes its words, writes the scheduler file, and fits as it is told.
printf '%s\\0' "$@" > "$HERE/$3.words"
env > "$HERE/$3.env"
case "$3" in
  scheduler) while [ "$1" != --scheduler-file ]; do shift; done; echo '{}' > "$2"; sleep 30 & wait ;;
  worker) sleep 30 & wait ;;
  fit) trap 'echo stopped >> "$HERE/fits"; exit 143' TERM
       echo began >> "$HERE/fits"
       for _ in $(seq 100); do [ -e "$HERE/code" ] && exit "$(cat "$HERE/code")"; sleep 0.05; done ;;
esac
"""
SRUN = '#!/bin/bash\nprintf "%s\\n" "$*" >> "$HERE/srun"\nwhile [[ $1 == --* ]]; do shift; done\nexec "$@"\n'
PBSDSH = '#!/bin/bash\necho "$2" >> "$HERE/pbsdsh"\nshift 3\nexec /usr/bin/env -i HERE="$HERE" PATH="$PATH" "$@"\n'
SCONTROL = '#!/bin/bash\necho "$*" >> "$HERE/scontrol"\n'


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows in a data set of a hostile name, and a configuration."""
    folder = tmp_path_factory.mktemp("rows")
    X = np.random.default_rng(0).normal(size=(300, 3))
    np.savetxt(folder / "a.csv", np.c_[X, X[:, 0]], delimiter=",", header="a,b,c,y", comments="")
    done(folder, "ingest", "a.csv", "d.zarr", "--target", "y")
    shutil.copytree(folder / "d.zarr", folder / HOSTILE)
    (folder / "fit.toml").write_text("n_components = 20\n")
    return folder


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs in place of Python, srun, pbsdsh and scontrol."""
    folder = tmp_path_factory.mktemp("bin")
    for name, text in (("python", PYTHON), ("srun", SRUN), ("pbsdsh", PBSDSH), ("scontrol", SCONTROL)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def script(folder: Path, *words: object) -> str:
    """What is printed."""
    said = dkl_in(folder, "cluster", *words)
    assert said.code == 0, said
    return said.out


@pytest.mark.parametrize(
    ("way", "fits"), [*((way, True) for way in WAYS), *((way, False) for way in WAYS if way != "array")]
)
def test_shells_accept_it(rows, way, fits):
    """bash -n, and shellcheck if it is there; with every option, and with none."""
    more = ("--for", "d.zarr", "--fit", "m.zarr", "--config", "fit.toml") if fits else ()
    if fits and way != "local":
        more += ("--queue", "long", "--account", "p1", "--interface", "ib0", "--time", "1-00:00:00")
    text = script(rows, *WAYS[way], *SIZE, *more)
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    found = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found:
        subprocess.run([found, "-"], input=text, text=True, check=True)
    assert "@" not in text.replace("USR1@120", "").replace("[@]", "").replace("_@}", "")
    assert ("ib0" in text) == (fits and way != "local")


def start(folder: Path, stand_ins: Path, text: str, **more: str) -> subprocess.Popen:
    """Run a script with the stand-ins."""
    (folder / "job.sh").write_text(text)
    env = environment(
        HERE=str(folder), PATH=f"{stand_ins}:{os.environ['PATH']}", SLURM_JOB_ID="7", PBS_JOBID="7.server", **more
    )
    out = (folder / "out").open("wb")
    return subprocess.Popen(["bash", "job.sh"], cwd=folder, env=env, stdout=out, stderr=out, start_new_session=True)


def words_of(folder: Path, what: str) -> list[str]:
    """The words with which something was started."""
    return (folder / f"{what}.words").read_text().split("\0")[:-1]


@pytest.mark.parametrize("way", ["slurm", "pbs", "local"])
def test_hostile_names_arrive_as_they_are(rows, tmp_path, stand_ins, way):
    """Quotes, spaces, commands and template names in paths: every word reaches the programs, and nothing else runs."""
    folder = tmp_path / HOSTILE.replace("/", "")
    folder.mkdir()
    shutil.copy(stand_ins / "python", folder / "python")
    (folder / "code").write_text("0")
    text = script(
        rows, way, *SIZE, "--for", HOSTILE, "--fit", f"{HOSTILE}.model", "--folder", folder,
        "--python", folder / "python",
    )  # fmt: skip
    process = start(folder, stand_ins, text)
    assert process.wait(20) == 0, (folder / "out").read_text()
    run = folder / {"slurm": "dkl-7", "pbs": "dkl-7.server", "local": "dkl"}[way]
    file = str(run / "scheduler.json")
    fit = ["-m", "dkl", "fit", str(rows / HOSTILE), str(rows / f"{HOSTILE}.model")]
    assert words_of(folder, "fit") == [*fit, "--resume", "auto", "--scheduler", file]
    scheduler, worker = words_of(folder, "scheduler"), words_of(folder, "worker")
    assert "127.0.0.1:0" in scheduler
    assert scheduler[scheduler.index("--scheduler-file") + 1] == file
    for flag, value in (("--scheduler-file", file), ("--nthreads", "3"), ("--memory-limit", "1740MiB")):
        assert worker[worker.index(flag) + 1] == value
    assert "DASK_DKL__NO_WORKERS_TIMEOUT=600" in (folder / "fit.env").read_text().splitlines()
    assert "OMP_NUM_THREADS=1" in (folder / "worker.env").read_text().splitlines()
    assert list(tmp_path.rglob("hit")) + list(rows.rglob("hit")) == []
    if way == "pbs":
        assert sorted((folder / "pbsdsh").read_text().split()) == ["1", "2"]


@pytest.mark.parametrize(("end", "more", "requeued", "code"), [
    ("USR1", {}, True, 143),
    ("USR1", {"SLURM_ARRAY_JOB_ID": "7"}, False, 143),
    ("TERM", {}, False, 143),
    ("4", {"SLURM_RESTART_COUNT": "1"}, True, 4),
    ("4", {"SLURM_RESTART_COUNT": "3"}, False, 4),
    ("1", {}, False, 1),
])  # fmt: skip
def test_how_a_slurm_job_ends(rows, tmp_path, stand_ins, end, more, requeued, code):
    """Time is up or the scheduler lost: queued again, and not for ever. An order to stop, or a failure: ended."""
    text = script(rows, "slurm", *SIZE, "--for", "d.zarr", "--fit", "m.zarr", "--folder", tmp_path,
                  "--python", stand_ins / "python")  # fmt: skip
    process = start(tmp_path, stand_ins, text, **more)
    try:
        wait_until(lambda: (tmp_path / "fits").exists(), "a fit", 20)
        if end.isdigit():
            (tmp_path / "code").write_text(end)
        else:
            process.send_signal(signal.Signals[f"SIG{end}"])
        assert process.wait(20) == code, (tmp_path / "out").read_text()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    stopped = ["stopped"] if not end.isdigit() else []
    assert (tmp_path / "fits").read_text().split() == ["began", *stopped]
    assert (tmp_path / "scontrol").exists() == requeued
    assert not requeued or (tmp_path / "scontrol").read_text() == "requeue 7\n"


@pytest.mark.parametrize("way", ["slurm", "pbs", "local"])
def test_scheduler_that_does_not_start(rows, tmp_path, way):
    """The job ends at once with exit code 4, and names the log."""
    text = script(rows, way, *SIZE, "--folder", tmp_path, "--python", "/bin/false")
    (tmp_path / "srun").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "srun").chmod(0o755)
    process = start(tmp_path, tmp_path, text)
    assert process.wait(20) == 4
    assert "scheduler.log" in (tmp_path / "out").read_text()


def test_elastic_without_dask_jobqueue(tmp_path, monkeypatch):
    """It says what to install."""
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(SystemExit, match=r"pip install 'dkl\[slurm\]'"), elastic_cluster({}, str(tmp_path)):
        pass


def test_slurm_asks_for_what_was_asked(rows):
    """The scheduler counts as a task; the solve of a large model needs more than a worker."""
    text = script(rows, "slurm", *SIZE, "--scheduler-memory", "6GiB", "--queue", "long", "--name", "my-fit")
    asked = dict(line[10:].split("=", 1) for line in text.splitlines() if line.startswith("#SBATCH --") and "=" in line)
    assert (asked["ntasks"], asked["cpus-per-task"], asked["mem-per-cpu"]) == ("3", "3", "2048M")
    assert (asked["time"], asked["partition"], asked["job-name"]) == ("4:00:00", "long", "my-fit")
    assert "account" not in asked
    assert "array" not in asked
    elastic = script(rows, "slurm", "--elastic", *SIZE, "--scheduler-memory", "6GiB", "--worker-time", "1:00:00",
                     "--time", "3:00:00", "--for", "d.zarr", "--fit", "m.zarr")  # fmt: skip
    assert "NO_WORKERS_TIMEOUT=10800 " in elastic  # the queue may be long
    assert "#SBATCH --mem=6144M" in elastic
    settings = json.loads(next(line for line in elastic.splitlines() if "dkl.cli.elastic" in line).split("'")[1])
    assert (settings["workers"], settings["job_memory"], settings["memory"]) == (2, "2048M", 1740 * 2**20)
    assert (settings["lifetime"], settings["stagger"]) == (3300, 240)  # 55 and 4 minutes


REFUSED = {
    "newline": (("slurm", *SIZE, "--queue", "a\n#SBATCH --uid=0"), "--queue"),
    "space": (("slurm", *SIZE, "--account", "a b"), "'a b'"),
    "interface": (("slurm", *SIZE, "--interface", "$(id)"), "$(id)"),
    "name": (("local", *SIZE, "--name", "../x"), "'../x'"),
    "name-long": (("local", *SIZE, "--name", "x" * 41), "xxx"),
    "folder": (("slurm", *SIZE, "--folder", "a\nb"), "printable"),
    "python": (("slurm", *SIZE, "--python", ""), "python"),
    "time": (("slurm", *SIZE, "--time", "90"), "hours:minutes:seconds"),
    "short time": (("slurm", *SIZE, "--time", "0:04:59"), "0:04:59"),
    "memory": (("slurm", *SIZE[:-1], "16"), "16GiB"),
    "little": (("slurm", *SIZE[:-1], "1MiB"), "512MiB"),
    "no memory": (("slurm", "--workers", "2"), "--memory is missing"),
    "no workers": (("slurm", "--memory", "2GiB"), "--workers is missing"),
    "no rows": (("slurm", *SIZE, "--fit", "m.zarr"), "--for"),
    "local array": (("local", *SIZE, "--array", "3"), "--array 3 belongs to slurm"),
    "local time": (("local", *SIZE, "--time", "1:00:00"), "slurm and pbs"),
    "open array": (("slurm", *SIZE, "--array", "3"), "--fit"),
    "worker time": (("slurm", *SIZE, "--worker-time", "1:00:00"), "--elastic"),
    "short": (("slurm", "--elastic", *SIZE, "--worker-time", "0:00:30"), "minute"),
    "elastic folder": (("slurm", "--elastic", *SIZE, "--folder", "a b"), "'a b'"),
    "tls": (("slurm", *SIZE, "--tls", "none"), "dkl certificates none"),
    "platform": (("nomad", *SIZE), "slurm"),
    "both": (("slurm", *SIZE, "--print", "--apply"), "one of them"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(tmp_path, case):
    """One line that shows the value; no script."""
    words, says = REFUSED[case]
    said = dkl_in(tmp_path, "cluster", *words)
    assert said.code == 2, said
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert says in said.err


def test_apply_without_a_batch_system(tmp_path, monkeypatch):
    """It says what to type where there is one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for platform, command in (("slurm", "sbatch"), ("pbs", "qsub")):
        said = dkl_in(tmp_path, "cluster", platform, *SIZE, "--apply")
        assert said.code == 1
        assert said.err.count("\n") == 1
        assert f"{command} job.sh" in said.err


def test_apply_submits_the_printed_script(tmp_path, monkeypatch):
    """To the input of sbatch, whose answer is shown; a refusal is one line."""
    (tmp_path / "sbatch").write_text('#!/bin/bash\ncat > given; echo Submitted 12; exit "$(cat code)"\n')
    (tmp_path / "sbatch").chmod(0o755)
    (tmp_path / "code").write_text("0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert done(tmp_path, "cluster", "slurm", *SIZE, "--apply") == "Submitted 12\n"
    assert (tmp_path / "given").read_text() == script(tmp_path, "slurm", *SIZE)
    (tmp_path / "code").write_text("1")
    said = dkl_in(tmp_path, "cluster", "slurm", *SIZE, "--apply")
    assert (said.code, said.err) == (1, "dkl: sbatch refused it: Submitted 12\n")


def plan_like(**more: object) -> SimpleNamespace:
    """What a proposal reads of a plan: 64 blocks, an hour and 40 minutes of passes."""
    sizes = SimpleNamespace(rows=6400, block_of=lambda wanted: 100)
    given = {
        "sizes": sizes, "cost": SimpleNamespace(rows_wanted=100), "block": 100, "worker_bytes": 6 * GIB,
        "solve_bytes": 3 * GIB, "solve_seconds": 100.0, "total_seconds": 6100.0, "iteration_seconds": None,
    }  # fmt: skip
    return SimpleNamespace(**{**given, **more})


def test_sizes_follow_the_plan():
    """Ten minutes of passes, no idle worker, and memory above the share at which dask pauses."""
    size = propose(plan_like(), 4)
    assert size.workers == 10  # 6000 s in 600 s; 64 blocks would keep 16 of 4 cores busy
    assert size.memory == 9 * GIB  # 6 / 0.8 / 0.85 = 8.8
    assert size.scheduler_memory == 4 * GIB  # 3 / 0.8 = 3.75
    assert "64 blocks of 100 rows" in size.why
    few = propose(plan_like(), 16)
    assert few.workers == 4
    assert "more than 4 would be idle" in few.why
    assert "1 worker of 1 core and" in script(Path.cwd(), "local", "--workers", 1, "--cpus", 1, "--memory", "1GiB")
    assert propose(plan_like(iteration_seconds=60.0), 4).workers == 13  # 1800 s more
    assert propose(plan_like(), 4, 3).workers == 3
    assert propose(plan_like(total_seconds=None, solve_seconds=None), 4).workers == 1


def test_size_of_a_real_fit(rows):
    """A small fit needs one worker of a GiB or two; the reason is said, and written into the script."""
    said = dkl_in(rows, "cluster", "slurm", "--for", "d.zarr", "--config", "fit.toml")
    assert said.code == 0
    assert "1 block of" in said.err
    assert "#SBATCH --ntasks=2" in said.out
    assert said.err.removeprefix("dkl: ").strip() in said.out
    planned = json.loads(done(rows, "plan", "d.zarr", "--config", "fit.toml", "--threads", "4", "--json"))
    asked = next(line for line in said.out.splitlines() if "mem-per-cpu" in line).split("=")[1].rstrip("M")
    assert 0.8 * 0.85 * 4 * int(asked) * 2**20 >= 0.9 * planned["worker_bytes"]


def test_too_little_memory_for_the_plan(rows):
    """Refused with what is enough, as dkl plan does: exit code 3."""
    (rows / "wide.toml").write_text('n_components = 9000\nsolver = "direct"\n')
    said = dkl_in(rows, "cluster", "slurm", "--for", "d.zarr", "--config", "fit.toml", "--memory", "512MiB")
    assert said.code == 3, said
    assert said.err.count("\n") == 1
    assert "--memory 512MiB" in said.err


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_local_cluster_fits(rows, tmp_path):
    """dkl cluster local --apply: processes that fit with the bits of one process, and end."""
    done(rows, "fit", "d.zarr", tmp_path / "here.zarr", "--config", "fit.toml")
    words = ["cluster", "local", "--workers", "1", "--memory", "1GiB", "--for", "d.zarr", "--config", "fit.toml",
             "--fit", str(tmp_path / "there.zarr"), "--folder", str(tmp_path), "--apply"]  # fmt: skip
    begun = time.monotonic()
    ran = subprocess.run([sys.executable, "-m", "dkl", *words], cwd=rows, env=environment(), capture_output=True,
                         text=True, timeout=100)  # fmt: skip
    assert ran.returncode == 0, f"{time.monotonic() - begun} s {ran}"
    one, other = (dkl.load(tmp_path / name).coef_ for name in ("here.zarr", "there.zarr"))
    assert np.array_equal(one, other)
    left = [process for process in psutil.process_iter(["cmdline"]) if str(tmp_path) in str(process.info["cmdline"])]
    assert left == []
