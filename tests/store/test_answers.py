"""Predictions on disk: the values that were given, or no file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import zarr

from dkl.store.answers import KINDS, open_answers

RNG = np.random.default_rng(0)
BLOCKS = [(0, 5), (5, 9), (9, 20)]
PREDICTED = {
    "numbers": RNG.normal(size=20) * 10.0 ** RNG.integers(-30, 30, 20),
    "outputs": RNG.normal(size=(20, 3)),
    "whole": np.arange(20) % 4,
    "names": np.array(["b,x", 'a"q', "c\nd", "é"])[RNG.integers(0, 4, 20)],
}
SCORES = RNG.normal(size=(20, 2))


def read(path):
    """(row, predictions as a table, scores or None)."""
    if path.endswith(".zarr"):
        group = zarr.open(path, mode="r")
        assert group.attrs["complete"] is True
        predicted = group["prediction"][:]
        if "classes" in group["prediction"].attrs:
            predicted = np.array(group["prediction"].attrs["classes"])[predicted]
        return group["row"][:], predicted.reshape(20, -1), group["score"][:] if "score" in group else None
    if path.endswith(".csv"):
        frame = pd.read_csv(path, float_precision="round_trip", keep_default_na=False)
    else:
        frame = pd.read_parquet(path)
    columns = [c for c in frame if c.startswith("prediction")]
    scores = [c for c in frame if c.startswith("score")]
    assert list(frame) == ["row", *columns, *scores]
    return frame["row"].to_numpy(), frame[columns].to_numpy(), frame[scores].to_numpy() if scores else None


def write(path, predicted, scores, overwrite=False):
    """All blocks."""
    names = [] if scores is None else ["score a", "score b"]
    with open_answers(path, names, overwrite) as out:
        for a, b in BLOCKS:
            out.add(np.arange(a, b), predicted[a:b], None if scores is None else scores[a:b])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", sorted(PREDICTED))
@pytest.mark.parametrize("scores", [None, SCORES], ids=["bare", "scores"])
def test_same_bits_back(tmp_path, kind, what, scores):
    """Numbers in every digit, names with every character."""
    path = str(tmp_path / f"a{kind}")
    write(path, PREDICTED[what], scores)
    rows, predicted, found = read(path)
    np.testing.assert_array_equal(rows, np.arange(20))
    np.testing.assert_array_equal(predicted, PREDICTED[what].reshape(20, -1))
    if scores is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, scores)
    assert [p.name for p in tmp_path.iterdir()] == [f"a{kind}"]


def fail(path, error, overwrite):
    """One block, then the error."""
    with open_answers(path, [], overwrite) as out:
        out.add(np.arange(3), np.ones(3), None)
        raise error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [KeyboardInterrupt("mine"), ValueError("mine")])
def test_a_failure_leaves_what_was_there(tmp_path, kind, error):
    """No half file, the old one untouched, and the error that came."""
    path = str(tmp_path / f"a{kind}")
    with pytest.raises(type(error), match="mine"):
        fail(path, error, False)
    assert list(tmp_path.iterdir()) == []
    write(path, PREDICTED["numbers"], None)
    with pytest.raises(type(error), match="mine"):
        fail(path, error, True)
    np.testing.assert_array_equal(read(path)[1][:, 0], PREDICTED["numbers"])
    assert [p.name for p in tmp_path.iterdir()] == [f"a{kind}"]


@pytest.mark.parametrize("kind", KINDS)
def test_overwriting(tmp_path, kind):
    """Only if it is said."""
    path = str(tmp_path / f"a{kind}")
    write(path, PREDICTED["whole"], None)
    with pytest.raises(FileExistsError, match="overwrite"):
        write(path, PREDICTED["numbers"], None)
    write(path, PREDICTED["numbers"], None, overwrite=True)
    np.testing.assert_array_equal(read(path)[1][:, 0], PREDICTED["numbers"])


def test_refusals(tmp_path):
    """An ending that says nothing, a folder that is not there."""
    with (
        pytest.raises(ValueError, match=r"\.csv, \.parquet or \.zarr"),
        open_answers(str(tmp_path / "a.txt"), [], False),
    ):
        pass
    with pytest.raises(FileNotFoundError, match="nowhere"), open_answers(str(tmp_path / "nowhere/a.csv"), [], False):
        pass


@pytest.mark.parametrize("what", ["folder", "array", "group", "broken"])
def test_what_is_no_group_of_answers_is_not_overwritten(tmp_path, what):
    """A folder, an array, a group of others and a damaged one stay as they are, whatever is said."""
    path = tmp_path / "a.zarr"
    if what == "array":
        zarr.create_array(str(path), data=np.arange(3))
    elif what == "group":
        zarr.open_group(str(path), mode="w").attrs["format"] = "other"
    else:
        path.mkdir()
        (path / ("zarr.json" if what == "broken" else "file")).write_text("{")
    before = {file.name: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with pytest.raises(FileExistsError, match=r"is not a \.zarr file of predictions and is not overwritten"):
        write(str(path), PREDICTED["numbers"], None, overwrite=True)
    assert {file.name: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
