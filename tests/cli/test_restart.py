"""Fits that are stopped by real signals, finished, given other limits, or started again as a job scheduler does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dkl
from dkl.cli import fit as verb
from dkl.cli.config import merge
from dkl.learn.phases import phases_of
from dkl.store.checkpoint import progress_of
from tests.cli.conftest import assert_refused, finish, kill_session, run, session, start, wait_until, write_csv
from tests.cli.in_process import Said, dkl_in, done
from tests.cli.test_kill_learning import FIT, KEPT, newest

LEARN = ("fit", "d.zarr", "m.zarr", "--learn", "validation", "--groups", "each", "--starts", "2", "--max-iter", "3")
SMALL = ("--n-components", "20", "--tol", "1e-9")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set."""
    folder = tmp_path_factory.mktemp("again")
    write_csv(folder / "a.csv.gz", 1200, 4, 2)
    done(folder, "ingest", "a.csv.gz", "d.zarr", "--scale", "standard")
    return folder


@pytest.fixture
def cwd(data: Path, tmp_path: Path) -> Path:
    """A folder of its own, with that data set."""
    shutil.copytree(data / "d.zarr", tmp_path / "d.zarr")
    return tmp_path


def stop(cwd: Path, words: tuple[str, ...], number: int, step: int) -> subprocess.Popen:
    """Send a signal to a command once it has done so many steps."""
    process = start(cwd, *words, DKL_TEST_PAUSE="0.002")
    with_step = lambda: newest(cwd) >= step or process.poll() is not None  # noqa: E731
    wait_until(with_step, f"step {step}")
    assert process.poll() is None, (cwd / ".err").read_text()
    process.send_signal(number)
    return process


def same(said: Said, code: int, *words: str) -> None:
    """Its exit code, and words of its one line."""
    assert said.code == code, said
    assert "Traceback" not in said.err
    assert len(said.err.splitlines()) == 1, said
    for word in words:
        assert word in said.err, said


def arrays(path: Path) -> dict[str, bytes]:
    """All arrays of a model but how long it took."""
    import zarr

    group = zarr.open_group(path, mode="r")
    return {name: group[name][...].tobytes() for name in group.array_keys() if name != "history_seconds"}


@pytest.mark.parametrize(("number", "code", "step"), [(signal.SIGINT, 130, 2), (signal.SIGTERM, 143, 4)])
def test_a_signal_while_learning(cwd: Path, number: int, code: int, step: int) -> None:
    """The code of old, the run folder, and both ways on: to the end with the same bits, or with the best so far."""
    process = stop(cwd, FIT, number, step)
    with session(process):
        ran = finish(process, cwd)
    assert_refused(ran, code, "interrupted; dkl resume", "dkl resume --finish", "best sigma so far")
    assert not (cwd / "m.zarr").exists()
    known = progress_of(str(cwd / KEPT))["steps"]
    assert known >= step
    other = shutil.copytree(cwd, cwd.parent / f"{cwd.name}-finish")
    run(other, "resume", "--finish", "m.zarr")
    model = dkl.load(other / "m.zarr")
    rows = model.history_.sizes["iteration"]
    assert rows <= known, "no further iteration"
    given = model.get_params() | {"learn": "none", "sigma": model.sigma_, "alpha": model.alpha_, "verbose": 0}
    plain = dkl.SingleKernelClassifier(**given).fit(str(other / "d.zarr"))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10, atol=1e-10 * np.abs(plain.coef_).max())
    best = -1 if model.history_.stage.max() else int(np.argmin(model.history_.objective.values))
    np.testing.assert_array_equal(model.sigma_, model.history_.sigma.values[best])
    assert not (other / "m.zarr.fit").exists()
    run(cwd, "resume", "m.zarr")
    run(cwd, *FIT[:2], "whole.zarr", *FIT[3:])
    assert arrays(cwd / "m.zarr") == arrays(cwd / "whole.zarr")


def begun(cwd: Path, *more: str) -> dict:
    """A run folder as a kill leaves it before anything was done."""
    flags = dict(zip([word[2:].replace("-", "_") for word in more[::2]], more[1::2], strict=True))
    wanted = verb.request(str(cwd / "d.zarr"), str(cwd / "m.zarr"), None, merge({"n_components": 20} | flags, None))
    verb.begin(wanted, str(cwd / "m.zarr"), overwrite=False)
    return wanted


def test_a_resume_that_fails_early_keeps_the_run(cwd: Path) -> None:
    """Its data cannot be read now: the run folder stays, and a later resume ends it; a fresh fit leaves none."""
    begun(cwd)
    (cwd / "d.zarr").rename(cwd / "away.zarr")
    said = dkl_in(cwd, "resume", "m.zarr")
    same(said, 1, "d.zarr")
    assert (cwd / "m.zarr.fit" / "run.json").exists()
    (cwd / "away.zarr").rename(cwd / "d.zarr")
    done(cwd, "resume", "m.zarr")
    assert dkl.load(cwd / "m.zarr").coef_.shape[1] == 20
    assert not (cwd / "m.zarr.fit").exists()
    same(dkl_in(cwd, "fit", "d.zarr", "n.zarr", "--sigma", "1,2", "--groups", "each"), 1, "sigma")
    assert not (cwd / "n.zarr.fit").exists()


def test_finish_before_anything_was_learned(cwd: Path) -> None:
    """One sentence, and the run stays; nor is there a use for it elsewhere."""
    begun(cwd, "--learn", "validation")
    same(dkl_in(cwd, "resume", "--finish", "m.zarr"), 1, "nothing has been learned yet", "dkl resume")
    assert (cwd / "m.zarr.fit" / "run.json").exists()
    same(dkl_in(cwd, "resume", "--finish", "--tol", "0.1", "m.zarr"), 2, "--finish stops learning", "--tol")
    same(dkl_in(cwd, "resume", "--tol", "-1", "m.zarr"), 1, "tol=-1")
    same(dkl_in(cwd, "resume", "--finish", "d.zarr"), 1, "--finish is for an interrupted fit")


def test_what_is_said_of_an_unfinished_fit(cwd: Path) -> None:
    """Options that somebody chose, and no more; --finish is said to do what it does."""
    wanted = begun(cwd, "--solver", "cg")
    text = done(cwd, "inspect", "m.zarr")
    assert "options  n_components 20" in text
    assert "solver cg" in text
    assert "map  not drawn yet" in text
    assert "max_iter" not in text
    assert "True" not in text
    known = {"steps": 3}
    assert "--finish" not in verb._how_to_go_on(wanted, None)
    assert verb._how_to_go_on(wanted, known).endswith("saves the weights so far")
    wanted["params"]["learn"] = "cv"
    assert verb._how_to_go_on(wanted, known).endswith("solves with the best sigma so far")


def killed_amid(cwd: Path, step: int) -> None:
    """A fit killed after so many steps."""
    process = stop(cwd, (*LEARN, *SMALL), signal.SIGKILL, step)
    process.wait(10)
    kill_session(process)


def test_other_limits(cwd: Path) -> None:
    """dkl resume --max-iter: the model has them, and learned by them."""
    killed_amid(cwd, 2)
    said = dkl_in(cwd, "resume", "m.zarr", "--max-iter", "5", "--max-time", "600", "--tol", "1e-8")
    assert said.code == 0, said
    model = dkl.load(cwd / "m.zarr")
    assert (model.max_iter, model.max_time, model.tol) == (5, 600.0, 1e-8)
    *starts, last = [phase.iterations for phase in phases_of(model.history_)]
    assert starts == [5, 5]
    assert 1 <= last <= 5  # near the rounding of float32 it may converge sooner, on some machines
    words = f"{10 + last} iterations (5 + 5 of 2 starts on 1,200 rows, then {last} on 1,200 rows)"
    assert words in said.out
    assert words in done(cwd, "inspect", "m.zarr")
    told = json.loads(done(cwd, "inspect", "m.zarr", "--json"))["learning"]
    assert told["iterations"] == model.n_iter_ == 10 + last


def test_a_job_that_is_started_again(cwd: Path) -> None:
    """--resume auto begins, goes on, and ends at once when all is done; another request is refused by name."""
    words = (*LEARN, *SMALL, "--resume", "auto")
    same(dkl_in(cwd, *words[:-1], "always"), 1, "there is no interrupted fit", "--resume auto starts one")
    run(cwd, *words)
    whole = arrays(cwd / "m.zarr")
    before = (cwd / "m.zarr" / "zarr.json").stat().st_mtime_ns
    assert "is complete; there is nothing to do" in done(cwd, *words)
    assert (cwd / "m.zarr" / "zarr.json").stat().st_mtime_ns == before
    same(dkl_in(cwd, *words, "--kernel", "laplacian", "--seed", "1"), 2, "--seed")
    same(dkl_in(cwd, *words, "--kernel", "laplacian", "--alpha", "2"), 1, "another request (--alpha, --kernel differ)")
    shutil.copytree(cwd / "d.zarr", cwd / "e.zarr")
    done(cwd, "ingest", "sklearn:iris", "i.zarr")
    same(dkl_in(cwd, words[0], "i.zarr", *words[2:]), 1, "(DATA, --split or --unlabelled differ)")
    shutil.rmtree(cwd / "m.zarr")
    killed_amid(cwd, 3)
    known = progress_of(str(cwd / KEPT))["steps"]
    same(dkl_in(cwd, *words, "--kernel", "laplacian"), 1, "another request (--kernel differ)", "dkl resume")
    same(dkl_in(cwd, words[0], "e.zarr", *words[2:]), 1, "DATA (or --split) differ")
    same(dkl_in(cwd, *words[:-2]), 1, "was interrupted")
    assert progress_of(str(cwd / KEPT))["steps"] == known, "a refusal changes nothing"
    same(dkl_in(cwd, *words, "--overwrite"), 2, "--overwrite replaces it")
    run(cwd, *words)
    assert arrays(cwd / "m.zarr") == whole
    os.utime(cwd / "d.zarr" / "zarr.json")
    same(dkl_in(cwd, *words), 1, "is older than")
    model = dkl.load(cwd / "m.zarr")
    del model.request_
    model.save(cwd / "m.zarr", overwrite=True)
    same(dkl_in(cwd, *words), 1, "does not say what rows it is of")
