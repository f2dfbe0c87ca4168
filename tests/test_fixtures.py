"""Models and data sets that an earlier version wrote: they load, and say what they said then.

`fixtures/write.py` wrote them with the code of the commit that it names. What is read from disk is the same bit for
bit. The last bits of predictions depend on the kind of CPU, so predictions agree to rounding. With DKL_SAME_MACHINE=1,
on the machine that wrote the fixtures, they agree bit for bit too.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr

import dkl
from tests.cli.in_process import dkl_in
from tests.same_bits.attributes import answers, fitted, stored

HERE = Path(__file__).parent / "fixtures"
ABOUT = json.loads((HERE / "expected.json").read_text())
MODELS, DATASETS = sorted(ABOUT["models"]), sorted(ABOUT["datasets"])
ANSWERS = ("predict", "decision_function", "transform", "kernel_matrix")
EXACT = bool(os.environ.get("DKL_SAME_MACHINE"))
OLDER = "without checksums"
OPTIONS = {"n_components": 16, "dtype": "float64", "alpha": 1.0, "random_state": 0, "verbose": 0}


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    """What the earlier version found and predicted."""
    with np.load(HERE / "expected.npz") as arrays:
        return dict(arrays)


def part_of(expected: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The arrays of one model or data set."""
    return {key.removeprefix(f"{name}/"): array for key, array in expected.items() if key.startswith(f"{name}/")}


def unpack(kind: str, name: str, folder: Path) -> Path:
    """The Zarr folder of an archive."""
    with zipfile.ZipFile(HERE / kind / f"{name}.zip") as archive:
        archive.extractall(folder / f"{name}.zarr")
    return folder / f"{name}.zarr"


def rows_of(name: str, expected: dict[str, np.ndarray]) -> Any:
    """The rows that a model answers for."""
    which = ABOUT["models"][name]["rows"]
    return pd.DataFrame(expected["rows/X"], columns=list("abcd")) if which == "frame" else expected[f"rows/{which}"]


def assert_bits(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    """Everything wanted is there, with the same type, shape and bits; more may be there."""
    assert wanted.keys() <= found.keys(), sorted(wanted.keys() - found.keys())
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name


def assert_close(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray], rounding: float) -> None:
    """The same but for rounding, relative to the largest; on the machine of the fixtures the same bits."""
    if EXACT:
        return assert_bits(found, wanted)
    assert wanted.keys() <= found.keys(), sorted(wanted.keys() - found.keys())
    for name, array in wanted.items():
        if array.dtype.kind != "f":
            np.testing.assert_array_equal(found[name], array, err_msg=name)
            continue
        atol = rounding * np.abs(array).max(initial=0.0)
        np.testing.assert_allclose(found[name], array, rtol=rounding, atol=atol, err_msg=name)
    return None


def assert_says(found: Any, wanted: Any, where: str = "") -> None:
    """Plain values that hold at least what was said before; numbers agree to rounding."""
    if isinstance(wanted, dict):
        assert wanted.keys() <= found.keys(), (where, sorted(wanted.keys() - found.keys()))
        for key, value in wanted.items():
            assert_says(found[key], value, f"{where}.{key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), where
        for i, value in enumerate(wanted):
            assert_says(found[i], value, f"{where}[{i}]")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-12, nan_ok=True), where
    else:
        assert type(found) is type(wanted), where
        assert found == wanted or where.endswith(".lacks"), where  # a sentence for people


def test_nothing_is_lost() -> None:
    """Every archive is expected, and every one expected is there."""
    for kind, names in (("models", MODELS), ("data", DATASETS)):
        assert sorted(path.stem for path in (HERE / kind).glob("*.zip")) == names
    assert {about["estimator"] for about in ABOUT["models"].values()} >= {
        "Chi2Features", "FeaturePCA", "FourierFeatures", "NystroemFeatures", "SingleKernelClassifier",
        "SingleKernelRegressor",
    }  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_loads_as_it_was(name: str, expected: dict, tmp_path: Path) -> None:
    """Its attributes bit for bit, and what it answers."""
    model, wanted = dkl.load(unpack("models", name, tmp_path)), part_of(expected, name)
    assert type(model).__name__ == ABOUT["models"][name]["estimator"]
    assert_bits(fitted(model), {key: array for key, array in wanted.items() if key not in ANSWERS})
    rounding = 1e-5 if name.endswith("float32") else 1e-12
    X = rows_of(name, expected)
    assert_close(answers(model, X), {key: wanted[key] for key in ANSWERS if key in wanted}, rounding)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_saved_again_is_the_same(name: str, expected: dict, tmp_path: Path) -> None:
    """The arrays on disk, the record beside them, and the model that is loaded from them."""
    old, new = unpack("models", name, tmp_path), tmp_path / "again.zarr"
    model = dkl.load(old)
    model.save(new)
    assert_bits(stored(new), stored(old))
    before, after = (dict(zarr.open_group(path, mode="r").attrs) for path in (old, new))
    for part in ("format", "version", "estimator", "params", "fitted"):
        assert_says(after[part], before[part], part)
    again, X = dkl.load(new), rows_of(name, expected)
    assert_bits(fitted(again), fitted(model))
    assert_bits(answers(again, X), answers(model, X))


@pytest.mark.parametrize("name", MODELS)
def test_inspect_says_of_a_model_what_it_said(name: str, tmp_path: Path) -> None:
    """In JSON; the file is intact."""
    unpack("models", name, tmp_path)
    said = dkl_in(tmp_path, "inspect", f"{name}.zarr", "--json")
    assert said.code == 0, said
    assert_says(json.loads(said.out), ABOUT["models"][name]["inspect"])
    assert dkl_in(tmp_path, "inspect", f"{name}.zarr", "--verify").code == 0


def warned(name: str) -> Any:
    """The older layout is told of, and nothing else."""
    return pytest.warns(UserWarning, match=OLDER) if name == "older" else contextlib.nullcontext()


@pytest.mark.parametrize("name", DATASETS)
def test_inspect_says_of_a_data_set_what_it_said(name: str, tmp_path: Path) -> None:
    """In JSON; nothing is damaged."""
    unpack("data", name, tmp_path)
    said = dkl_in(tmp_path, "inspect", f"{name}.zarr", "--json")
    assert said.code == 0, said
    assert_says(json.loads(said.out), ABOUT["datasets"][name]["inspect"])
    said = dkl_in(tmp_path, "inspect", f"{name}.zarr", "--verify")
    assert said.code == 0, said
    assert ("no checksums" in said.out) == (name == "older")


@pytest.mark.parametrize("name", DATASETS)
def test_the_rows_of_a_data_set_are_read_as_they_are(name: str, expected: dict, tmp_path: Path) -> None:
    """Rows and targets that another ingest reads from it: the same bits."""
    path, about = unpack("data", name, tmp_path), ABOUT["datasets"][name]
    dtype = about["inspect"]["splits"][0]["dtype"]
    with warned(name):
        dkl.ingest(f"{path}{about['split']}", str(tmp_path / "copy.zarr"), dtype=dtype, verbose=0)
    folder = f"stored.{about['split'][1:]}/" if about["split"] else "stored."
    wanted = {key.replace(folder, "stored."): array for key, array in part_of(expected, name).items()}
    rows = {key: array for key, array in wanted.items() if key == "stored.y" or key.startswith("stored.X")}
    assert len(rows) == (4 if name == "sparse" else 2), sorted(rows)
    assert_bits(stored(tmp_path / "copy.zarr"), rows)


@pytest.mark.parametrize("name", DATASETS)
def test_a_fit_to_a_data_set_finds_what_it_found(name: str, expected: dict, tmp_path: Path) -> None:
    """Names, groups, recipe and classes as they are; numbers to rounding."""
    about, wanted = ABOUT["datasets"][name], part_of(expected, name)
    path = f"{unpack('data', name, tmp_path)}{about['split']}"
    model = getattr(dkl, about["estimator"])(**OPTIONS)
    with warned(name):
        model.fit(path)
        said = answers(model, path)
    wanted = {key: array for key, array in wanted.items() if not key.startswith("stored.")}
    assert_close(fitted(model) | said, wanted, 1e-9)


def test_a_model_of_the_command_line_predicts_what_it_predicted(tmp_path: Path) -> None:
    """dkl predict, with the model of `dkl fit` and the data set it was fitted to."""
    unpack("models", "ingested", tmp_path)
    unpack("data", "channels", tmp_path)
    said = dkl_in(tmp_path, "predict", "ingested.zarr", "channels.zarr", "answers.csv")
    assert said.code == 0, said
    assert (tmp_path / "answers.csv").read_text() == ABOUT["models"]["ingested"]["answers"]
