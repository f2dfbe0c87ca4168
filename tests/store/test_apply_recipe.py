"""A recipe at work: x -> (x - shift) * factor, fills, one-hot texts, and sums of one, each entry by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.sources.batch import Batch, Coded, Column
from dkl.store.recipe import Channel, Recipe

F8, F4, U1 = np.dtype("float64"), np.dtype("float32"), np.dtype("uint8")
NAN = np.nan


def plain(width=2, **how):
    """A channel of numbers."""
    return Channel("c", None, width, **how)


def test_names_and_sizes():
    """Columns, one for each category of a text; numbers from the base on where there are no names."""
    texts = {"t": ["u", "v"], "w": ["z"]}
    channel = Channel("c", (Column("a"), Column("t", True), Column("b"), Column("w", True)), 2, categories=texts)
    assert channel.names == ["a", "t=u", "t=v", "b", "w=z"]
    assert channel.n_inputs == 5
    assert plain(3, base=1).names == ["1", "2", "3"]
    assert plain(2).names == ["0", "1"]
    assert plain(2).base == 0
    two = Recipe((channel, plain(1)), "float32", "refuse", None, {})
    assert two.n_inputs == 6
    assert two.input_names == ["c a", "c t=u", "c t=v", "c b", "c w=z", "c 0"]
    assert two.input_labels == ["a", "t=u", "t=v", "b", "w=z", "0"]
    assert Recipe((channel,), "float32", "refuse", None, {}).input_names == channel.names


@pytest.mark.parametrize(("columns", "known"), [(None, False), (("0", "-1"), False), (("0", "x"), True)])
def test_columns_without_names(columns, known):
    """Numbers are positions, and no names; one name is enough."""
    columns = columns and tuple(map(Column, columns))
    recipe = Recipe((Channel("c", columns, 2),), "float32", "refuse", None, {})
    assert recipe.input_names == ([c.name for c in columns] if known else None)
    assert recipe.input_labels == ([c.name for c in columns] if columns else ["0", "1"])


def test_rows_that_lack_something():
    """NaN in dense or stored entries, and texts that are missing or unknown; whole numbers lack nothing."""
    X = np.array([[1.0, 2.0], [NAN, 3.0], [4.0, 5.0], [6.0, NAN]])
    assert plain().missing_rows(Batch(X)).tolist() == [False, True, False, True]
    stored = sp.csr_array((np.array([1.0, NAN, NAN]), np.array([0, 1, 0]), np.array([0, 1, 1, 3])), shape=(3, 2))
    assert plain().missing_rows(Batch(stored)).tolist() == [False, False, True]
    assert plain().missing_rows(Batch(np.ones((2, 2), np.uint8))).tolist() == [False, False]
    texts = Channel("c", (Column("s", True), Column("t", True)), 0, categories={"s": ["a"], "t": ["b"]})
    codes = {"s": Coded(np.array([0, -1, 0]), ["a"]), "t": Coded(np.array([0, 0, 1]), ["b", "?"])}
    assert texts.missing_rows(Batch(np.ones((3, 0), np.uint8), codes)).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, [[1, NAN], [3, -4]]),
        ({"scale": "standard", "shift": (1.0, 2.0), "factor": (2.0, 0.5)}, [[0, NAN], [4, -3]]),
        ({"fill": (9.0, 6.0)}, [[1, 6], [3, -4]]),
        ({"fill": (9.0, 6.0), "scale": "standard", "shift": (1.0, 2.0), "factor": (2.0, 0.5)}, [[0, 2], [4, -3]]),
        ({"fill": (9.0, 3.0), "scale": "l1"}, [[0.25, 0.75], [3 / 7, -4 / 7]]),
    ],
)
def test_dense_rows(how, expected):
    """In the precision that is asked for; the rows that were given stay as they are."""
    X = np.array([[1.0, NAN], [3.0, -4.0]])
    narrow = plain(**how).apply(Batch(X.astype(F4)), F8, True)
    np.testing.assert_allclose(narrow, np.array(expected, F8), rtol=1e-7 if not how else 1e-15)
    for dtype in (F8, F4):
        found = plain(**how).apply(Batch(X), dtype, True)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, np.array(expected, dtype), rtol=1e-6)
    np.testing.assert_array_equal(X, [[1, NAN], [3, -4]])


def test_a_row_of_zeros_has_no_sum():
    """It stays zero, dense and sparse; others sum to one."""
    X = np.array([[0.0, 0.0], [0.25, 0.25]])
    for rows in (X, sp.csr_array(X)):
        found = plain(scale="l1").apply(Batch(rows), F8, True)
        np.testing.assert_array_equal(getattr(found, "toarray", lambda found=found: found)(), [[0, 0], [0.5, 0.5]])
    explicit = sp.csr_array((np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    np.testing.assert_array_equal(plain(scale="l1").apply(Batch(explicit), F8, True).toarray(), [[0, 0], [0, 1]])


def test_texts_between_numbers():
    """Each category has its column, in the order of the columns."""
    columns = (Column("a"), Column("t", True), Column("b"), Column("s", True))
    channel = Channel("c", columns, 2, categories={"t": ["u", "v"], "s": ["x", "y", "z"]})
    text = {"t": Coded(np.array([1, 0]), ["u", "v"]), "s": Coded(np.array([0, 1]), ["z", "x"])}
    found = channel.apply(Batch(np.array([[7.0, 8.0], [9.0, 10.0]]), text), F4, True)
    np.testing.assert_array_equal(found, [[7, 0, 1, 8, 0, 0, 1], [9, 1, 0, 10, 1, 0, 0]])
    text["t"] = Coded(np.array([-1, 0]), ["u"])
    found = channel.apply(Batch(np.ones((2, 2)), text), F4, False)  # missing, not unknown: no warning
    np.testing.assert_array_equal(found[:, 1:3], [[0, 0], [1, 0]])
    text["t"] = Coded(np.array([0, 1]), ["u", "q"])
    with pytest.raises(ValueError, match="column 't' holds 'q', which is not a category of the data set"):
        channel.apply(Batch(np.ones((2, 2)), text), F4, True)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, [[0, 1, NAN], [4, 0, 0]]),
        ({"scale": "minmax", "factor": (2.0, 3.0, 4.0), "shift": (0.0, 0.0, 0.0)}, [[0, 3, NAN], [8, 0, 0]]),
        ({"fill": (5.0, 6.0, 7.0)}, [[0, 1, 7], [4, 0, 0]]),
        ({"fill": (5.0, 6.0, 7.0), "scale": "minmax", "factor": (2.0, 3.0, 4.0)}, [[0, 3, 28], [8, 0, 0]]),
        ({"fill": (5.0, 6.0, -7.0), "scale": "l1"}, [[0, 0.125, -0.875], [1, 0, 0]]),
    ],
)
@pytest.mark.parametrize("base", [0, 1])
def test_sparse_rows(how, expected, base):
    """Stored entries only, counted from the base."""
    indices = np.array([1, 2, 0]) + base
    X = sp.csr_array((np.array([1.0, NAN, 4.0]), indices, np.array([0, 2, 3])), shape=(2, 3 + base))
    found = plain(3, base=base, **how).apply(Batch(X), F8, True)
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-15)


@pytest.mark.parametrize(("index", "base"), [(0, 1), (3, 0), (4, 1)])
def test_an_index_the_recipe_does_not_know(index, base):
    """One too low or too high is refused with its number; the outermost ones are not."""
    at = lambda i: sp.csr_array((np.ones(1), np.array([i]), np.array([0, 1])), shape=(1, 9))  # noqa: E731
    channel = plain(3, base=base)
    for i in range(base, base + 3):
        assert channel.apply(Batch(at(i)), F8, True).indices.tolist() == [i - base]
    with pytest.raises(ValueError, match=f"has index {index}; the data set was made from indices {base} to {base + 2}"):
        channel.apply(Batch(at(index)), F8, True)
    assert channel.apply(Batch(sp.csr_array((2, 9))), F8, True).nnz == 0


@pytest.mark.parametrize(("value", "dtype"), [(1e39, F4), (-1e39, F4), (256.0, U1), (-1.0, U1), (0.5, U1), (300, U1)])
def test_numbers_the_data_set_has_not(value, dtype):
    """Beyond float32, or no whole number of a byte."""
    for X in (np.array([[1, value]]), sp.csr_array(np.array([[1, value]]))):
        with pytest.raises(ValueError, match=re.escape(f"channel 'c' holds {value:g}, which {dtype} cannot hold")):
            plain().apply(Batch(X), dtype, True)


def test_numbers_the_data_set_has():
    """The largest of both; infinity is infinity, and NaN is not lost."""
    top = float(np.finfo("f4").max)
    for X, dtype in ((np.array([[top, -top], [np.inf, NAN]]), F4), (np.array([[0.0, 255.0]]), U1)):
        found = plain().apply(Batch(X), dtype, True)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype(float), X)
    same = np.array([[1.0, 2.0]], np.float32)
    assert plain().apply(Batch(same), F4, True) is same


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint16", "bool", "S3", "complex64", "datetime64[s]"])
def test_kinds_of_numbers(dtype):
    """A recipe is of floats or whole numbers."""
    values = Recipe((plain(),), dtype, "refuse", None, {}).to_json()
    if np.dtype(dtype).kind in "fiu":
        assert Recipe.from_json(values).dtype == dtype
    else:
        with pytest.raises(ValueError, match="the recipe of the data set is damaged"):
            Recipe.from_json(values)


@pytest.mark.parametrize(
    "damaged",
    [
        lambda v: {k: v[k] for k in v if k != "channels"},
        lambda v: v | {"channels": 3},
        lambda v: v | {"channels": [v["channels"][0] | {"categories": None}]},
    ],
)
def test_damaged_in_each_way(damaged):
    """A key that is not there, a value of another kind, and one that has no such attribute."""
    values = Recipe((plain(),), "float32", "refuse", None, {}).to_json()
    with pytest.raises(ValueError, match="the recipe of the data set is damaged"):
        Recipe.from_json(damaged(values))
