"""A search that is killed in the middle, or runs on workers: the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dkl
from dkl.learn import cosine_search, halving
from dkl.store.checkpoint import Checkpoint, progress_of
from tests.engine.conftest import Machines, assert_same_bits, embedded, pair
from tests.learn.search_data import LABEL, NUMBER, OPTIONS, X, everything, searched

__all__ = ["pair"]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KINDS: dict[str, dict[str, Any]] = {
    "folds": {"cv": 3, "halving": 2.0},
    "several bundles": {"validation": 0.3, "y": NUMBER, "halving": 2.0},
}


class Stop(Exception):
    """An interruption."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Early rungs, and several bundles where there is one fold."""
    monkeypatch.setattr(halving, "FIRST_STEPS", 12)


@pytest.mark.parametrize("kind", KINDS)
def test_killed_after_every_epoch(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt takes a few epochs and dies, also at rungs; together they give the bits of one search."""
    options = KINDS[kind]
    if kind == "several bundles":
        monkeypatch.setattr(cosine_search, "NUMBERS", 60)
    right, path, save, died = everything(searched(**options)), str(tmp_path / "c"), Checkpoint.save_step, 0
    saved: list[int] = []

    def save_step(checkpoint: Checkpoint, number: int, *rest: Any) -> None:
        save(checkpoint, number, *rest)
        saved.append(number)
        if number % 5 == 2:
            raise Stop

    monkeypatch.setattr(Checkpoint, "save_step", save_step)
    while True:
        try:
            model = searched(**options, checkpoint=path)
            break
        except Stop:
            died += 1
            assert progress_of(path)["steps"] == saved[-1]
    assert died >= 4
    assert saved == sorted(set(saved))
    assert_same_bits(everything(model), right)


def test_a_long_epoch_is_saved_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search whose epochs take long saves meanwhile, dies there, and goes on with the same bits."""
    options = {"cv": 3, "max_iter": 3}
    right, path, save, kept = everything(searched(**options)), str(tmp_path / "c"), Checkpoint.save_step, []
    monkeypatch.setattr("dkl.learn.network_search.SAVED_SECONDS", 0.0)

    def save_step(checkpoint: Checkpoint, number: int, about: dict, *rest: Any) -> None:
        save(checkpoint, number, about, *rest)
        kept.append(number)
        if number in (2, 4):
            raise Stop

    monkeypatch.setattr(Checkpoint, "save_step", save_step)
    for _ in range(2):
        with pytest.raises(Stop):
            searched(**options, checkpoint=path)
    model = searched(**options, checkpoint=path)
    assert len(kept) > 3  # more than there are epochs
    assert_same_bits(everything(model), right)


def test_more_epochs_go_on(tmp_path: Path) -> None:
    """A search without halving that ended at max_iter goes on if the limit is further away."""
    options: dict[str, Any] = {"cv": 2, "halving": None}
    right = everything(searched(**options, max_iter=12))
    path = str(tmp_path / "c")
    searched(**options, max_iter=5, checkpoint=path)
    assert_same_bits(everything(searched(**options, max_iter=12, checkpoint=path)), right)


@pytest.mark.cluster
@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", KINDS)
def test_on_workers(kind: str, pair: Machines, tmp_path: Path) -> None:
    """Two workers find what one process finds, bit for bit, whatever the chunks."""
    options = dict(KINDS[kind]) | {"max_iter": 8}
    y = np.asarray(options.pop("y", (LABEL == "in").astype(int)))
    group = zarr.open_group(str(tmp_path / "d.zarr"), mode="w")
    group.create_array("X", data=X, chunks=(37, X.shape[1]))
    group.create_array("y", data=y, chunks=(64,))
    path = str(tmp_path / "d.zarr")
    cls = dkl.ContinuousKernelRegressor if y.dtype.kind == "f" else dkl.ContinuousKernelClassifier
    with embedded():
        right = everything(searched(y=y, **options))
    assert_same_bits(everything(cls(**(OPTIONS | options)).fit(path)), right)
