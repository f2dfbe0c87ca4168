"""Estimators on data sets by path: their own targets, names of classes, recipe."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
import zarr
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

import dkl
from tests.store.made import ingest, small_segments, table

OPTIONS = {"n_components": 30, "sigma": 0.5, "random_state": 0, "verbose": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data set with names as classes and splits, and one of numbers."""
    folder = tmp_path_factory.mktemp("sets")
    frame = table(2000, labels=["x"])
    frame["y"] = np.where(frame["a"] > 3, "pear", np.where(frame["b"] > 20, "fig", "apple"))
    frame.to_csv(folder / "t.csv", index=False)
    how = {"scale": "standard", "categorical": "colour", "dtype": "float64"}
    with pytest.MonkeyPatch.context() as patch:
        small_segments(patch, 9000)
        ingest(folder / "t.csv", folder / "names.zarr", split={"test": 0.3}, **how)
        frame.assign(y=np.sin(frame["a"])).to_csv(folder / "n.csv", index=False)
        ingest(folder / "n.csv", folder / "numbers.zarr", **how)
        frame.drop(columns="y").to_csv(folder / "b.csv", index=False)
        ingest(folder / "b.csv", folder / "bare.zarr", like=folder / "numbers.zarr")
    return folder


def arrays(path):
    """X and y, names for codes, in memory."""
    group = zarr.open(str(path), mode="r")
    y = group["y"][:]
    return group["X"][:], np.array(group["y"].attrs["classes"])[y] if "classes" in group["y"].attrs else y


def test_classes_are_names(folder):
    """classes_, predictions and scores as if y had been given as strings."""
    train, test = folder / "names.zarr" / "train", folder / "names.zarr" / "test"
    model = dkl.SingleKernelClassifier(**OPTIONS).fit(str(train))
    X, y = arrays(train)
    same = dkl.SingleKernelClassifier(**OPTIONS).fit(X, y)
    assert model.classes_.tolist() == ["apple", "fig", "pear"] == same.classes_.tolist()
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-9, atol=1e-12)
    T, t = arrays(test)
    predicted = model.predict(str(test)).compute()
    np.testing.assert_array_equal(predicted, same.predict(T))
    assert model.score(str(test)) == model.score(test) == accuracy_score(t, same.predict(T))
    assert model.evaluate(test)["accuracy"] == pytest.approx(accuracy_score(t, predicted))
    assert [c["class"] for c in model.evaluate(test)["classes"]] == ["apple", "fig", "pear"]
    assert model.score(T, t) == model.score(test)


def test_classes_of_another_order(folder, tmp_path):
    """Codes of another data set stand for other names."""
    test = folder / "names.zarr" / "test"
    model = dkl.SingleKernelClassifier(**OPTIONS).fit(folder / "names.zarr" / "train")
    X, y = arrays(test)
    chosen = y != "apple"
    group = zarr.open_group(str(tmp_path / "o.zarr"), mode="w")
    group.create_array("X", data=X[chosen])
    codes = group.create_array("y", data=(y[chosen] == "fig").astype(np.int32))
    codes.attrs["classes"] = ["pear", "fig"]
    assert model.score(tmp_path / "o.zarr") == accuracy_score(y[chosen], model.predict(str(test)).compute()[chosen])
    assert model.evaluate(tmp_path / "o.zarr")["accuracy"] == pytest.approx(model.score(tmp_path / "o.zarr"))


def test_class_weight_names(folder):
    """class_weight by name, of a data set whose y is codes, weighs as it does in memory."""
    train = folder / "names.zarr" / "train"
    X, y = arrays(train)
    weights = {"apple": 5.0, "pear": 0.5}
    same = dkl.SingleKernelClassifier(**OPTIONS, class_weight=weights).fit(X, y)
    model = dkl.SingleKernelClassifier(**OPTIONS, class_weight=weights).fit(train)
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-9, atol=1e-12)


def test_numbers(folder):
    """A regressor with its own y."""
    path = str(folder / "numbers.zarr")
    X, y = arrays(path)
    model = dkl.SingleKernelRegressor(**OPTIONS).fit(path)
    same = dkl.SingleKernelRegressor(**OPTIONS).fit(X, y)
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-9, atol=1e-12)
    assert model.score(path) == pytest.approx(r2_score(y, same.predict(X)), rel=1e-9)
    assert model.evaluate(path)["r2"] == pytest.approx(model.score(path), rel=1e-9)
    with xr.open_zarr(path, consolidated=False) as data:
        assert model.score(data) == pytest.approx(model.score(path))
        blocks = np.concatenate([p for _, p, _ in model.predict_blocks(data)])
    np.testing.assert_allclose(blocks, same.predict(X), rtol=1e-9)


def test_a_data_set_without_y(folder):
    """It can be predicted, not scored, not fitted."""
    model = dkl.SingleKernelRegressor(**OPTIONS).fit(folder / "numbers.zarr")
    bare = str(folder / "bare.zarr")
    np.testing.assert_allclose(model.predict(bare).compute(), model.predict(str(folder / "numbers.zarr")).compute())
    for use in (model.evaluate, model.score, clone(model).fit):
        with pytest.raises(ValueError, match="no array 'y'"):
            use(bare)
    with pytest.raises(ValueError, match="requires y"):
        model.score(np.ones((2, 6)))


@pytest.mark.parametrize("estimator", [dkl.SingleKernelClassifier, dkl.SingleKernelRegressor])
def test_the_recipe_travels_with_the_model(folder, tmp_path, estimator):
    """Through save and load, and it goes when the model is fitted to something else."""
    path = folder / ("names.zarr/train" if estimator is dkl.SingleKernelClassifier else "numbers.zarr")
    model = estimator(**OPTIONS).fit(path)
    assert model.recipe_ == zarr.open(str(path), mode="r").attrs["recipe"]
    model.save(tmp_path / "m")
    again = dkl.load(tmp_path / "m")
    assert again.recipe_ == model.recipe_
    again.save(tmp_path / "n")
    assert dkl.load(tmp_path / "n").recipe_ == model.recipe_
    X, y = arrays(path)
    model.fit(X, y)
    assert not hasattr(model, "recipe_")
    model.save(tmp_path / "m", overwrite=True)
    assert not hasattr(dkl.load(tmp_path / "m"), "recipe_")


def test_saving_removes_the_checkpoint(folder, tmp_path):
    """And nothing else; the path of it is not saved."""
    options = OPTIONS | {"checkpoint": tmp_path / "c"}
    model = dkl.SingleKernelRegressor(**options).fit(folder / "numbers.zarr")
    assert (tmp_path / "c" / "fit.json").exists()
    model.save(tmp_path / "m")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]
    assert dkl.load(tmp_path / "m").checkpoint is None
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "cat.txt").write_text("cat")
    model.save(tmp_path / "m", overwrite=True)
    assert (tmp_path / "c" / "cat.txt").read_text() == "cat"


def test_the_numbers_of_the_rows_are_not_read(folder):
    """y of a data set is opened, not read."""
    from dkl.engine.tables import open_table

    assert dict(open_table(str(folder / "numbers.zarr"), "y").input_coords) == {}


def test_groups_by_channel(folder, tmp_path):
    """The coordinate `channel` of a data set is a name for groups."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(2000, 2)))
    np.savetxt(tmp_path / "t.csv", np.random.default_rng(1).normal(size=(2000, 7)), delimiter=",")
    ingest([tmp_path / "t.csv", tmp_path / "x.npy"], tmp_path / "d.zarr")
    model = dkl.SingleKernelRegressor(**(OPTIONS | {"groups": "channel", "sigma": [0.1, 0.2]}))
    assert model.fit(tmp_path / "d.zarr").groups_.tolist() == [0] * 6 + [1] * 2
    assert model.sigma_.tolist() == [0.1] * 6 + [0.2] * 2
