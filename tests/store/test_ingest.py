"""Sources to a data set, against pandas and scikit-learn on the whole table at once."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from sklearn.datasets import dump_svmlight_file
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler, normalize

import dkl
from tests.store.made import ingest, small_segments, table, tree

NUMBERS = ["a", "b", "c"]


def one_hot(column):
    """Sorted categories; a missing or unknown one has none."""
    encoder = OneHotEncoder(categories=[sorted(column.dropna().unique())], handle_unknown="ignore", sparse_output=False)
    return encoder.fit(column.dropna().to_numpy()[:, None]).transform(column.to_numpy(object)[:, None])


def in_order(numbers, colour):
    """a, b, colour=..., c as the columns of `table` are ordered."""
    return np.hstack([numbers[:, :2], colour, numbers[:, 2:]])


@pytest.mark.parametrize("size", [300, 2**23])
@pytest.mark.parametrize("scale", ["none", "minmax", "standard", "l1"])
def test_csv_like_sklearn(tmp_path, monkeypatch, scale, size):
    """Numbers scaled, categories one-hot in their place, the target as it is."""
    small_segments(monkeypatch, size)
    frame = table()
    frame.to_csv(tmp_path / "t.csv", index=False)
    made = ingest(tmp_path / "t.csv", tmp_path / "d.zarr", categorical=["colour"], scale=scale, dtype="float64")
    numbers = frame[NUMBERS].to_numpy()
    scaler = {"minmax": MinMaxScaler((-1, 1)), "standard": StandardScaler()}.get(scale)
    wanted = in_order(scaler.fit_transform(numbers) if scaler else numbers, one_hot(frame["colour"]))
    wanted = normalize(wanted, "l1") if scale == "l1" else wanted
    np.testing.assert_allclose(made["X"][:], wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(made["y"][:], frame["y"])
    np.testing.assert_array_equal(made["row"][:], np.arange(len(frame)))
    assert made["y"].dtype == np.int64
    channel = made.attrs["recipe"]["channels"][0]
    assert channel["columns"] == [["a", False], ["b", False], ["colour", True], ["c", False]]
    assert channel["categories"] == {"colour": ["blue", "green", "red"]}
    assert made.attrs["class_counts"] == {str(k): int(v) for k, v in frame["y"].value_counts().items()}
    ranges = made.attrs["channels"][0]
    assert (ranges["name"], ranges["inputs"]) == ("t", 6)
    np.testing.assert_allclose([ranges["low"], ranges["high"]], [wanted.min(), wanted.max()], rtol=1e-12)


@pytest.mark.parametrize("scale", ["none", "minmax", "standard"])
@pytest.mark.parametrize("missing", ["mean", "zero"])
def test_missing_values_are_filled(tmp_path, monkeypatch, missing, scale):
    """Fills and scales come from the known values of the rows that are trained with."""
    small_segments(monkeypatch, 700)
    frame = table(gaps=0.1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    made = ingest(
        tmp_path / "t.csv", tmp_path / "d.zarr", categorical="colour", missing=missing, scale=scale, dtype="float64",
        split={"test": 0.3},
    )  # fmt: skip
    rows = {name: made[f"{name}/row"][:] for name in ("train", "test")}
    train = frame.loc[rows["train"], NUMBERS].to_numpy(float)
    strategy = {"strategy": "mean"} if missing == "mean" else {"strategy": "constant", "fill_value": 0.0}
    imputer = SimpleImputer(**strategy).fit(train)
    scaler = {"minmax": MinMaxScaler((-1, 1)), "standard": StandardScaler()}.get(scale)
    scaler = scaler and scaler.fit(train)
    colour = one_hot(frame["colour"])
    for name, chosen in rows.items():
        numbers = imputer.transform(frame.loc[chosen, NUMBERS].to_numpy(float))
        wanted = in_order(scaler.transform(numbers) if scaler else numbers, colour[chosen])
        np.testing.assert_allclose(made[f"{name}/X"][:], wanted, rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(made[f"{name}/y"][:], frame["y"][chosen])


def test_rows_with_gaps_are_dropped(tmp_path, monkeypatch):
    """A gap in a number, a category or the target; the numbers of the rows stay those of the source."""
    small_segments(monkeypatch, 500)
    frame = table(gaps=0.05, labels=["x", "y", "z"])
    frame.loc[::17, "y"] = None
    frame.to_csv(tmp_path / "t.csv", index=False, na_rep="?")
    made = ingest(
        tmp_path / "t.csv", tmp_path / "d.zarr", categorical="auto", missing="drop", na=["?"], scale="standard",
        dtype="float64",
    )  # fmt: skip
    whole = frame.dropna()
    assert 0 < len(whole) < len(frame)
    np.testing.assert_array_equal(made["row"][:], whole.index)
    wanted = in_order(StandardScaler().fit_transform(whole[NUMBERS].to_numpy(float)), one_hot(whole["colour"]))
    np.testing.assert_allclose(made["X"][:], wanted, rtol=1e-12, atol=1e-14)
    assert np.array(made["y"].attrs["classes"])[made["y"][:]].tolist() == whole["y"].tolist()


def test_a_number_that_is_missing_as_a_target_is_dropped_without_a_warning(tmp_path):
    """Of classes too, whose type has no NaN."""
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,\n3,1\n4,0\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = ingest(tmp_path / "t.csv", tmp_path / "d.zarr", missing="drop")
    assert made["y"][:].tolist() == [0, 1, 0]
    assert made["row"][:].tolist() == [0, 2, 3]
    assert made["y"].dtype == np.int64


@pytest.mark.parametrize("missing", ["refuse", "mean", "zero"])
def test_a_missing_target_is_not_invented(tmp_path, missing):
    """Only drop does something with it."""
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,\n3,1\n")
    with pytest.raises(ValueError, match=r"line 3.*'y'"):
        ingest(tmp_path / "t.csv", tmp_path / "d.zarr", missing=missing)
    assert not (tmp_path / "d.zarr").exists()


def test_a_refused_source_can_be_mended_and_tried_again(tmp_path):
    """Nothing is left in the way."""
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\nx,1\n" + "1,0\n" * 50)
    with pytest.raises(ValueError, match="line 4"):
        ingest(tmp_path / "t.csv", tmp_path / "d.zarr")
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\n")
    assert ingest(tmp_path / "t.csv", tmp_path / "d.zarr")["X"].shape == (2, 1)


@pytest.mark.parametrize("missing", ["mean", "zero"])
@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_a_column_without_any_value(tmp_path, missing, scale):
    """It becomes zeros, not NaN, and disturbs no other."""
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{i},,{i % 2}\n" for i in range(9)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = ingest(tmp_path / "t.csv", tmp_path / "d.zarr", missing=missing, scale=scale)["X"][:]
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X[:, 1], 0)
    assert X[:, 0].std() > 0


@pytest.mark.parametrize("like", [False, True])
@pytest.mark.parametrize("gap", ["2", ""])
def test_numbers_beyond_float32_are_refused(tmp_path, like, gap):
    """Also if another row of the batch is dropped."""
    (tmp_path / "t.csv").write_text(f"a,b,y\n1,2,0\n{gap},3,1\n1e39,4,0\n5,6,1\n")
    (tmp_path / "l.csv").write_text("a,b,y\n1,2,0\n3,3,1\n5,6,1\n")
    ingest(tmp_path / "l.csv", tmp_path / "l.zarr", missing="drop")
    how = {"like": tmp_path / "l.zarr"} if like else {"missing": "drop"}
    with pytest.raises(ValueError, match=r"1e\+39"):
        ingest(tmp_path / "t.csv", tmp_path / "d.zarr", **how)


def matrix(n=200, m=40, seed=0, density=0.1):
    """Sparse rows with values of both signs, some rows empty, the first and last column used."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, m, density, format="lil", random_state=seed, data_rvs=lambda k: rng.normal(0, 3, k))
    X[0, 1], X[3, 0], X[5, m - 1] = 1.0, 1.5, -2.5
    X[7] = 0
    return X.tocsr()


@pytest.mark.parametrize("layout", ["sparse", "dense"])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("scale", ["none", "minmax", "standard", "l1"])
def test_svmlight_like_sklearn(tmp_path, monkeypatch, first, layout, scale):
    """Scaled without a shift, so that zeros stay zeros."""
    small_segments(monkeypatch, 600)
    X, y = matrix(), np.arange(200) % 4
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"), zero_based=not first)
    made = ingest(tmp_path / "t.svm", tmp_path / "d.zarr", layout=layout, scale=scale, dtype="float64")
    scaler = {"minmax": MaxAbsScaler(), "standard": StandardScaler(with_mean=False)}.get(scale)
    wanted = normalize(X, "l1") if scale == "l1" else scaler.fit_transform(X) if scaler else X
    if layout == "sparse":
        group = made["X"]
        found = sp.csr_array((group["data"][:], group["indices"][:], group["indptr"][:]), shape=group.attrs["shape"])
        assert found.has_sorted_indices
        assert found.nnz == X.nnz
    else:
        found = made["X"][:]
    np.testing.assert_allclose(found.toarray() if layout == "sparse" else found, wanted.toarray(), rtol=1e-12)
    np.testing.assert_array_equal(made["y"][:], y)
    assert made.attrs["recipe"]["channels"][0]["base"] == first


def test_svmlight_whose_first_row_is_empty(tmp_path):
    """Zeros only are a row too."""
    (tmp_path / "t.svm").write_text("1\n0 1:2.5\n1 3:1\n")
    made = ingest(tmp_path / "t.svm", tmp_path / "d.zarr", layout="dense")
    np.testing.assert_array_equal(made["X"][:], [[0, 0, 0], [2.5, 0, 0], [0, 0, 1]])


def test_layout_follows_density(tmp_path):
    """Sparse rows of which more than a quarter is stored become dense ones; sparse must be possible."""
    for density, wanted in ((0.1, False), (0.6, True)):
        dump_svmlight_file(matrix(density=density), np.arange(200) % 2, str(tmp_path / f"{density}.svm"))
        made = ingest(tmp_path / f"{density}.svm", tmp_path / f"{density}.zarr")
        assert isinstance(made["X"], zarr.Array) == wanted
    np.save(tmp_path / "t.npy", np.ones((3, 2)))
    with pytest.raises(ValueError, match="sparse"):
        ingest(tmp_path / "t.npy", tmp_path / "d.zarr", layout="sparse")


def test_missing_values_of_sparse_rows(tmp_path):
    """The mean is that of the known values, zeros among them, as for dense rows."""
    (tmp_path / "t.svm").write_text("0 1:1 2:nan\n1 1:2 2:4\n0 1:3 2:8\n1 1:3\n")
    whole = np.array([[1, np.nan], [2, 4], [3, 8], [3, 0]])
    made = ingest(tmp_path / "t.svm", tmp_path / "d.zarr", missing="mean", layout="dense", dtype="float64")
    np.testing.assert_allclose(made["X"][:], SimpleImputer().fit_transform(whole))
    made = ingest(tmp_path / "t.svm", tmp_path / "z.zarr", missing="zero", layout="dense", dtype="float64")
    np.testing.assert_allclose(made["X"][:], np.nan_to_num(whole))
    made = ingest(tmp_path / "t.svm", tmp_path / "g.zarr", missing="drop", layout="dense", dtype="float64")
    np.testing.assert_allclose(made["X"][:], whole[1:])


@pytest.mark.parametrize("dtype", ["auto", "float32", "float64"])
@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16", "int32", "int64", "float32", "float64", "bool"])
def test_dtypes(tmp_path, kind, dtype):
    """Small whole numbers stay what they are; everything else is float32 unless float64 is asked for."""
    X = np.arange(60).reshape(20, 3).astype(kind)
    np.savez(tmp_path / "t.npz", X=X, y=np.arange(20) % 2)
    made = ingest(tmp_path / "t.npz", tmp_path / "d.zarr", dtype=dtype)
    small = kind in ("uint8", "int8", "uint16", "int16")
    found = made["X"].dtype
    if kind != "bool":
        assert found == (dtype if dtype != "auto" else kind if small else "float32")
    np.testing.assert_array_equal(made["X"][:], X)
    assert made.attrs["recipe"]["dtype"] == found


def test_scaled_small_numbers_are_float32(tmp_path):
    """Of uint8 too."""
    X = np.arange(60, dtype=np.uint8).reshape(20, 3)
    np.save(tmp_path / "t.npy", X)
    made = ingest(tmp_path / "t.npy", tmp_path / "d.zarr", scale="minmax")
    assert made["X"].dtype == np.float32
    np.testing.assert_allclose(made["X"][:], MinMaxScaler((-1, 1)).fit_transform(X), atol=1e-6)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16"])
def test_l1_of_whole_numbers(tmp_path, kind):
    """The least number of a signed type has no absolute value in it."""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    X = np.array([[low, high], [1, low], [0, 0]], kind)
    np.save(tmp_path / "t.npy", X)
    made = ingest(tmp_path / "t.npy", tmp_path / "d.zarr", scale="l1", dtype="float64")
    np.testing.assert_allclose(made["X"][:], normalize(X.astype(float), "l1"))


def three_channels(tmp_path, n=500):
    """A CSV, an npy and an svmlight of the same rows."""
    rng = np.random.default_rng(2)
    A, B, C = rng.normal(size=(n, 3)), rng.integers(0, 255, (n, 4)).astype(np.uint8), matrix(n, 6)
    y = rng.integers(3, size=n)
    pd.DataFrame(A, columns=list("abc")).assign(y=y).to_csv(tmp_path / "a.csv", index=False)
    np.save(tmp_path / "b.npy", B)
    dump_svmlight_file(C, y, str(tmp_path / "c.svm"))
    return A, B, C.toarray(), y, [tmp_path / "a.csv", tmp_path / "b.npy", tmp_path / "c.svm"]


@pytest.mark.parametrize("size", [333, 2**23])
def test_channels_side_by_side(tmp_path, monkeypatch, size):
    """Each with its own scale, in parts that do not line up."""
    small_segments(monkeypatch, size)
    A, B, C, y, sources = three_channels(tmp_path)
    made = ingest(sources, tmp_path / "d.zarr", scale=["standard", "l1", "minmax"], dtype="float64")
    wanted = [StandardScaler().fit_transform(A), normalize(B.astype(float), "l1"), MaxAbsScaler().fit_transform(C)]
    np.testing.assert_allclose(made["X"][:], np.hstack(wanted), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(made["y"][:], y)
    assert made["channel"][:].tolist() == [0] * 3 + [1] * 4 + [2] * 6
    assert made["channel"].attrs["names"] == ["a", "b", "c"]
    assert [c["inputs"] for c in made.attrs["channels"]] == [3, 4, 6]


def test_channels_must_agree(tmp_path):
    """As many rows, the same targets, as many scales as channels."""
    *_, y, sources = three_channels(tmp_path)
    with pytest.raises(ValueError, match=r"2 entries for 3 channels"):
        ingest(sources, tmp_path / "d.zarr", scale=["l1", "minmax"])
    np.save(tmp_path / "short.npy", np.ones((499, 2)))
    with pytest.raises(ValueError, match="different numbers of rows"):
        ingest([sources[0], tmp_path / "short.npy"], tmp_path / "e.zarr")
    other = pd.DataFrame({"u": np.arange(500), "y": np.where(np.arange(500) == 77, 9, y)})
    other.to_csv(tmp_path / "o.csv", index=False)
    with pytest.raises(ValueError, match=r"row 77"):
        ingest([sources[0], tmp_path / "o.csv"], tmp_path / "f.zarr")
    pd.DataFrame({"u": np.arange(500), "y": np.array(["p", "q", "r"])[y]}).to_csv(tmp_path / "s.csv", index=False)
    with pytest.raises(ValueError, match=r"row 0"):
        ingest([sources[0], tmp_path / "s.csv"], tmp_path / "g.zarr")


@pytest.mark.parametrize("names", [["x1.csv", "x2.csv"], ["x2.csv", "x1.csv"]])
def test_further_rows_must_have_the_same_kind_of_target(tmp_path, names):
    """Names in one file and numbers in another are not mixed."""
    (tmp_path / "x1.csv").write_text("a,y\n1,u\n2,v\n")
    (tmp_path / "x2.csv").write_text("a,y\n3,0\n4,1\n")
    with pytest.raises(ValueError, match=r"x[12]\.csv"):
        ingest([tmp_path / name for name in names], tmp_path / "d.zarr", rows=True, target="y")


@pytest.mark.parametrize("how", ["rows", "glob"])
def test_further_rows(tmp_path, how):
    """The files of a list, or of a pattern in order of their names, are one table."""
    frames = [table(50 + i, seed=i, labels=["u", "v"]) for i in range(3)]
    paths = [tmp_path / f"part{i}.csv" for i in range(3)]
    for path, frame in zip(paths, frames, strict=True):
        frame.to_csv(path, index=False)
    sources = paths if how == "rows" else tmp_path / "part*.csv"
    options = {"categorical": "colour", "scale": "standard", "dtype": "float64"}
    made = ingest(sources, tmp_path / "d.zarr", rows=how == "rows", **options)
    pd.concat(frames).to_csv(tmp_path / "whole.csv", index=False)
    whole = ingest(tmp_path / "whole.csv", tmp_path / "w.zarr", **options)
    np.testing.assert_allclose(made["X"][:], whole["X"][:], rtol=1e-12, atol=1e-14)
    for name in ("y", "row"):
        np.testing.assert_array_equal(made[name][:], whole[name][:])
    assert made["y"].attrs["classes"] == ["u", "v"]
    pd.DataFrame({"other": [1, 2], "colour": ["red", "blue"], "y": ["u", "v"]}).to_csv(
        tmp_path / "part9.csv", index=False
    )
    with pytest.raises(ValueError, match="different columns"):
        ingest([*paths, tmp_path / "part9.csv"], tmp_path / "e.zarr", rows=True, categorical="colour")


def split_rows(made):
    """Row numbers of every split."""
    return {name: made[f"{name}/row"][:] for name in made.attrs["splits"]}


def test_splits(tmp_path, monkeypatch):
    """Which rows go where depends on their number and the seed alone; each row goes to one split."""
    n = 4000
    X = np.random.default_rng(0).normal(size=(n, 2))
    np.savez(tmp_path / "t.npz", X=X, y=np.arange(n) % 2)
    split = {"test": 0.2, "val": 0.1}
    first = ingest(tmp_path / "t.npz", tmp_path / "a.zarr", split=split, dtype="float64")
    rows = split_rows(first)
    np.testing.assert_array_equal(np.sort(np.concatenate([*rows.values()])), np.arange(n))
    for name, share in {"train": 0.7, **split}.items():
        assert abs(len(rows[name]) - share * n) < 4 * np.sqrt(n * share * (1 - share))
        np.testing.assert_array_equal(first[f"{name}/X"][:], X[rows[name]])
        np.testing.assert_array_equal(first[f"{name}/y"][:], rows[name] % 2)
        assert (np.diff(rows[name]) > 0).all()
        assert first[name].attrs["split"] == name
    assert first.attrs["sizes"] == {name: len(r) for name, r in rows.items()}
    small_segments(monkeypatch, 999)
    np.save(tmp_path / "other.npy", np.zeros((n, 1)))
    again = split_rows(ingest(tmp_path / "other.npy", tmp_path / "b.zarr", split=split))
    for name in rows:
        np.testing.assert_array_equal(again[name], rows[name])
    other = split_rows(ingest(tmp_path / "other.npy", tmp_path / "c.zarr", split=split, seed=1))
    both = len(np.intersect1d(other["test"], rows["test"]))
    assert abs(both - 0.04 * n) < 6 * np.sqrt(0.04 * n)
    with pytest.raises(ValueError, match="leave no rows"):
        ingest(tmp_path / "other.npy", tmp_path / "e.zarr", split={"test": 0.6, "val": 0.4})
    np.save(tmp_path / "one.npy", np.zeros((1, 1)))
    with pytest.raises(ValueError, match="none of the 1 rows is left for test"):
        ingest(tmp_path / "one.npy", tmp_path / "f.zarr", split={"test": 0.5})


def test_dropped_rows_do_not_move_the_splits(tmp_path):
    """A row that is dropped takes no other row along."""
    frame = pd.DataFrame({"a": np.arange(600.0), "y": np.arange(600) % 2})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.loc[::7, "a"] = None
    frame.to_csv(tmp_path / "g.csv", index=False)
    whole = split_rows(ingest(tmp_path / "t.csv", tmp_path / "d.zarr", split={"test": 0.3}))
    gaps = split_rows(ingest(tmp_path / "g.csv", tmp_path / "e.zarr", split={"test": 0.3}, missing="drop"))
    for name, rows in whole.items():
        np.testing.assert_array_equal(gaps[name], rows[rows % 7 != 0])


@pytest.mark.parametrize(
    ("y", "task", "wanted"),
    [
        (np.arange(100) % 3, "auto", "classification"),
        (np.arange(100) % 3, "regression", "regression"),
        (np.arange(100), "auto", "regression"),
        (np.arange(100), "classification", "classification"),
        (np.arange(100) / 7, "auto", "regression"),
        (np.array(["a", "b"])[np.arange(100) % 2], "auto", "classification"),
        (-(np.arange(100) % 2), "auto", "classification"),
    ],
)
def test_tasks(tmp_path, y, task, wanted):
    """Few whole numbers are classes, unless the user says otherwise."""
    np.savez(tmp_path / "t.npz", X=np.ones((100, 2)), y=y)
    made = ingest(tmp_path / "t.npz", tmp_path / "d.zarr", task=task)
    assert made.attrs["task"] == wanted
    assert made["y"].dtype == ("float64" if wanted == "regression" else "int32" if y.dtype.kind == "U" else "int64")
    found = made["y"][:]
    np.testing.assert_array_equal(np.array(made["y"].attrs["classes"])[found] if y.dtype.kind == "U" else found, y)


def test_tasks_that_are_not_possible(tmp_path):
    """Text is no number, fractions are no classes, and without a target there is no task."""
    for i, (y, task) in enumerate(((["a", "b"], "regression"), ([0.5, 1.5], "classification"), (None, "regression"))):
        np.savez(tmp_path / f"{i}.npz", X=np.ones((2, 2)), **({} if y is None else {"y": np.array(y)}))
        with pytest.raises(ValueError):
            ingest(tmp_path / f"{i}.npz", tmp_path / f"{i}.zarr", task=task)
    made = ingest(tmp_path / "2.npz", tmp_path / "d.zarr")
    assert "y" not in made
    assert made.attrs["task"] == "none"


LIKE = {"categorical": ["colour"], "scale": "standard", "dtype": "float64", "target": "y", "missing": "zero"}


@pytest.fixture
def model_set(tmp_path):
    """The data set that new rows are to be like, and its frame."""
    frame = table(labels=["u", "v"])
    frame.to_csv(tmp_path / "first.csv", index=False)
    ingest(tmp_path / "first.csv", tmp_path / "first.zarr", **LIKE)
    return tmp_path / "first.zarr", frame


def test_like_another_data_set(tmp_path, monkeypatch, model_set):
    """Columns by name, categories and constants of the first; a category it does not know is none."""
    first, frame = model_set
    new = table(60, seed=5, labels=["v", "w"])
    new.loc[3, "colour"] = "mauve"
    new.loc[4, "a"] = None
    shown = new.assign(extra="text", more=1.0)[["more", "y", "c", "colour", "extra", "b", "a"]]
    shown.to_csv(tmp_path / "new.csv", index=False)
    small_segments(monkeypatch, 400)
    with pytest.warns(UserWarning, match="'mauve'"):
        made = ingest(tmp_path / "new.csv", tmp_path / "new.zarr", like=first)
    scaler = StandardScaler().fit(frame[NUMBERS].to_numpy())
    colour = np.array([[c == k for k in ("blue", "green", "red")] for c in new["colour"]], float)
    wanted = in_order(scaler.transform(new[NUMBERS].fillna(0).to_numpy(float)), colour)
    np.testing.assert_allclose(made["X"][:], wanted, rtol=1e-12, atol=1e-13)
    assert made.attrs["recipe"]["channels"] == zarr.open(first, mode="r").attrs["recipe"]["channels"]
    assert np.array(made["y"].attrs["classes"])[made["y"][:]].tolist() == new["y"].tolist()
    shown.drop(columns="y").to_csv(tmp_path / "bare.csv", index=False)
    with pytest.warns(UserWarning, match="'mauve'"):
        bare = ingest(tmp_path / "bare.csv", tmp_path / "bare.zarr", like=first)
    assert "y" not in bare
    np.testing.assert_array_equal(bare["X"][:], made["X"][:])
    shown.drop(columns="b").to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(ValueError, match="'b'"):
        ingest(tmp_path / "less.csv", tmp_path / "less.zarr", like=first)
    with pytest.raises(ValueError, match="2 sources"):
        ingest([tmp_path / "new.csv", tmp_path / "bare.csv"], tmp_path / "two.zarr", like=first)


def test_like_refuses_what_it_does_not_know(tmp_path):
    """An unknown category, if nothing was said of missing values."""
    table(labels=["u", "v"]).to_csv(tmp_path / "first.csv", index=False)
    ingest(tmp_path / "first.csv", tmp_path / "first.zarr", **(LIKE | {"missing": "refuse"}))
    table(20).assign(colour="mauve").to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(ValueError, match="'colour' holds 'mauve'"):
        ingest(tmp_path / "new.csv", tmp_path / "new.zarr", like=tmp_path / "first.zarr")


@pytest.mark.parametrize("values", [[[0.5, 1]], [[300, 1]], [[-1, 1]]])
def test_like_refuses_numbers_that_do_not_fit(tmp_path, values):
    """A data set of uint8 cannot take a fraction, or 300."""
    np.save(tmp_path / "u.npy", np.arange(20, dtype=np.uint8).reshape(10, 2))
    ingest(tmp_path / "u.npy", tmp_path / "u.zarr")
    np.save(tmp_path / "f.npy", np.array(values, float))
    with pytest.raises(ValueError, match="uint8"):
        ingest(tmp_path / "f.npy", tmp_path / "f.zarr", like=tmp_path / "u.zarr")


def test_like_svmlight(tmp_path):
    """Indices keep their meaning: the first index, the width and the factors of the first data set."""
    X = matrix()
    dump_svmlight_file(X, np.arange(200) % 2, str(tmp_path / "a.svm"), zero_based=True)
    ingest(tmp_path / "a.svm", tmp_path / "a.zarr", scale="minmax", dtype="float64", layout="dense")
    (tmp_path / "b.svm").write_text("1 1:2.0\n0 5:1.0 7:3.0\n")
    made = ingest(tmp_path / "b.svm", tmp_path / "b.zarr", like=tmp_path / "a.zarr", layout="dense")
    factor = 1 / MaxAbsScaler().fit(X).scale_
    wanted = np.zeros((2, 40))
    wanted[0, 1], wanted[1, 5], wanted[1, 7] = 2 * factor[1], factor[5], 3 * factor[7]
    np.testing.assert_allclose(made["X"][:], wanted, rtol=1e-13)
    (tmp_path / "c.svm").write_text("1 40:2.0\n")
    with pytest.raises(ValueError, match="index 40"):
        ingest(tmp_path / "c.svm", tmp_path / "c.zarr", like=tmp_path / "a.zarr")


def test_like_several_channels(tmp_path):
    """A CSV with its target beside an npy; the same rows again are the same data set."""
    *_, sources = three_channels(tmp_path)
    first = ingest(sources, tmp_path / "a.zarr", scale=["standard", "minmax", "l1"])
    again = ingest(sources, tmp_path / "b.zarr", like=tmp_path / "a.zarr")
    np.testing.assert_array_equal(again["X"][:], first["X"][:])
    np.testing.assert_array_equal(again["y"][:], first["y"][:])


SCALES = ["none", "minmax", "l1", "standard"]


@pytest.mark.parametrize("scale", SCALES)
def test_same_bits_for_any_segments_and_threads(tmp_path, monkeypatch, scale):
    """Byte for byte the same Zarr tree."""
    *_, sources = three_channels(tmp_path)
    options = {"scale": scale, "split": {"test": 0.3}, "dtype": "float64"}
    trees = []
    for i, (size, threads) in enumerate([(2**23, 1), (2**23, 3), (257, 2), (4000, 4)]):
        small_segments(monkeypatch, size)
        ingest(sources, tmp_path / f"{i}.zarr", threads=threads, **options)
        trees.append(tree(tmp_path / f"{i}.zarr"))
    assert len(trees[0]) > 10
    for other in trees[1:]:
        assert other == trees[0]


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_same_bits_with_gaps(tmp_path, monkeypatch, missing):
    """The same of a CSV with gaps and categories."""
    table(gaps=0.1, labels=["u", "v", "w"]).to_csv(tmp_path / "t.csv", index=False)
    trees = []
    for i, size in enumerate([2**23, 200, 3000]):
        small_segments(monkeypatch, size)
        ingest(tmp_path / "t.csv", tmp_path / f"{i}.zarr", missing=missing, categorical="auto")
        trees.append(tree(tmp_path / f"{i}.zarr"))
    assert trees[0] == trees[1] == trees[2]


def test_same_bits_from_compressed_files(tmp_path):
    """gz, bz2 and xz."""
    text = table(3000).drop(columns="colour").to_csv(index=False).encode()
    trees = []
    for name, pack in (("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)):
        (tmp_path / f"t.csv{name}").write_bytes(pack(text))
        ingest(tmp_path / f"t.csv{name}", tmp_path / f"d{name}.zarr", scale="standard")
        trees.append(tree(tmp_path / f"d{name}.zarr"))
    assert all(other == trees[0] for other in trees[1:])


def test_a_data_set_can_be_ingested_again(tmp_path):
    """X, the target and its names come through."""
    table(labels=["u", "v"]).drop(columns="colour").to_csv(tmp_path / "t.csv", index=False)
    first = ingest(tmp_path / "t.csv", tmp_path / "a.zarr", split={"test": 0.4})
    second = ingest(tmp_path / "a.zarr" / "test", tmp_path / "b.zarr")
    np.testing.assert_array_equal(second["X"][:], first["test/X"][:])
    np.testing.assert_array_equal(second["y"][:], first["test/y"][:])
    assert second["y"].attrs["classes"] == ["u", "v"]


def test_destinations(tmp_path):
    """What is there is not replaced unless that is said, and then only when the new one stands."""
    np.save(tmp_path / "t.npy", np.ones((3, 2)))
    ingest(tmp_path / "t.npy", tmp_path / "d.zarr")
    with pytest.raises(FileExistsError, match="overwrite"):
        ingest(tmp_path / "t.npy", tmp_path / "d.zarr")
    with pytest.raises(FileNotFoundError, match="no-folder"):
        ingest(tmp_path / "t.npy", tmp_path / "no-folder" / "d.zarr")
    before = tree(tmp_path / "d.zarr")
    np.save(tmp_path / "bad.npy", np.full((3, 2), np.inf))
    with pytest.raises(ValueError, match="bad"):
        ingest(tmp_path / "bad.npy", tmp_path / "d.zarr", overwrite=True)
    assert tree(tmp_path / "d.zarr") == before


def test_overwriting(tmp_path):
    """The new one takes the place."""
    np.save(tmp_path / "t.npy", np.ones((3, 2)))
    ingest(tmp_path / "t.npy", tmp_path / "d.zarr")
    np.save(tmp_path / "u.npy", np.zeros((5, 1)))
    assert ingest(tmp_path / "u.npy", tmp_path / "d.zarr", overwrite=True)["X"].shape == (5, 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.zarr", "t.npy", "u.npy"]


PEAK = """
import sys, dkl
dkl.ingest(sys.argv[1], sys.argv[2], scale="standard", threads=2, verbose=0)
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak(folder, rows):
    """Peak kB of the ingest of a CSV of so many rows of about 100 bytes."""
    rng = np.random.default_rng(0)
    lines = [",".join(f"{v:.6f}" for v in row) + f",{i % 3}\n" for i, row in enumerate(rng.normal(size=(2000, 11)))]
    block = "".join(lines)
    with open(folder / f"{rows}.csv", "w") as file:
        file.write(",".join("abcdefghijk") + ",y\n")
        for _ in range(rows // 2000):
            file.write(block)
    size = (folder / f"{rows}.csv").stat().st_size
    command = [sys.executable, "-c", PEAK, str(folder / f"{rows}.csv"), str(folder / f"{rows}.zarr")]
    root = str(Path(dkl.__file__).parents[1])
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert zarr.open(str(folder / f"{rows}.zarr"), mode="r")["X"].shape == (rows, 11)
    (folder / f"{rows}.csv").unlink()
    return int(done.stdout), size


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_source(tmp_path):
    """Four times the rows, the same memory; both are enough to keep every thread and queue full."""
    few, size = peak(tmp_path, 800_000)
    many, _ = peak(tmp_path, 3_200_000)
    assert size > 76e6
    assert many - few < 80_000, f"{few} kB, {many} kB"
