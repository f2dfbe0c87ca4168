"""A recipe is plain JSON: the same recipe back, or one sentence."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dkl
from dkl.sources.batch import Batch, Coded, Column
from dkl.store.recipe import Channel, Recipe
from tests.store.made import ingest, table

floats = st.floats(allow_nan=False, allow_infinity=False)
names = st.text(min_size=1, max_size=8)


@st.composite
def recipes(draw):
    """Any recipe."""
    channels = []
    for _ in range(draw(st.integers(1, 3))):
        texts = draw(st.dictionaries(names, st.lists(names, unique=True, max_size=4), max_size=2))
        width = draw(st.integers(1, 4))
        columns = (*(Column(f"n{i}") for i in range(width)), *(Column(t, True) for t in texts))
        row = st.none() | st.tuples(*[floats] * width)
        base = draw(st.integers(0, 1))
        scale = draw(st.sampled_from(["none", "minmax", "standard", "l1"]))
        constants = [draw(row) for _ in range(3)]
        which = draw(st.sampled_from([columns, None]))
        channels.append(Channel(draw(names), which, width, base, texts, scale, *constants))
    target = draw(st.none() | names)
    reading = {"na": draw(st.lists(names)), "header": draw(st.sampled_from([None, True, False]))}
    return Recipe(tuple(channels), draw(st.sampled_from(["float32", "float64", "uint8"])), "mean", target, reading)


@given(recipes())
@settings(max_examples=40, deadline=None)
def test_round_trip(recipe):
    """Exact, through text."""
    again = Recipe.from_json(json.loads(json.dumps(recipe.to_json())))
    assert again == recipe
    assert again.to_json() == recipe.to_json()


@pytest.fixture
def stored(tmp_path):
    """A recipe as it is stored."""
    table(gaps=0.1).to_csv(tmp_path / "t.csv", index=False)
    made = ingest(tmp_path / "t.csv", tmp_path / "d.zarr", categorical="auto", scale="standard", missing="mean")
    return made.attrs["recipe"]


def test_stored_recipe_is_exact(stored):
    """What a data set says of itself."""
    recipe = Recipe.from_json(stored)
    assert json.loads(json.dumps(recipe.to_json())) == stored
    assert recipe.n_inputs == 6
    assert recipe.channels[0].names == ["a", "b", "colour=blue", "colour=green", "colour=red", "c"]


def damages(values):
    """Every recipe with one key left out, and with one value replaced by another kind."""
    for where in ((), ("channels", 0)):
        place = values if not where else values["channels"][0]
        for key in place:
            for wrong in ("left out", None, 7, "x", [3], {"a": 1}):
                damaged = copy.deepcopy(values)
                inside = damaged if not where else damaged["channels"][0]
                if wrong == "left out":
                    del inside[key]
                else:
                    inside[key] = wrong
                yield f"{key} {wrong}", damaged


def test_damaged_recipes(stored):
    """A ValueError in one line, or still a recipe; never another error."""
    refused = {}
    for name, damaged in damages(stored):
        try:
            assert isinstance(Recipe.from_json(damaged), Recipe)
        except ValueError as error:
            refused[name] = str(error)
    assert not [line for line in refused.values() if "\n" in line]
    assert all("recipe" in line for name, line in refused.items() if "left out" in name)
    assert len(refused) > 40
    for garbage in (None, 3, "x", [], [1], {}):
        with pytest.raises(ValueError, match="recipe"):
            Recipe.from_json(garbage)


CHANGES = {
    "list": lambda r: [1],
    "text": lambda r: "x",
    "reading a list": lambda r: r | {"reading": [1]},
    "reading unknown": lambda r: r | {"reading": {"foo": 1}},
    "dtype": lambda r: r | {"dtype": "zzz"},
    "channels": lambda r: r | {"channels": None},
    "missing": lambda r: r | {"missing": 7},
}


@pytest.mark.parametrize("name", list(CHANGES))
def test_like_a_damaged_recipe(tmp_path, stored, name):
    """A ValueError, and nothing is left behind."""
    group = zarr.open(str(tmp_path / "d.zarr"), mode="r+")
    group.attrs["recipe"] = CHANGES[name](dict(stored))
    with pytest.raises(ValueError):
        dkl.ingest(tmp_path / "t.csv", tmp_path / "e.zarr", like=tmp_path / "d.zarr", verbose=0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.zarr", "t.csv"]


def test_unknown_categories_and_gaps():
    """Rows that lack something, by column."""
    channel = Channel("c", (Column("n"), Column("t", True)), 1, categories={"t": ["a", "b"]})
    X = np.array([[1.0], [np.nan], [2.0], [3.0], [4.0]])
    batch = Batch(X, {"t": Coded(np.array([0, 0, -1, 1, 2], np.int32), ["b", "q", "a"])})
    assert channel.missing_rows(batch).tolist() == [False, True, True, True, False]
    with pytest.warns(UserWarning, match="'t' holds 'q'"):
        found = channel.apply(batch, np.dtype("float64"), strict=False)
    np.testing.assert_array_equal(found[:, 1:], [[0, 1], [0, 1], [0, 0], [0, 0], [1, 0]])
    with pytest.raises(ValueError, match="'q'"):
        channel.apply(Batch(X[:1], {"t": Coded(np.array([1], np.int32), ["b", "q"])}), np.dtype("float64"), strict=True)
    with pytest.raises(ValueError, match="2 numbers in a row"):
        channel.apply(Batch(np.ones((1, 2))), np.dtype("float64"), strict=True)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"scale": "minmax"}, "like has its own scale; leave one of them out"),
        ({"dtype": "float32"}, "like has its own dtype; leave one of them out"),
        ({"categorical": ["colour"]}, "like has its own categorical; leave one of them out"),
    ],
)
def test_what_a_recipe_brings_is_not_given_again(tmp_path, stored, given, line):
    """Refused before anything is read."""
    with pytest.raises(ValueError, match=line):
        dkl.ingest(tmp_path / "t.csv", tmp_path / "e.zarr", like=tmp_path / "d.zarr", verbose=0, **given)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.zarr", "t.csv"]


def test_missing_values_of_a_recipe(tmp_path, stored):
    """Means of the data set by default; zeros if that is said, which standard scaling then shifts like any value."""
    mean, zero = (
        ingest(tmp_path / "t.csv", tmp_path / f"{name}.zarr", like=tmp_path / "d.zarr", **how)["X"][:]
        for name, how in (("mean", {}), ("zero", {"missing": "zero"}))
    )
    np.testing.assert_array_equal(mean, zarr.open(str(tmp_path / "d.zarr"), mode="r")["X"][:])
    channel = stored["channels"][0]
    gaps = table(gaps=0.1)[["a", "b"]].isna().to_numpy()
    assert gaps.any(axis=0).all()
    for j in range(2):
        expected = -channel["shift"][j] * channel["factor"][j]
        np.testing.assert_allclose(zero[gaps[:, j], j], expected, rtol=1e-6)
        np.testing.assert_allclose(mean[gaps[:, j], j], 0, atol=1e-6)
        np.testing.assert_array_equal(zero[~gaps[:, j], j], mean[~gaps[:, j], j])
