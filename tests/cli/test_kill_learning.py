"""kill -9 of `dkl fit --learn` at random iterations: after `dkl resume` every array of the model is the same.

Only how long the iterations took, history_seconds, may differ.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import zarr

import dkl
from dkl.store.checkpoint import progress_of
from tests.cli.conftest import (
    assert_refused,
    kill_session,
    leftovers,
    run,
    run_each,
    session,
    start,
    wait_until,
    write_csv,
)

FIT = (
    "fit", "d.zarr", "m.zarr", "--learn", "validation", "--groups", "each", "--max-iter", "2", "--starts", "2",
    "--n-components", "20",
)  # fmt: skip
PAUSE = "0.001"
KEPT = Path("m.zarr.fit", "sums")


class Scene:
    """A folder to begin from, and the model that the fit makes there when nothing happens."""

    def __init__(self, base: Path) -> None:
        self.folder, self.begin, self.right = base, base / "begin", base / "right"
        self.right.mkdir()
        write_csv(self.right / "a.csv.gz", 1200, 4, 2)
        ran = run_each(self.right, base, (("ingest", "a.csv.gz", "d.zarr", "--scale", "standard"), FIT))
        assert [one.code for one in ran] == [0, 0], ran
        assert "iterations" in ran[1].err, "the fit says how it learned"
        shutil.copytree(self.right, self.begin, ignore=shutil.ignore_patterns("m.zarr"))
        self.last = dkl.load(self.right / "m.zarr").n_iter_

    def copy(self, name: str) -> Path:
        """A fresh folder to run in."""
        return shutil.copytree(self.begin, self.folder / name)

    def check(self, cwd: Path) -> None:
        """All arrays and attributes but the time, and nothing beside the model."""
        found, expected = (zarr.open_group(place / "m.zarr", mode="r") for place in (cwd, self.right))
        names = set(expected.array_keys())
        assert set(found.array_keys()) == names
        assert {"history_seconds", "history_objective", "coef", "sigma"} <= names
        for name in names - {"history_seconds"}:
            ours, theirs = found[name][...], expected[name][...]
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            assert ours.tobytes() == theirs.tobytes(), name
        about = [json.loads(json.dumps(dict(group.attrs))) for group in (found, expected)]
        for attributes in about:
            del attributes["arrays"]["history_seconds"]["sha256"], attributes["digest"]
        assert about[0] == about[1]
        assert (np.diff(found["history_seconds"][...]) >= 0).all()
        assert leftovers(cwd) == leftovers(self.right)
        assert dkl.load(cwd / "m.zarr").n_iter_ == self.last

    def kill(self, cwd: Path, words: tuple[str, ...], step: int, delay: float) -> int:
        """Kill a command a while after it has done so many steps; the steps that were kept, -1 if it had ended."""
        process = start(cwd, *words, DKL_TEST_PAUSE=PAUSE)
        with session(process):
            wait_until(lambda: newest(cwd) >= step or process.poll() is not None, f"step {step}")
            assert process.poll() is None, (cwd / ".err").read_text()
            time.sleep(delay)
            kill_session(process)
        known = progress_of(str(cwd / KEPT))
        return -1 if known is None else known["steps"]


def newest(cwd: Path) -> int:
    """The newest step by its folder's name."""
    names = os.listdir(cwd / KEPT) if (cwd / KEPT).exists() else []
    return max((int(name[5:]) for name in names if name.startswith("step-") and name[5:].isdigit()), default=0)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """One for all tests here."""
    return Scene(tmp_path_factory.mktemp("learning"))


def kill_and_resume(scene: Scene, number: int, of: int) -> int:
    """Kill in part `number` of `of` of the iterations, every third time once more amid the resume; the step reached."""
    rng = np.random.default_rng([number, of])
    cwd = scene.copy(f"kill-{number}-{of}")
    step = 1 + int((number + rng.random()) / of * (scene.last - 1))
    reached = scene.kill(cwd, FIT, step, 0.1 * rng.random())
    if reached >= 0 and number % 3 == 2 and reached < scene.last - 2:
        reached = scene.kill(cwd, ("resume", "m.zarr"), reached + 1, 0.1 * rng.random())
    run(cwd, "resume", "m.zarr")
    scene.check(cwd)
    return reached


def kill_all(scene: Scene, of: int) -> list[int]:
    """So many kills, two at a time; the steps that were reached."""
    with ThreadPoolExecutor(2) as pool:
        reached = [*pool.map(lambda number: kill_and_resume(scene, number, of), range(of))]
    print(f"steps at which the fit was killed: {reached}; it has {scene.last} iterations")
    return reached


def test_killed_amid_learning(scene: Scene) -> None:
    """Two kills."""
    assert max(kill_all(scene, 2)) > 0


@pytest.mark.long
def test_killed_at_random_iterations(scene: Scene) -> None:
    """Ten kills, spread over all iterations."""
    reached = kill_all(scene, 10)
    assert len(set(reached)) >= 5
    assert len([step for step in reached if step > 0]) >= 7


@pytest.mark.long
def test_a_killed_fit_is_told_of(scene: Scene) -> None:
    """Nobody takes it for a model, `inspect` says how far it came, and a new fit in its place is refused."""
    cwd = scene.copy("told")
    assert scene.kill(cwd, FIT, 3, 0.0) >= 3
    assert not (cwd / "m.zarr").exists()
    assert "steps" in run(cwd, "inspect", "m.zarr").out
    assert_refused(run(cwd, *FIT, ok=False), 1, "dkl resume")
    run(cwd, "resume", "m.zarr")
    scene.check(cwd)
