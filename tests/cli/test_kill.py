"""kill -9, Ctrl-C and SIGTERM at any moment of an ingest and of a fit: after `dkl resume` the same bytes, or a refusal.

Commands are processes of their own on a slow disk (runner.py). Kills fall at random moments, and at chosen changes
of the disk. Runs have the same relative names in different folders, so nothing at all may differ in their results.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dkl
from tests.cli.conftest import (
    PLAIN,
    Ran,
    assert_refused,
    assert_same_tree,
    crash_each,
    finish,
    kill_session,
    leftovers,
    run,
    run_each,
    session,
    start,
    tree,
    wait_until,
    write_csv,
)

ROWS, PAUSE = 1500, "0.003"
KILLS = 20
HOW = ("--scale", "standard", "--split", "test=0.2")
ONE = ("ingest", "a.csv.gz", "d.zarr", *HOW)
TWO = ("ingest", "a.csv.gz", "b.csv.gz", "d.zarr", *HOW)
FIT = ("fit", "d.zarr", "m.zarr", "--n-components", "60", "--cv", "3")
TRANSIENT = ("{}.ingest", "{}.fit")


class Scene:
    """A folder to begin from, a command, and what the command makes there when nothing happens."""

    def __init__(self, base: Path, name: str, words: tuple[str, ...], dest: str, before: tuple = ()) -> None:
        self.words, self.dest = words, dest
        self.folder = base / name
        self.begin = self.folder / "begin"
        self.begin.mkdir(parents=True)
        write_csv(self.begin / "a.csv.gz", ROWS, 5, 2)
        write_csv(self.begin / "b.csv.gz", ROWS, 3, 3)
        for earlier in before:
            run(self.begin, *earlier)
        self.old = tree(self.begin / dest) if (self.begin / dest).exists() else None
        self.right = self.copy("right")
        begun = time.monotonic()
        process = start(self.right, *words, DKL_TEST_PAUSE=PAUSE)
        with session(process):
            wait_until(lambda: self.works(self.right) or process.poll() is not None, "the start of the work")
            self.starts = time.monotonic() - begun
            ran = finish(process, self.right)
        self.ends = time.monotonic() - begun
        assert ran.code == 0, ran
        self.kept = {*leftovers(self.right)}
        assert {dest, *leftovers(self.begin)} == self.kept

    def copy(self, name: str) -> Path:
        """A fresh folder to run in."""
        made = shutil.copytree(self.begin, self.folder / name)
        for file in (".out", ".err"):
            (made / file).unlink(missing_ok=True)
        return made

    def transient(self, cwd: Path) -> Path | None:
        """The folder of the unfinished work."""
        found = [cwd / form.format(self.dest) for form in TRANSIENT]
        return next((path for path in found if path.exists()), None)

    def works(self, cwd: Path) -> bool:
        """Whether something has been done that need not be done again."""
        folder = self.transient(cwd)
        return folder is not None and any((*folder.glob("part-*"), *folder.glob("sums/*")))

    def phase(self, cwd: Path) -> str:
        """How far a killed command had come, from what it left."""
        folder = self.transient(cwd)
        if folder is None:
            return "finished" if self.is_right(cwd) else "starting"
        if self.is_right(cwd):
            return "removing"
        names = {path.name for path in folder.iterdir()}
        if self.dest == "d.zarr":
            if "result.zarr" in names:
                return "writing"
            if any(re.fullmatch(r"source-\d+\.json", name) for name in names):
                return "surveying" if len([n for n in names if n.startswith("source-")]) > 1 else "parsing"
            return "parsing" if any(name.startswith("part-") for name in names) else "begun"
        if list(cwd.glob("m.zarr.writing-*")) or list(cwd.glob("m.zarr.old-*")) or "model" in names:
            return "saving"
        sums = {path.name for path in (folder / "sums").iterdir()} if (folder / "sums").exists() else set()
        if any(re.fullmatch(r"sums-\d+", name) for name in sums):
            return "summing"
        return "drawing" if sums else "begun"

    def is_right(self, cwd: Path) -> bool:
        """Whether the result stands, byte by byte."""
        return (cwd / self.dest).exists() and tree(cwd / self.dest) == tree(self.right / self.dest)

    def check_unfinished(self, cwd: Path) -> None:
        """What stands at the destination is nothing, the old one, or the new one; never a part of it."""
        if not (cwd / self.dest).exists():
            return
        assert self.is_right(cwd) or tree(cwd / self.dest) == self.old

    def check_resumed(self, cwd: Path, ran: Ran) -> None:
        """The end is the same as without a kill, and nothing else is left."""
        assert ran.code == 0, ran
        assert_same_tree(cwd / self.dest, self.right / self.dest)
        assert {*leftovers(cwd)} == self.kept

    def resume(self, cwd: Path, phase: str) -> Ran:
        """dkl resume; what was killed before anything was noted is simply run again."""
        ran = run(cwd, "resume", self.dest, ok=False)
        if phase == "starting" and ran.code == 1 and "there is no interrupted run" in ran.err:
            assert leftovers(cwd) == leftovers(self.begin)
            return run(cwd, *self.words)
        if phase == "starting" and self.old is not None and "nothing to resume" in ran.out:
            return run(cwd, *self.words)
        return ran


def kill_at_random(scene: Scene, number: int, kills: int, again: bool, phases: list[str]) -> None:
    """Kill -9 at moment `number` of so many, maybe once more while it resumes; notes the phases that were hit."""
    rng = np.random.default_rng(number)
    span = scene.ends - scene.starts
    share = (number - 2 + rng.random()) / (kills - 2) if number > 1 else -0.2 * (number + 1)
    cwd = scene.copy(f"kill-{number}")
    phases.append(_kill(scene, cwd, scene.words, share * span))
    if again and phases[0] not in ("starting", "finished"):
        phases.append(_kill(scene, cwd, ("resume", scene.dest), rng.random() * span / 2))
    scene.check_resumed(cwd, scene.resume(cwd, phases[-1]))
    if phases[-1] in ("removing", "finished"):
        assert scene.is_right(cwd)


def _kill(scene: Scene, cwd: Path, words: tuple[str, ...], delay: float) -> str:
    """Kill a command so long after its work began (or, before zero, so long before)."""
    process = start(cwd, *words, DKL_TEST_PAUSE=PAUSE)
    with session(process):
        if delay < 0:
            time.sleep(max(0.0, scene.starts + delay))
        elif words[0] == "resume":
            time.sleep(0.7 * scene.starts + delay)
        else:
            wait_until(lambda: scene.works(cwd) or process.poll() is not None, "the start of the work")
            time.sleep(delay)
        kill_session(process)
    scene.check_unfinished(cwd)
    return scene.phase(cwd)


def kill_all(scenes: list[Scene], kills: int) -> Counter:
    """So many kills, two at a time, spread over the scenes; how often each phase was hit."""
    hit: list[list[str]] = []
    wrong = {}

    def kill(number: int) -> None:
        phases: list[str] = []
        hit.append(phases)
        try:
            kill_at_random(scenes[number % len(scenes)], number, kills, number % 4 == 3, phases)
        except AssertionError as error:
            wrong[number] = phases, str(error)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(kill, range(kills)))
    found = Counter(phase for phases in hit for phase in phases)
    print("phases that were hit:", dict(found))
    assert wrong == {}, "\n".join(map(str, wrong.items()))
    unfinished = [phases for phases in hit if phases[0] not in ("starting", "finished")]
    assert len(unfinished) >= kills // 2, found
    return found


@pytest.mark.long
def test_killed_ingest_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    """Kills at random moments of an ingest of one source and of two."""
    found = kill_all([Scene(tmp_path, "one", ONE, "d.zarr"), Scene(tmp_path, "two", TWO, "d.zarr")], KILLS)
    assert found["parsing"] >= KILLS // 7, found
    assert found["writing"] >= KILLS // 10, found


@pytest.mark.long
def test_killed_fit_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    """Kills at random moments of a fit, of a new model and of one in place of another."""
    other = (*FIT, "--random-state", "5")
    scenes = [
        Scene(tmp_path, "new", FIT, "m.zarr", (TWO,)),
        Scene(tmp_path, "over", (*FIT, "--overwrite"), "m.zarr", (TWO, other)),
    ]
    found = kill_all(scenes, KILLS)
    assert found["summing"] >= KILLS // 5, found
    assert found["drawing"] + found["begun"] + found["saving"] >= KILLS // 10, found


CRASHES = {
    "ingest over": ((*TWO, "--overwrite"), "d.zarr", (ONE,)),
    "fit over": ((*FIT, "--overwrite"), "m.zarr", (ONE, (*FIT, "--random-state", "5"))),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CRASHES)
def test_every_kind_of_change_of_the_disk_can_be_the_last(tmp_path: Path, name: str) -> None:
    """Dying right before the first changes, some in the middle and some of the last ones, where names are moved."""
    words, dest, before = CRASHES[name]
    scene = Scene(tmp_path, "scene", words, dest, before)
    whole = crash_each(tmp_path, [{"cwd": str(scene.copy("whole")), "words": words, "crash": 0}])[0]
    count = int(re.search(r"changes=(\d+)", whole.err)[1])
    assert scene.is_right(scene.folder / "whole")
    last = [count - back for back in (0, 1, 4, 12, 24, 44, 60)]
    moments = sorted({1, 2, 3, 5, count // 4, count // 2, *last} & {*range(1, count + 1)})
    orders = []
    for k in moments:
        cwd = str(scene.copy(f"crash-{k}"))
        orders.append({"cwd": cwd, "words": words, "crash": k})
        orders.append({"cwd": cwd, "words": ["resume", dest], "crash": 0})
        orders.append({"cwd": cwd, "words": words if k < 8 else ["--version"], "crash": 0})
    ran = crash_each(tmp_path, orders)
    wrong = {}
    for i, k in enumerate(moments):
        killed, resumed, repeated = ran[3 * i : 3 * i + 3]
        cwd = scene.folder / f"crash-{k}"
        assert killed.code == -signal.SIGKILL
        # either it resumes, or nothing was begun and the same command begins it
        fits = resumed.code == 0 or (k < 8 and repeated.code == 0)
        fits = fits and resumed.code in (0, 1)
        if not fits or not scene.is_right(cwd) or {*leftovers(cwd)} != scene.kept:
            wrong[k] = (resumed.lines() or [resumed.err])[-1], sorted({*leftovers(cwd)} - scene.kept)
    assert wrong == {}, "\n".join(map(str, wrong.items()))


@pytest.fixture(scope="module")
def ingest_scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """An ingest of two channels."""
    return Scene(tmp_path_factory.mktemp("ingest"), "scene", TWO, "d.zarr")


@pytest.fixture(scope="module")
def fit_scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A fit."""
    return Scene(tmp_path_factory.mktemp("fit"), "scene", FIT, "m.zarr", (TWO,))


def under_way(scene: Scene, cwd: Path, what: str, pause: str = "0.02") -> subprocess.Popen:
    """Start the command, and return when a file of that pattern lies in its folder."""
    process = start(cwd, *scene.words, DKL_TEST_PAUSE=pause)

    def seen() -> bool:
        assert process.poll() is None, (cwd / ".err").read_text()
        folder = scene.transient(cwd)
        return folder is not None and any(".writing-" not in path.name for path in folder.glob(what))

    try:
        wait_until(seen, what)
    except BaseException:
        kill_session(process)
        raise
    return process


@pytest.mark.parametrize(("verb", "what"), [("ingest", "result.zarr"), ("fit", "sums/sums-*")])
def test_killed_in_the_middle_resumes_to_the_same_bytes(verb: str, what: str, request: Any) -> None:
    """kill -9 as soon as a certain file is there: the destination stays empty, and resuming gives the same bytes."""
    scene: Scene = request.getfixturevalue(f"{verb}_scene")
    cwd = scene.copy("killed")
    process = under_way(scene, cwd, what)
    with session(process):
        kill_session(process)
    assert not (cwd / scene.dest).exists()
    scene.check_resumed(cwd, run(cwd, "resume", scene.dest))


SIGNALS = [
    ("ingest", "part-0-2.json", signal.SIGINT, 130),
    pytest.param("fit", "sums/sums-*", signal.SIGTERM, 143, marks=pytest.mark.long),
    pytest.param("ingest", "part-0-2.json", signal.SIGTERM, 143, marks=pytest.mark.long),
    pytest.param("fit", "sums/sums-*", signal.SIGINT, 130, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("verb", "what", "number", "code"), SIGNALS)
def test_interrupted_says_how_to_resume(
    verb: str, what: str, number: int, code: int, request: Any, tmp_path: Path
) -> None:
    """One line that names `dkl resume PATH`; the rest of the work gives the same bytes."""
    scene: Scene = request.getfixturevalue(f"{verb}_scene")
    cwd = scene.copy(f"signal-{code}")
    process = under_way(scene, cwd, what)
    with session(process):
        process.send_signal(number)
        ran = finish(process, cwd, 20)
    assert_refused(ran, code, f"dkl resume {scene.dest if verb == 'ingest' else cwd / scene.dest}")
    assert not (cwd / scene.dest).exists()
    assert_refused(run(cwd, *scene.words, ok=False), 1, "dkl resume")
    scene.check_resumed(cwd, run(cwd, "resume", scene.dest))


@pytest.mark.long
def test_interrupted_at_any_moment_shows_no_traceback(fit_scene: Scene) -> None:
    """Ctrl-C while modules are imported, too."""

    def interrupt(number: int) -> Ran:
        cwd = fit_scene.copy(f"early-{number}")
        process = start(cwd, *fit_scene.words, program=PLAIN)
        with session(process):
            time.sleep(0.15 + 0.3 * number)
            process.send_signal(signal.SIGINT)
            return finish(process, cwd, 20)

    with ThreadPoolExecutor(2) as pool:
        for ran in pool.map(interrupt, range(6)):
            if ran.code == -signal.SIGINT:  # before there was a program to ask
                assert " in main\n" not in ran.err, ran
                continue
            assert ran.code == 0 or (ran.code == 130 and len(ran.lines()) == 1), ran
            assert "Traceback" not in ran.err, ran


def test_two_ingests_of_one_destination(ingest_scene: Scene) -> None:
    """One of them wins; the other is refused in one line, and disturbs nothing."""
    cwd = ingest_scene.copy("two")
    other = cwd / "other"
    other.mkdir()
    first = under_way(ingest_scene, cwd, "ingest.json", "0.005")
    with session(first):
        second = run(cwd, *ingest_scene.words, ok=False)  # its output replaces that of the first, which said nothing
        first.wait(60)
    assert first.returncode == 0
    assert_refused(second, 1, "d.zarr")
    other.rmdir()
    ingest_scene.check_resumed(cwd, Ran(0, "", ""))
    cwd = ingest_scene.copy("race")
    for name in ("x", "y"):
        (cwd / name).mkdir()
        for source in ("a.csv.gz", "b.csv.gz"):
            os.link(cwd / source, cwd / name / source)
    racing = [start(cwd / name, *(w.replace("d.zarr", "../d.zarr") for w in ingest_scene.words)) for name in "xy"]
    ran = [finish(process, cwd / name) for process, name in zip(racing, "xy", strict=True)]
    assert sorted(one.code for one in ran) == [0, 1], ran
    assert_refused(next(one for one in ran if one.code), 1, "d.zarr")
    run(cwd, "inspect", "d.zarr")


def test_resume_while_it_is_under_way(ingest_scene: Scene) -> None:
    """A second process never spoils what a first one writes, even if the first sleeps for long."""
    cwd = ingest_scene.copy("both")
    elsewhere = cwd / "elsewhere"
    elsewhere.mkdir()
    for source in ("a.csv.gz", "b.csv.gz"):
        os.link(cwd / source, elsewhere / source)
    first = under_way(ingest_scene, cwd, "result.zarr/train/X/c/*", "0.01")
    with session(first):
        first.send_signal(signal.SIGSTOP)
        second = run(elsewhere, "resume", "../d.zarr", ok=False)
        first.send_signal(signal.SIGCONT)
        ran = finish(first, cwd)
    shutil.rmtree(elsewhere)
    assert 0 in (ran.code, second.code), (ran, second)
    assert_same_tree(cwd / "d.zarr", ingest_scene.right / "d.zarr")
    assert {*leftovers(cwd)} == ingest_scene.kept


def test_resume_from_another_folder(ingest_scene: Scene) -> None:
    """Relative names of sources are those of where the ingest began."""
    cwd = ingest_scene.copy("moved")
    (cwd / "elsewhere").mkdir()
    kill_session(under_way(ingest_scene, cwd, "part-1-2.json"))
    ran = run(cwd / "elsewhere", "resume", "../d.zarr", ok=False)
    assert ran.code == 0, ran
    shutil.rmtree(cwd / "elsewhere")
    ingest_scene.check_resumed(cwd, ran)


@pytest.mark.long
def test_partial_results_are_refused(ingest_scene: Scene, fit_scene: Scene, tmp_path: Path) -> None:
    """What lies in the folder of unfinished work is not taken for a data set or a model."""
    cwd = ingest_scene.copy("partial")
    kill_session(under_way(ingest_scene, cwd, "result.zarr/*/X/c/*"))
    half = "d.zarr.ingest/result.zarr"
    ran = run_each(cwd, tmp_path, (
        ("inspect", half), ("fit", half, "m.zarr"), ("fit", f"{half}/train", "m.zarr"), ("inspect", f"{half}/test"),
        ("fit", "d.zarr", "m.zarr"),
    ))  # fmt: skip
    for one in ran:
        assert_refused(one, 1)
    with pytest.raises(ValueError, match="not ingested completely"):
        dkl.SingleKernelClassifier(verbose=0).fit(str(cwd / half / "train"))
    assert not list(cwd.glob("m.zarr*"))
    cwd = fit_scene.copy("partial")
    process = under_way(fit_scene, cwd, "sums/sums-*")
    kill_session(process)
    ran = run_each(cwd, tmp_path, (
        ("evaluate", "m.zarr", "d.zarr"), ("predict", "m.zarr", "d.zarr", "p.csv"), ("inspect", "m.zarr"),
    ))  # fmt: skip
    assert [one.code for one in ran] == [1, 1, 0]
    with pytest.raises(ValueError):
        dkl.load(cwd / "m.zarr.fit" / "sums" / "prepared")


def test_changed_source_is_refused(ingest_scene: Scene) -> None:
    """An ingest does not go on with a source that another one replaced; nothing stands."""
    cwd = ingest_scene.copy("changed")
    kill_session(under_way(ingest_scene, cwd, "part-1-2.json"))
    write_csv(cwd / "b.csv.gz", ROWS, 3, 4)
    os.utime(cwd / "b.csv.gz")
    assert_refused(run(cwd, "resume", "d.zarr", ok=False), 1, "changed")
    assert not (cwd / "d.zarr").exists()


@pytest.mark.cluster
def test_killed_client_of_a_cluster(fit_scene: Scene) -> None:
    """The workers go with it, and what they summed is gone on with in one process."""
    cwd = fit_scene.copy("workers")
    process = start(cwd, *fit_scene.words, "--workers", "2", "--threads", "1", DKL_TEST_PAUSE="0.02")
    with session(process):
        saved = wait_until(lambda: [*cwd.glob("m.zarr.fit/sums/sums-[0-9]")] or process.poll(), "sums")
        assert process.poll() is None, saved
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
        wait_until(lambda: not _session_lives(process.pid), "the end of the workers", 20)
    assert not (cwd / "m.zarr").exists()
    fit_scene.check_resumed(cwd, run(cwd, "resume", "m.zarr"))


@pytest.mark.long
@pytest.mark.cluster
def test_interrupted_with_a_local_cluster(fit_scene: Scene) -> None:
    """Ctrl-C in a terminal reaches the whole group: one line, no process left, and the same bytes on two workers."""
    cwd = fit_scene.copy("group")
    process = start(cwd, *fit_scene.words, "--workers", "2", "--threads", "1", DKL_TEST_PAUSE="0.02")
    with session(process):
        saved = wait_until(lambda: [*cwd.glob("m.zarr.fit/sums/sums-[0-9]")] or process.poll(), "sums")
        assert process.poll() is None, saved
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)
        wait_until(lambda: not _session_lives(process.pid), "the end of the workers", 20)
        ran = finish(process, cwd)
    assert_refused(ran, 130, "dkl resume")
    assert len(ran.err.strip().replace("\r", "\n").splitlines()) < 12, ran
    fit_scene.check_resumed(cwd, run(cwd, "resume", "m.zarr", "--workers", "2", "--threads", "1"))


def _session_lives(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Reads:
    """Rows as Zarr, whose chunks are counted when read, and of which one may fail."""

    def __init__(self, path: Path) -> None:
        rng = np.random.default_rng(3)
        X = rng.normal(size=(4000, 4)).astype("float32")
        root = zarr.open_group(str(path), mode="w", zarr_format=3)
        root.create_array("X", data=X, chunks=(100, 4), dimension_names=["row", "input"])
        root.create_array("y", data=(X[:, 0] > 0).astype("int64"), chunks=(4000,), dimension_names=["row"])
        root.attrs["id"] = "first"
        self.path, self.starts, self.fails_at = path, [], None

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Count from now on."""
        from dkl.engine.row_readers import ZarrColumn

        whole = ZarrColumn.read

        def read(column: Any, first: int, stop: int, *rest: Any) -> Any:
            if getattr(column.array, "path", "").endswith("X"):
                self.starts.append(first)
                if self.fails_at is not None and first >= self.fails_at:
                    raise OSError("the disk is gone")
            return whole(column, first, stop, *rest)

        monkeypatch.setattr(ZarrColumn, "read", read)


def _new_model(folder: Path | None, **more: Any) -> dkl.SingleKernelClassifier:
    chosen = {"n_components": 20, "sigma": 0.5, "cv": 3, "alpha": [0.1, 1.0], "random_state": 0, "verbose": 0} | more
    return dkl.SingleKernelClassifier(**chosen, checkpoint=None if folder is None else str(folder))


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Rows in legs of one block."""
    from dkl.learn import resumable_pass as legs
    from dkl.sums.gram import GramProgram

    monkeypatch.setattr(legs, "SECONDS", 0.0)
    monkeypatch.setattr(legs, "SHARE", 1e9)
    monkeypatch.setattr(GramProgram, "rows_wanted", 100, raising=False)
    made = Reads(tmp_path / "rows.zarr")
    made.install(monkeypatch)
    return made


def test_estimator_goes_on_from_its_checkpoint(reads: Reads, tmp_path: Path) -> None:
    """A fit that failed goes on where it was: the same bits, and no block that was summed is read again."""
    right = _new_model(None).fit(str(reads.path))
    folder = tmp_path / "kept"
    reads.fails_at, reads.starts = 2000, []
    with pytest.raises(OSError, match="disk is gone"):
        _new_model(folder).fit(str(reads.path))
    done = max(int(path.name.split("-")[1]) for path in folder.glob("sums-*"))
    assert done >= 8
    reads.fails_at, reads.starts = None, []
    model = _new_model(folder).fit(str(reads.path))
    assert min(reads.starts) == 100 * done
    assert len(reads.starts) == 40 - done
    assert model.coef_.tobytes() == right.coef_.tobytes()
    assert model.cv_results_["mean_test_score"].tobytes() == right.cv_results_["mean_test_score"].tobytes()
    assert folder.exists()
    model.save(tmp_path / "model.zarr")
    assert not folder.exists()
    assert dkl.load(tmp_path / "model.zarr").coef_.tobytes() == right.coef_.tobytes()


def test_checkpoint_of_another_fit_is_refused(reads: Reads, tmp_path: Path) -> None:
    """Another parameter, other rows, another folder's contents: no sums of one are used for the other."""
    folder = tmp_path / "kept"
    reads.fails_at = 2000
    with pytest.raises(OSError, match="disk is gone"):
        _new_model(folder).fit(str(reads.path))
    reads.fails_at = None
    for changed in ({"sigma": 0.6}, {"alpha": [0.1, 2.0]}, {"random_state": 1}, {"cv": 4}, {"n_components": 22}):
        with pytest.raises(ValueError, match="another fit"):
            _new_model(folder, **changed).fit(str(reads.path))
    with pytest.raises(ValueError, match="another fit"):
        _new_model(folder).fit(*(np.asarray(zarr.open(str(reads.path))[name]) for name in "Xy"))
    zarr.open_group(str(reads.path), mode="a").attrs["id"] = "second"
    with pytest.raises(ValueError, match="another fit"):
        _new_model(folder).fit(str(reads.path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="is not a checkpoint of dkl"):
        _new_model(tmp_path / "mine").fit(str(reads.path))
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_changed_rows_of_any_zarr_are_refused(reads: Reads, tmp_path: Path) -> None:
    """Rows that were written anew in the same place and shape are other rows, though nobody gave them an id."""
    root = zarr.open_group(str(reads.path), mode="a")
    root.attrs.put({})
    folder = tmp_path / "kept"
    reads.fails_at = 2000
    with pytest.raises(OSError, match="disk is gone"):
        _new_model(folder).fit(str(reads.path))
    reads.fails_at = None
    root["X"][:] = 1 - root["X"][:]
    with pytest.raises(ValueError, match="another fit"):
        _new_model(folder).fit(str(reads.path))
