"""Rows of the history, iterations of each start and stage, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.learn.history import COLUMNS, History, Leg, history_dataset, legs_of, said_of


def row(**changes):
    return dict.fromkeys((*COLUMNS, "sigma"), 1.0) | {"sigma": np.ones(2)} | changes


def history_of(*rows):
    history = History()
    for each in rows:
        history.append(**row(**each))
    return history


def test_rows():
    """Appended, counted, and read back from their columns; only the error on unseen rows may be missing."""
    history = history_of({"objective": 3.0}, {"objective": 2.0, "sigma": np.array([4.0, 5.0])})
    assert len(history) == 2
    again = History(history.arrays())
    assert len(again) == 2
    assert again.arrays()["objective"].tolist() == [3.0, 2.0]
    assert again.arrays()["sigma"].tolist() == [[1, 1], [4, 5]]
    less = row()
    del less["unseen_error"]
    history.append(**less)
    assert np.isnan(history.columns["unseen_error"][-1])
    assert history.columns["unseen_error"][0] == 1.0
    del less["alpha"]
    with pytest.raises(KeyError):
        history.append(**less)


def test_the_last_row_is_the_one_that_was_kept():
    """Repeated at the end with the time and the passes of the end; nothing is repeated if it is there already."""
    history = history_of(
        {"objective": 1.0, "alpha": 7.0, "seconds": 1.0, "passes": 2}, {"objective": 3.0, "seconds": 5.0, "passes": 4}
    )
    history.end_at(3.0)
    assert len(history) == 2
    history.end_at(1.0)
    last = {name: column[-1] for name, column in history.columns.items()}
    assert len(history) == 3
    assert (last["objective"], last["alpha"], last["seconds"], last["passes"]) == (1.0, 7.0, 5.0, 4)


COLUMNS_OF_LEGS = {
    "stage": [0, 0, 0, 0, 0, 1, 1, 1, 1],
    "start": [0, 0, 0, 1, 1, 0, 0, 0, 0],
    "rows": [100, 100, 100, 100, 100, 400, 400, 400, 400],
    "passes": [2, 4, 7, 9, 11, 13, 15, 17, 17],
}


def test_legs():
    """Rows of each start and stage less the first one; a row without a pass is no iteration."""
    assert legs_of(COLUMNS_OF_LEGS) == [Leg(0, 0, 100, 2), Leg(0, 1, 100, 1), Leg(1, 0, 400, 2)]
    assert [leg.iterations for leg in legs_of(COLUMNS_OF_LEGS, 0)] == [3, 2, 3]


@pytest.mark.parametrize(
    ("legs", "text"),
    [
        ([Leg(0, 0, 100, 1)], "1 iteration"),
        ([Leg(0, 0, 100, 0)], "0 iterations"),
        ([Leg(0, 0, 100, 1234)], "1,234 iterations"),
        ([Leg(0, 0, 100, 2), Leg(0, 1, 100, 1)], "3 iterations (2 + 1 of 2 starts on 100 rows)"),
        ([Leg(0, 0, 1000, 2), Leg(1, 0, 4000, 5)], "7 iterations (2 on 1,000 rows, then 5 on 4,000 rows)"),
        (
            [Leg(0, 0, 100, 2), Leg(0, 1, 100, 1), Leg(1, 1, 400, 1), Leg(2, 1, 900, 3)],
            "7 iterations (2 + 1 of 2 starts on 100 rows, then 1 on 400 rows, then 3 on 900 rows)",
        ),
    ],
)
def test_words(legs, text):
    """Of one start no more than the number; else the starts, then each later stage."""
    assert said_of(legs) == text


def test_dataset():
    """Columns along the iterations, whole numbers where they are counts, sigma with the names of the inputs."""
    history = history_of({"rows": 100, "stage": 0, "alpha": 0.5}, {"rows": 400, "stage": 1, "alpha": 0.25})
    found = history_dataset(history.arrays(), {"name": ["a", "b"]})
    assert set(found.data_vars) == {*COLUMNS, "sigma"}
    assert {name for name in COLUMNS if found[name].dtype.kind == "i"} == {"rows", "passes", "stage", "start"}
    assert found["rows"].values.tolist() == [100, 400]
    assert found["alpha"].values.tolist() == [0.5, 0.25]
    assert found["alpha"].attrs["long_name"] == COLUMNS["alpha"]
    assert found["sigma"].dims == ("iteration", "input")
    assert found["name"].values.tolist() == ["a", "b"]
    assert found["iteration"].values.tolist() == [0, 1]
