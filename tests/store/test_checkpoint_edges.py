"""Checkpoints on their edges: whose they are, which record counts, and what each says that it covers."""

from __future__ import annotations

import json
import uuid

import fsspec
import numpy as np
import pytest

from dkl.store.checkpoint import Checkpoint, open_covering, progress_of, save_sums, saved_counts
from dkl.store.folder import Folder, exists
from tests.store.test_checkpoint import sums

FIT = {"estimator": "E", "tol": 5, "max_iter": 7}
ONE = {"coef": (("a",), np.arange(3.0))}


@pytest.fixture(params=["local", "memory"])
def path(request, tmp_path):
    """A place where nothing is yet."""
    return str(tmp_path / "c") if request.param == "local" else f"memory://dkl-tests/{uuid.uuid4().hex}"


def test_a_place_for_it(tmp_path):
    """An empty folder may be used, a file may not, and the folder around it must be there."""
    (tmp_path / "empty").mkdir()
    Checkpoint(str(tmp_path / "empty"), FIT)
    assert json.loads((tmp_path / "empty" / "fit.json").read_text())["fit"] == FIT
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="is a file; choose a folder"):
        Checkpoint(str(tmp_path / "file"), FIT)
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        Checkpoint(str(tmp_path / "no" / "where"), FIT)


@pytest.mark.parametrize("changed", [{"tol": 4}, {"tol": 6}, {"more": 1}])
def test_what_differs_is_refused_or_taken_over(path, changed):
    """A larger and a smaller value, and one that was not there; what is free is written down instead."""
    first = Checkpoint(path, FIT)
    name = next(iter(changed))
    with pytest.raises(ValueError, match=rf"another fit \({name} differ\)"):
        Checkpoint(path, FIT | changed)
    assert progress_of(path)["fit"] == FIT
    free = Checkpoint(path, FIT | changed, (name,))
    assert progress_of(path)["fit"] == FIT | changed
    run = Folder(path).read_json("fit.json")["run"]
    assert len(run) == 32
    same = Checkpoint(path, FIT | changed)
    assert Folder(path).read_json("fit.json")["run"] == run
    assert same.fit != free.fit
    assert (first.fit == free.fit) == (name == "more")
    assert Checkpoint(path, FIT | changed, (name,)).fit == free.fit


def test_steps(path):
    """The newest whole one counts, with its number; older and newer ones are let go when one is written."""
    kept = Checkpoint(path, FIT)
    assert kept.newest("step") == 0
    assert kept.open_step() is None
    for number in (3, 12):
        kept.save_step(number, {"loss": number / 2}, ONE)
    assert saved_counts(kept.folder, "step") == [12]
    number, attributes, arrays = kept.open_step()
    assert (number, attributes, arrays["coef"].tolist()) == (12, {"loss": 6.0}, [0, 1, 2])
    assert progress_of(path) == {"fit": FIT, "prepared": False, "blocks": 0, "steps": 12}
    kept.save_step(5, {}, ONE)
    assert saved_counts(kept.folder, "step") == [5]
    assert kept.covered(5, "step", more=1) == {"fit": kept.fit, "kind": "step", "count": 5, "more": 1}
    kept.save_prepared({}, ONE)
    assert progress_of(path)["prepared"] is True


def test_records_written_again(path):
    """One that is whole is replaced, and so is one that was not written to its end."""
    kept = Checkpoint(path, FIT)
    kept.save_step(1, {"n": 1}, ONE)
    kept.save_step(1, {"n": 2}, ONE)
    assert kept.open_step()[1] == {"n": 2}
    Folder(kept.place(2, "step")).create()
    Folder(kept.place(2, "step")).write("zarr.json", b"{")
    assert kept.newest("step") == 1
    kept.save_step(2, {"n": 3}, ONE)
    assert kept.open_step()[:2] == (2, {"n": 3})


def put(kept, done, program, of=9, seed=0):
    """Sums of a program."""
    assert save_sums(sums(seed), kept.place(done), kept.covered(done, program=program, of=of)) is True


def test_sums_of_a_program(path):
    """The newest; those of an earlier program, or of another number of blocks, are removed one after the other."""
    kept = Checkpoint(path, FIT)
    assert kept.sums_of("q", 9) == 0
    put(kept, 4, "q")
    assert kept.sums_of("q", 9) == 4
    put(kept, 6, "p")
    put(kept, 7, "z")
    put(kept, 8, "q", of=8)
    put(kept, 9, "q", of=10)
    assert kept.sums_of("q", 9) == 4
    assert saved_counts(kept.folder) == [4]
    assert kept.sums_of("other", 9) == 0
    assert saved_counts(kept.folder) == []


def test_sums_of_another_fit_are_not_removed(path):
    """They were copied here, which is said."""
    kept = Checkpoint(path, FIT)
    covers = kept.covered(4, program="p", of=9)
    save_sums(sums(), kept.place(4), covers | {"fit": "another"})
    with pytest.raises(ValueError, match=r"do not match its name \(fit, program differ\)"):
        kept.sums_of("q", 9)
    assert saved_counts(kept.folder) == [4]
    kept.forget_sums()
    assert saved_counts(kept.folder) == []
    save_sums(sums(), kept.place(4), covers | {"count": 5})
    for count in (4, 5, 6):
        if count != 5:
            with pytest.raises(ValueError, match=r"\(count differ\)"):
                open_covering(kept.place(4), covers | {"count": count})
    assert sorted(open_covering(kept.place(4), covers | {"count": 5})[0]) == ["refusal"]


def test_a_record_that_does_not_say_what_it_covers(tmp_path):
    """Without a digest, or with something else there."""
    kept = Checkpoint(str(tmp_path / "c"), FIT)
    put(kept, 4, "q")
    about = tmp_path / "c" / "sums-4" / "zarr.json"
    data = json.loads(about.read_text())
    del data["attributes"]["digest"]
    about.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="does not say what it covers"):
        open_covering(kept.place(4), kept.covered(4, program="q", of=9))
    data["attributes"]["covers"] = ["q"]
    about.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="does not say what it covers"):
        kept.sums_of("q", 9)


def test_a_damaged_record_is_not_passed_over(tmp_path):
    """It counts as there, and whoever opens it says so; garbage does not count."""
    kept = Checkpoint(str(tmp_path / "c"), FIT)
    for number in (1, 2):
        put(kept, number, "q")
    about = tmp_path / "c" / "sums-2" / "zarr.json"
    about.write_text(about.read_text().replace('"of": 9', '"of": 8'))
    assert kept.newest() == 2
    with pytest.raises(ValueError, match="wrong digest"):
        kept.sums_of("q", 9)
    about.write_text("{")
    assert kept.newest() == 1


def test_only_one_is_kept(path):
    """Newer ones go, too, and so do halves; what only looks like one stays."""
    kept = Checkpoint(path, FIT)
    for count in (2, 3, 10):
        put(kept, count, "q")
    Folder(path).write("sums-4.txt", b"")
    kept.keep_only(3)
    assert saved_counts(kept.folder) == [3]
    assert exists(f"{path}/sums-4.txt")


def test_a_store_where_nothing_is():
    """No records of any kind, and nothing known of it."""
    url = f"memory://dkl-tests/{uuid.uuid4().hex}"
    assert saved_counts(Folder(url)) == []
    assert progress_of(url) is None
    fsspec.filesystem("memory").pipe_file(f"{url[8:]}/deep/sums-7/zarr.json", b"")
    assert saved_counts(Folder(url)) == []
    assert saved_counts(Folder(f"{url}/deep")) == [7]


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "x", "fit": {}}', '{"format": "dkl-checkpoint", "fit": 3}'])
def test_a_damaged_journal(text, tmp_path):
    """One sentence, from whoever looks at it."""
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "fit.json").write_text(text)
    for look in (lambda: Checkpoint(str(folder), {"a": 1}), lambda: progress_of(str(folder))):
        with pytest.raises(ValueError, match=r"holds no checkpoint: its fit\.json is damaged; remove the folder"):
            look()
