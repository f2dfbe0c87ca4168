"""Models on disk: the same bits back, and one clear line for anything that is not a whole model."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

import dkl

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some fits stop early

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 4))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
CODE = np.arange(90) % 3
OPTIONS = {"n_components": 16, "random_state": 0}


def regress(y=Y[:, 0], rows=X, **options):
    """A fitted regressor."""
    return dkl.SingleKernelRegressor(**(OPTIONS | options)).fit(rows, y)


def classify(y, rows=X, **options):
    """A fitted classifier."""
    return dkl.SingleKernelClassifier(**(OPTIONS | options)).fit(rows, y)


def embed(rows=X, **options):
    """A fitted transformer."""
    return dkl.FourierFeatures(**(OPTIONS | options)).fit(rows)


def lift(dtype=np.float64, **options):
    """A fitted additive map."""
    return dkl.Chi2Features(**options).fit(np.abs(X).astype(dtype))


MODELS = {
    "chi2": lambda: lift(),
    "chi2 chebyshev": lambda: lift(method="chebyshev", n_terms=3),
    "chi2 homogeneous": lambda: lift(method="homogeneous", n_terms=3, kernel="intersection"),
    "chi2 zolotarev float32": lambda: lift(np.float32, method="zolotarev"),
    "features": lambda: embed(),
    "features odd": lambda: embed(n_components=17),
    "features phase": lambda: embed(form="phase"),
    "features float32": lambda: embed(X.astype(np.float32)),
    "features skewed": lambda: embed(np.abs(X), kernel="skewed_chi2", skew=0.5),
    "features exp": lambda: embed(np.abs(X), kernel="exp_jensen_shannon", n_terms=3),
    "regressor": lambda: regress(),
    "regressor one column": lambda: regress(Y[:, :1]),
    "regressor two outputs": lambda: regress(Y),
    "regressor alpha per output": lambda: regress(Y, alpha=[0.5, 2.0]),
    "regressor alpha array": lambda: regress(Y, alpha=np.array([0.5, 2.0])),
    "regressor odd": lambda: regress(n_components=17),
    "regressor phase": lambda: regress(form="phase"),
    "regressor float32": lambda: regress(rows=X.astype(np.float32)),
    "regressor dtype type": lambda: regress(dtype=np.float32),
    "regressor no intercept": lambda: regress(fit_intercept=False),
    "regressor cv": lambda: regress(alpha=[0.1, 1.0, 10.0], cv=3),
    "regressor cv one alpha": lambda: regress(alpha=[0.1], cv=3),
    "regressor fold array": lambda: regress(alpha=[0.1, 1.0], cv=np.arange(90) % 4),
    "regressor slices": lambda: regress(groups=[slice(0, 1), slice(1, None)], sigma=[0.3, 0.7]),
    "regressor labels": lambda: regress(groups=np.array([0, 1, 1, 0]), sigma=np.array([0.3, 0.7])),
    "regressor each": lambda: regress(groups="each", sigma=[0.1, 0.2, 0.3, 0.4]),
    "regressor learned": lambda: regress(learn="validation", groups="each", max_iter=3, tol=1.0),
    "regressor learned cv l1": lambda: regress(learn="cv", cv=2, groups="each", sigma_l1=0.1, tol=1.0),
    "regressor learned frequencies": lambda: regress(learn="frequencies", cv=2, form="phase", tol=1.0),
    "classifier learned": lambda: classify(CODE, learn="gcv", tol=1.0),
    "classifier int": lambda: classify(CODE),
    "classifier int8": lambda: classify(CODE.astype(np.int8)),
    "classifier strings": lambda: classify(np.array(["fig", "äpfel", "pear"])[CODE]),
    "classifier object strings": lambda: classify(np.array(["fig", "äpfel", "pear"], object)[CODE]),
    "classifier float": lambda: classify(CODE - 1.0),
    "classifier bool": lambda: classify(CODE > 0),
    "classifier balanced": lambda: classify(CODE, class_weight="balanced"),
    "classifier dict": lambda: classify(CODE, class_weight={0: 1.0, 2: 3.5}),
    "classifier dict of strings": lambda: classify(np.array(["fig", "pear"])[CODE % 2], class_weight={"fig": 2.0}),
    "classifier calibrated": lambda: classify(CODE, calibrate=20),
    "classifier of two calibrated": lambda: classify(CODE > 0, calibrate=20),
    "classifier cv": lambda: classify(CODE, alpha=[0.1, 1.0], cv=3),
    "classifier numpy seed": lambda: classify(CODE, random_state=np.int64(3), sigma=np.float64(0.5)),
}


def assert_same_params(a, b):
    """Parameters of both are equal."""
    assert a.keys() == b.keys()
    for name in a:
        if name == "cv" and not isinstance(a[name], (int, type(None))):
            assert b[name] is None  # folds of rows stay behind, their scores are in cv_results_
        elif isinstance(a[name], (np.ndarray, list, tuple)):
            np.testing.assert_array_equal(np.asarray(a[name], object), np.asarray(b[name], object))
        elif name == "dtype" and a[name] is not None:
            assert np.dtype(a[name]) == np.dtype(b[name])
        else:
            assert a[name] == b[name], name


def assert_same_model(model, again):
    """Every output has the same bits and dtype, and everything fitted is there."""
    rows = np.abs(X)
    assert type(again) is type(model)
    assert_same_params(model.get_params(), again.get_params())
    for method in ("transform", "predict", "decision_function"):
        for given in (rows, rows.astype(np.float32)):
            if hasattr(model, method):
                a, b = getattr(model, method)(given), getattr(again, method)(given)
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)
    for exact in (False, True)[: 1 if getattr(model, "learn", "") == "frequencies" else 2]:
        np.testing.assert_array_equal(
            model.kernel_matrix(rows[:5], exact=exact), again.kernel_matrix(rows[:5], exact=exact)
        )
    names = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    names -= {"fit_info_"}  # what the fit took, which two fits of the same bits do not share
    assert names <= set(vars(again))
    for name in names - {"features_", "additive_"}:
        a, b = getattr(model, name), getattr(again, name)
        assert type(a) is type(b), name
        if isinstance(a, dict):
            assert a.keys() == b.keys()
        if name == "history_":
            xr.testing.assert_identical(a, b)
            continue
        for x, z in zip(*((v.values() if isinstance(v, dict) else [v]) for v in (a, b)), strict=True):
            np.testing.assert_array_equal(x, z)
            assert np.asarray(x).dtype == np.asarray(z).dtype


@pytest.mark.parametrize("name", sorted(MODELS))
def test_round_trip_is_bitwise(name, tmp_path):
    """save, load, and everything is the same; also after a second round."""
    model = MODELS[name]()
    model.save(tmp_path / "m.dkl")
    again = dkl.load(tmp_path / "m.dkl")
    assert_same_model(model, again)
    again.save(str(tmp_path / "deeper" / "m2.dkl"))
    assert_same_model(model, dkl.load(str(tmp_path / "deeper" / "m2.dkl")))


def test_feature_names_travel(tmp_path):
    """A model of a dataframe still checks its columns."""
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd"))
    regress(rows=frame).save(tmp_path / "m")
    again = dkl.load(tmp_path / "m")
    assert again.feature_names_in_.tolist() == list("abcd")
    assert again.predict(frame).shape == (90,)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("name", ["regressor cv", "classifier strings", "features phase"])
def test_memory_url_round_trip(name):
    """Any fsspec URL; a second save overwrites the first."""
    url = f"memory://dkl-tests/{name.replace(' ', '-')}"
    embed().save(url, overwrite=True)
    model = MODELS[name]()
    model.save(url, overwrite=True)
    assert_same_model(model, dkl.load(url))


def test_a_splitter_does_not_prevent_saving(tmp_path):
    """A model that took hours to fit with cv=KFold(3) can be saved."""
    from sklearn.model_selection import KFold

    model = regress(alpha=[0.1, 1.0], cv=KFold(3))
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(dkl.load(tmp_path / "m").predict(X), model.predict(X))


@pytest.mark.parametrize("name", sorted(name for name in MODELS if "chi2" not in name))
def test_xarray_reads_it(name, tmp_path):
    """A plain Zarr group with named dimensions."""
    model = MODELS[name]()
    model.save(tmp_path / "m")
    with xr.open_zarr(tmp_path / "m", consolidated=False) as data:
        assert data["unit"].dims == ("column" if "exp" in name else "input", "frequency")
        np.testing.assert_array_equal(data["sigma"], model.sigma_)
        if hasattr(model, "coef_"):
            np.testing.assert_array_equal(data["coef"], model.coef_)
            assert data["coef"].dims[-1] == "component"


def test_overwrites_a_model_and_nothing_else(tmp_path):
    """An older model is replaced; a foreign directory, group or file is left alone."""
    embed().save(tmp_path / "m")
    regress().save(tmp_path / "m", overwrite=True)
    assert type(dkl.load(tmp_path / "m")) is dkl.SingleKernelRegressor
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.txt").write_text("cat")
    zarr.open_group(str(tmp_path / "data.zarr"), mode="w").create_array("X", data=X)
    (tmp_path / "file").write_text("text")
    before = sorted(p.name for p in tmp_path.rglob("*"))
    for name in ("photos", "data.zarr", "file"):
        for overwrite in (False, True):
            with pytest.raises(FileExistsError, match=name):
                regress().save(tmp_path / name, overwrite=overwrite)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    assert (tmp_path / "photos" / "cat.txt").read_text() == "cat"


def test_a_url_with_foreign_data_is_left_alone():
    """The same refusal for fsspec URLs: data of others is never deleted."""
    zarr.open_group("memory://dkl-tests/foreign", mode="w").create_array("X", data=X)
    with pytest.raises(FileExistsError, match="foreign"):
        regress().save("memory://dkl-tests/foreign", overwrite=True)
    np.testing.assert_array_equal(zarr.open_group("memory://dkl-tests/foreign", mode="r")["X"][:], X)


def test_a_save_that_fails_leaves_no_half_model(tmp_path):
    """Nothing at a new path, and the old model at an old one."""
    model = regress(alpha=[0.1, 1.0], cv=3)
    model.save(tmp_path / "old")
    wanted = model.predict(X)
    model.cv_results_["std_test_score"] = np.array([object()])
    for name in ("new", "old"):
        with pytest.raises((TypeError, ValueError)):
            model.save(tmp_path / name, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["old"]
    np.testing.assert_array_equal(dkl.load(tmp_path / "old").predict(X), wanted)


def test_a_killed_save_leaves_no_half_model(tmp_path):
    """kill -9 in the middle of a save: nothing at the path, and a later save works."""
    import subprocess
    import sys

    program = (
        "import os, signal, sys, numpy as np\n"
        "from dkl.store import record\n"
        "def arrays():\n"
        "    yield 'unit', (('input',), np.ones(3))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "class Arrays(dict):\n"
        "    def items(self):\n"
        "        return arrays()\n"
        "record.save_record(sys.argv[1], {'estimator': 'SingleKernelRegressor'}, Arrays())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "m")], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    assert list(tmp_path.iterdir()), "the save had begun"
    assert not (tmp_path / "m").exists()
    regress().save(tmp_path / "m")
    assert type(dkl.load(tmp_path / "m")) is dkl.SingleKernelRegressor


def test_a_read_only_directory_is_an_error_and_leaves_nothing(tmp_path):
    """A path below a file cannot be made."""
    (tmp_path / "file").write_text("text")
    with pytest.raises(OSError):
        regress().save(tmp_path / "file" / "m")
    assert (tmp_path / "file").read_text() == "text"


@pytest.fixture
def saved(tmp_path):
    """A saved classifier with folds, phases and classes."""
    classify(CODE, form="phase", alpha=[0.1, 1.0], cv=3).save(tmp_path / "m")
    return tmp_path / "m"


def refused(path, *parts):
    """load raises ValueError with one line that names the path and all the parts."""
    with pytest.raises(ValueError) as caught:
        dkl.load(path)
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line
    for part in parts:
        assert part in line, line


def edit(path: Path, change, seal=True):
    """Change the JSON of a zarr.json; whoever is hostile makes the digest of the attributes again."""
    data = json.loads((path / "zarr.json").read_text())
    change(data)
    if seal and "digest" in data.get("attributes", {}):
        rest = {name: value for name, value in data["attributes"].items() if name != "digest"}
        data["attributes"]["digest"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    (path / "zarr.json").write_text(json.dumps(data))


def test_missing_and_empty_paths(tmp_path):
    """Nothing there, an empty directory, a text file, a pickle."""
    refused(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty")
    (tmp_path / "text").write_text("hello\nworld")
    refused(tmp_path / "text")
    (tmp_path / "model.pkl").write_bytes(pickle.dumps({"a": 1}))
    refused(tmp_path / "model.pkl")
    refused("memory://dkl-tests/nothing-here")


class Executed:
    """A pickle that leaves a trace when it is loaded."""

    def __reduce__(self):
        return Path.touch, (Path("/tmp/dkl-test-executed"),)


def test_nothing_is_executed(tmp_path, saved):
    """A pickle in the place of a chunk, of zarr.json and of the model."""
    trace = Path("/tmp/dkl-test-executed")
    trace.unlink(missing_ok=True)
    payload = pickle.dumps(Executed())
    (tmp_path / "evil").write_bytes(payload)
    refused(tmp_path / "evil")
    (tmp_path / "evil-dir").mkdir()
    (tmp_path / "evil-dir" / "zarr.json").write_bytes(payload)
    refused(tmp_path / "evil-dir")
    next(p for p in (saved / "coef").rglob("*") if p.is_file() and p.name != "zarr.json").write_bytes(payload)
    refused(saved, "coef")
    assert not trace.exists()


def test_foreign_groups(tmp_path):
    """A Zarr group of something else, an array, and a group in Zarr format 2."""
    zarr.open_group(str(tmp_path / "g"), mode="w").create_array("unit", data=X)
    refused(tmp_path / "g", "not a dkl model")
    zarr.create_array(str(tmp_path / "a"), data=X)
    refused(tmp_path / "a")
    zarr.open_group(str(tmp_path / "two"), mode="w", zarr_format=2)
    refused(tmp_path / "two")


def test_every_missing_file(saved, tmp_path):
    """Each chunk and each zarr.json deleted in turn."""
    files = sorted(p.relative_to(saved) for p in saved.rglob("*") if p.is_file())
    assert len(files) > 15
    for name in files:
        copy = tmp_path / "copy"
        shutil.copytree(saved, copy)
        (copy / name).unlink()
        refused(copy, *([name.parts[0]] if len(name.parts) > 1 else []))
        shutil.rmtree(copy)


@pytest.mark.parametrize("damage", ["truncate", "empty", "flip"])
def test_every_damaged_chunk(saved, tmp_path, damage):
    """Each chunk truncated, emptied, or with one byte flipped."""
    for name in sorted(p.relative_to(saved) for p in saved.rglob("*") if p.is_file() and p.name != "zarr.json"):
        copy = tmp_path / "copy"
        shutil.copytree(saved, copy)
        data = bytearray((copy / name).read_bytes())
        middle = len(data) // 2
        if damage == "flip":
            data[middle] ^= 0x10
        (copy / name).write_bytes({"truncate": data[:middle], "empty": b"", "flip": data}[damage])
        refused(copy, name.parts[0])
        shutil.rmtree(copy)


@pytest.mark.parametrize("text", ["", "{", "null", "[1, 2]", "\x00\x01", '{"a": 1}', "[" * 100_000])
@pytest.mark.parametrize("where", ["", "coef"])
def test_json_garbage(saved, text, where):
    """zarr.json that is no JSON, or JSON of something else."""
    (saved / where / "zarr.json").write_text(text)
    refused(saved, where)


ATTRIBUTES = {
    "newer version": (lambda a: a.update(version=99), ["99", "upgrade"]),
    "version as text": (lambda a: a.update(version="1"), ["'1'"]),
    "no version": (lambda a: a.pop("version"), ["None"]),
    "other format": (lambda a: a.update(format="keras"), ["not a dkl model"]),
    "unknown estimator": (lambda a: a.update(estimator="os.system"), ["os.system"]),
    "estimator as list": (lambda a: a.update(estimator=["x"]), ["x"]),
    "no estimator": (lambda a: a.pop("estimator"), ["estimator"]),
    "other estimator": (lambda a: a.update(estimator="SingleKernelRegressor"), ["calibrate"]),
    "no arrays": (lambda a: a.pop("arrays"), ["arrays"]),
    "arrays as list": (lambda a: a.update(arrays=[1]), ["arrays"]),
    "array entry garbled": (lambda a: a["arrays"].update(unit=3), ["unit"]),
    "array left out": (lambda a: a["arrays"].pop("unit"), ["unit"]),
    "array that is not there": (lambda a: a["arrays"].update(ghost=a["arrays"]["unit"]), ["ghost"]),
    "array outside": (lambda a: a["arrays"].update({"../m/unit": a["arrays"]["unit"]}), ["../m/unit"]),
    "wrong shape": (lambda a: a["arrays"]["coef"].update(shape=[1, 1]), ["coef"]),
    "negative shape": (lambda a: a["arrays"]["coef"].update(shape=[-1, 3]), ["coef"]),
    "huge shape": (lambda a: a["arrays"]["coef"].update(shape=[10**12, 10**12]), ["coef"]),
    "wrong dtype": (lambda a: a["arrays"]["coef"].update(dtype="<f4"), ["coef"]),
    "object dtype": (lambda a: a["arrays"]["coef"].update(dtype="|O"), ["coef"]),
    "garbage dtype": (lambda a: a["arrays"]["coef"].update(dtype="__import__('os')"), ["coef"]),
    "no digest": (lambda a: a["arrays"]["coef"].pop("sha256"), ["coef", "digest"]),
    "params as list": (lambda a: a.update(params=[1]), []),
    "unknown param": (lambda a: a["params"].update(evil=1), ["evil"]),
    "param left out": (lambda a: a["params"].pop("kernel"), ["kernel"]),
    "unknown kernel": (lambda a: a["params"].update(kernel="gausian"), ["gausian"]),
    "unknown form": (lambda a: a["params"].update(form="x"), []),
    "paired form": (lambda a: a["params"].update(form="paired"), ["phases"]),
    "skew as text": (lambda a: a["params"].update(skew="x"), ["x"]),
    "skew as null": (lambda a: a["params"].update(skew=None), []),
    "object parameter": (lambda a: a["params"].update(alpha={"array": [1], "dtype": "|O"}), ["object"]),
    "overflowing parameter": (lambda a: a["params"].update(alpha={"array": [10**30], "dtype": "<i8"}), []),
    "wide text parameter": (lambda a: a["params"].update(groups={"array": ["a"] * 9999, "dtype": "<U400000000"}), []),
    "strange dict": (lambda a: a["params"].update(class_weight={"x": 1}), []),
    "unhashable key": (lambda a: a["params"].update(class_weight={"dict": [[[1], 2]]}), []),
    "long slice": (lambda a: a["params"].update(groups=[{"slice": [1, 2, 3, 4]}]), []),
    "no fitted": (lambda a: a.pop("fitted"), ["fitted"]),
    "fitted as text": (lambda a: a.update(fitted="x"), []),
    "no factorisation": (lambda a: a["fitted"].pop("factorisation"), ["factorisation"]),
    "wide classes": (
        lambda a: (a["arrays"].pop("classes"), a["fitted"].update(classes=["a"] * 9999, classes_dtype="<U400000000")),
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ATTRIBUTES))
def test_hostile_attributes(saved, name):
    """Attributes that do not fit the arrays or the estimators."""
    change, parts = ATTRIBUTES[name]
    edit(saved, lambda data: change(data["attributes"]))
    refused(saved, *parts)


def test_huge_declared_shape_on_both_sides(saved):
    """Attributes and array agree on petabytes: refused before anything is allocated."""
    edit(saved, lambda data: data["attributes"]["arrays"]["coef"].update(shape=[10**8, 10**7]))
    edit(saved / "coef", lambda data: data.update(shape=[10**8, 10**7]))
    refused(saved, "8,000,000,000,000,")


def test_huge_chunk(saved):
    """A chunk of petabytes around a small array."""

    def grow(data):
        data["chunk_grid"]["configuration"]["chunk_shape"] = [10**8, 10**7]

    edit(saved / "coef", grow)
    refused(saved, "coef")


@pytest.mark.parametrize("codec", ["gzip", "blosc", "crc32c", "no-such-codec"])
def test_other_codecs(saved, codec):
    """Only what save writes is read."""
    edit(saved / "coef", lambda data: data["codecs"].append({"name": codec, "configuration": {}}))
    refused(saved, "coef")


def test_wrong_shapes_that_agree_with_their_attributes(tmp_path):
    """A whole record whose arrays do not belong together."""
    from dkl.store.record import open_record, save_record

    regress().save(tmp_path / "m")
    attributes, arrays = open_record(tmp_path / "m", 10**9)
    rest = {name: attributes[name] for name in ("estimator", "params", "fitted")}
    for name, wrong in (("coef", np.ones(3)), ("sigma", np.ones(2)), ("unit", np.ones(4)), ("groups", np.ones((2, 2)))):
        changed = {k: (tuple("xyz"[: v.ndim]), v) for k, v in (arrays | {name: wrong}).items()}
        save_record(tmp_path / "wrong", rest, changed, overwrite=True)
        refused(tmp_path / "wrong", "not a complete dkl model")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(tmp_path, value):
    """In any array that predictions are made of: refused by name. The tables of the search may hold them."""
    from dkl.store.record import open_record, save_record

    classify(CODE, form="phase", alpha=[0.1, 1.0], cv=3, calibrate=5).save(tmp_path / "m")
    attributes, arrays = open_record(tmp_path / "m", 10**9)
    rest = {name: attributes[name] for name in ("estimator", "params", "fitted")}
    floats = [name for name, a in arrays.items() if a.dtype.kind == "f"]
    assert {"coef", "intercept", "alpha", "unit", "sigma", "phase", "thresholds", "cv_mean_test_score"} <= set(floats)
    for name in floats:
        wrong = arrays[name].copy()
        wrong.flat[-1] = value
        changed = {k: (tuple("xyz"[: v.ndim]), v) for k, v in (arrays | {name: wrong}).items()}
        save_record(tmp_path / "wrong", rest, changed, overwrite=True)
        if name.startswith("cv_"):
            assert dkl.load(tmp_path / "wrong").predict(X).shape == (90,)
        else:
            refused(tmp_path / "wrong", f"array {name!r}", str(value))


def test_a_changed_attribute_is_noticed(saved):
    """The kernel, or any other parameter, is under the digest."""
    edit(saved, lambda data: data["attributes"]["params"].update(kernel="laplacian"), seal=False)
    refused(saved, "digest")


def test_a_model_of_an_earlier_version(saved):
    """It has no such digest, loads as ever, and inspect says what it lacks."""
    from dkl.cli.describe import describe
    from dkl.cli.inspect import show

    wanted = dkl.load(saved).decision_function(X)
    assert describe(str(saved))["lacks"] is None
    assert "lacks" not in show(describe(str(saved)))
    edit(saved, lambda data: data["attributes"].pop("digest"), seal=False)
    np.testing.assert_array_equal(dkl.load(saved).decision_function(X), wanted)
    assert "a digest of its parameters" in show(describe(str(saved)))
    dkl.load(saved).save(saved, overwrite=True)
    assert describe(str(saved))["lacks"] is None


@pytest.mark.parametrize("name", ["regressor cv", "features phase", "chi2", "pca"])
def test_save_overwrites_only_when_told(tmp_path, name):
    """Models and transformers alike; the old one stays as it was."""
    kinds = {
        "chi2": lambda: dkl.Chi2Features().fit(np.abs(X)),
        "pca": lambda: dkl.FeaturePCA(dkl.FourierFeatures(n_components=10, random_state=0), n_components=3).fit(X),
    }
    model = (kinds | MODELS)[name]()
    model.save(tmp_path / "m")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(FileExistsError, match="overwrite=True"):
        regress().save(tmp_path / "m")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.save(tmp_path / "m")
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    model.save(tmp_path / "m", overwrite=True)
    assert type(dkl.load(tmp_path / "m")) is type(model)


def test_no_pickle_in_dkl():
    """No module of dkl imports pickle or calls eval; one looks into graphs by writing pickles, and reads none."""
    sources = list(Path(dkl.__file__).parent.rglob("*.py"))
    assert len(sources) > 30
    for source in sources:
        text = source.read_text()
        words = ["import pickle", "from pickle", "joblib", "eval(", "exec("]
        assert not re.search(r"allow_pickle\s*=\s*(?!False)", text), f"{source} lets numpy unpickle"
        for word in [*words, "load"] if source.name == "identity.py" else [*words, "cloudpickle"]:
            assert word not in text, f"{source}: {word}"
