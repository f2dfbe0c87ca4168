"""Rows of the history, kept as columns and shown as xarray."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.learn.history import COUNTED, Column, History, history_dataset
from dkl.learn.learned import HISTORY


def row(**changes):
    return dict.fromkeys(HISTORY, 1.0) | {"sigma": np.ones(2)} | changes


def history_of(*rows):
    history = History(HISTORY)
    for each in rows:
        history.append(row(**each))
    return history


def test_rows():
    """Appended, counted, and read back from their columns; only the error on unseen rows may be missing."""
    history = history_of({"objective": 3.0}, {"objective": 2.0, "sigma": np.array([4.0, 5.0])})
    assert len(history) == 2
    again = History(HISTORY, history.arrays())
    assert len(again) == 2
    assert again.arrays()["objective"].tolist() == [3.0, 2.0]
    assert again.arrays()["sigma"].tolist() == [[1, 1], [4, 5]]
    less = row()
    del less["unseen_error"]
    history.append(less)
    assert np.isnan(history.columns["unseen_error"][-1])
    assert history.columns["unseen_error"][0] == 1.0
    del less["alpha"]
    with pytest.raises(KeyError):
        history.append(less)


def test_the_last_row_is_the_one_that_was_kept():
    """Repeated at the end with the time and the passes of the end; nothing is repeated if it is there already."""
    history = history_of(
        {"objective": 1.0, "alpha": 7.0, "seconds": 1.0, "passes": 2}, {"objective": 3.0, "seconds": 5.0, "passes": 4}
    )
    history.end_at(3.0)
    assert len(history) == 2
    history.end_at(1.0)
    last = history.last
    assert len(history) == 3
    assert (last["objective"], last["alpha"], last["seconds"], last["passes"]) == (1.0, 7.0, 5.0, 4)


def test_dataset():
    """Columns along the iterations, whole numbers where they are counts, sigma with the names of the inputs."""
    history = history_of({"rows": 100, "stage": 0, "alpha": 0.5}, {"rows": 400, "stage": 1, "alpha": 0.25})
    found = history_dataset(HISTORY, history.arrays(), {"input": {"name": ["a", "b"]}})
    assert set(found.data_vars) == set(HISTORY)
    assert {name for name in HISTORY if found[name].dtype.kind == "i"} == {"rows", "passes", "stage", "start"}
    assert found["rows"].values.tolist() == [100, 400]
    assert found["alpha"].values.tolist() == [0.5, 0.25]
    assert found["alpha"].attrs["long_name"] == HISTORY["alpha"].meaning
    assert found["sigma"].dims == ("iteration", "input")
    assert found["name"].values.tolist() == ["a", "b"]
    assert found["iteration"].values.tolist() == [0, 1]


def test_columns_of_any_method():
    """The loop's columns are there too; vectors have a dimension of their own; what is not described keeps its name."""
    history = History(
        {"loss": Column("mean loss"), "step": Column("steps", whole=True), "w": Column("weights", "class")}
    )
    for value in (2.0, 1.0):
        history.append({"loss": value, "step": 3, "w": np.ones(2), "seconds": 0.5, "rows": 7, "passes": 1})
    assert set(history.columns) == {"loss", "step", "w", *COUNTED}
    found = history_dataset(history.about, history.arrays() | {"more": np.zeros((2, 5))}, {"class": {"label": [3, 4]}})
    assert (found["loss"].attrs["long_name"], found["step"].dtype.kind) == ("mean loss", "i")
    assert (found["w"].dims, found["more"].dims) == (("iteration", "class"), ("iteration", "more_index"))
    assert found["label"].values.tolist() == [3, 4]
    assert found["more"].attrs["long_name"] == "more"
