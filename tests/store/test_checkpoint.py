"""The folder of an unfinished fit: who may use it, what counts, what is removed."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from dkl.store.checkpoint import Checkpoint, open_sums, progress_of, save_sums, saved_counts
from dkl.store.folder import Folder
from dkl.sums.gram import GramSums

FIT = {"estimator": "E", "sigma": "1.0", "rows": [["token", [3, 2]]]}


def sums(seed=0, refusal=None):
    """Some sums."""
    rng = np.random.default_rng(seed)
    shapes = {"rows": 2, "weight": 2, "gram": (2, 6), "cross": (2, 1, 3), "feature_sum": (2, 3), "target_sum": (2, 1)}
    shapes["target_square"] = (2, 1)
    return GramSums(**{name: rng.normal(size=shape) for name, shape in shapes.items()}, refusal=refusal)


@pytest.fixture(params=["local", "memory"])
def path(request, tmp_path):
    """A place where nothing is yet."""
    return str(tmp_path / "c") if request.param == "local" else f"memory://dkl-tests/{uuid.uuid4().hex}"


@pytest.mark.parametrize("refusal", [None, (17, "X contains NaN at row 17")])
def test_sums_come_back(path, refusal):
    """Every bit, and the row that was refused."""
    kept = Checkpoint(path, FIT)
    assert kept.newest() == 0
    save_sums(sums(refusal=refusal), kept.place(4), kept.covered(4))
    again = Checkpoint(path, FIT)
    assert again.newest() == 4
    found = open_sums(GramSums, again.place(4), again.covered(4))
    assert found.refusal == refusal
    for name, value in vars(sums()).items():
        if isinstance(value, np.ndarray):
            assert getattr(found, name).tobytes() == value.tobytes()


def test_only_the_newest_is_kept(path):
    """Others are removed once the newer one stands; a half one does not count."""
    kept = Checkpoint(path, FIT)
    for count in (2, 10, 9):
        save_sums(sums(count), kept.place(count), kept.covered(count))
    assert kept.newest() == 10
    Folder(kept.place(11)).create()
    Folder(kept.place(11)).write("zarr.json", b"{")
    assert kept.newest() == 10
    assert progress_of(path) == {"fit": FIT, "prepared": False, "blocks": 10, "steps": 0}
    kept.keep_only(10)
    assert saved_counts(kept.folder) == [10]
    with pytest.raises(FileNotFoundError, match="share"):
        kept.keep_only(12)
    assert saved_counts(kept.folder) == [10]


def test_the_map(path):
    """Handle once, with its seed."""
    kept = Checkpoint(path, FIT)
    assert kept.prepared() is None
    unit = np.random.default_rng(0).normal(size=(3, 4))
    kept.save_prepared({"seed": 2**61 + 1, "skew": 0.1}, {"unit": (("input", "frequency"), unit)})
    about, arrays = Checkpoint(path, FIT).prepared()
    assert (about["seed"], about["skew"]) == (2**61 + 1, 0.1)
    assert arrays["unit"].tobytes() == unit.tobytes()


def test_another_fit_is_refused(path):
    """What differs is named."""
    Checkpoint(path, FIT)
    with pytest.raises(ValueError, match=r"another fit \(rows, sigma differ\)"):
        Checkpoint(path, FIT | {"sigma": "2.0", "rows": []})
    Folder(path).write("fit.json", b"{")
    with pytest.raises(ValueError, match="damaged"):
        Checkpoint(path, FIT)


def test_a_foreign_folder_is_left_alone(path):
    """It is is not a checkpoint of dkl."""
    Folder(path).create()
    Folder(path).write("cat.txt", b"cat")
    with pytest.raises(FileExistsError, match="is not a checkpoint of dkl"):
        Checkpoint(path, FIT)
    assert Folder(path).names() == {"cat.txt"}
    assert progress_of(path) is None
