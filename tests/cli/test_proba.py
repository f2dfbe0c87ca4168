"""Probabilities on the command line, of the toy family (log loss), against the same model in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr

import dkl
import tests.contracts.toy  # noqa: F401  (registers the family)
from tests.cli.in_process import dkl_in, done

NAMES = {"iris": "sklearn:iris", "cancer": "sklearn:breast_cancer"}
TOY = ("--model", "toy", "--n-components", "30", "--max-iter", "60", "--tol", "1e-3")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data sets, a model of the log loss for each, and one of the square loss."""
    folder = tmp_path_factory.mktemp("proba")
    for name, source in NAMES.items():
        done(folder, "ingest", source, f"{name}.zarr", "--scale", "standard")
        done(folder, "fit", f"{name}.zarr", f"{name}-model.zarr", *TOY)
    done(folder, "fit", "iris.zarr", "square.zarr", "--n-components", "30")
    return folder


def columns_of(path: Path) -> dict[str, np.ndarray]:
    """Columns of answers beside row and prediction."""
    if path.suffix == ".zarr":
        group = zarr.open_group(path, mode="r")
        assert "probability" in group
        return {
            column: group[kind][:, i]
            for kind in ("score", "probability")
            if kind in group
            for i, column in enumerate(group[kind].attrs["names"])
        }
    frame = pd.read_csv(path, float_precision="round_trip") if path.suffix == ".csv" else pd.read_parquet(path)
    return {column: frame[column].to_numpy() for column in frame if column not in ("row", "prediction")}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "zarr"])
@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_columns(work: Path, tmp_path: Path, name: str, scores: bool, suffix: str) -> None:
    """One for each class, behind the scores; the numbers are those of predict_proba."""
    out = tmp_path / f"o.{suffix}"
    done(work, "predict", f"{name}-model.zarr", f"{name}.zarr", out, "--proba", *["--scores"] * scores)
    model, X = dkl.load(work / f"{name}-model.zarr"), zarr.open_group(work / f"{name}.zarr", mode="r")["X"][:]
    found, labels = columns_of(out), model.classes_.tolist()
    scored = [f"score {label}" for label in (labels if len(labels) > 2 else labels[1:])] * scores
    assert list(found) == [*scored, *(f"probability {label}" for label in labels)]
    p = np.column_stack([found[f"probability {label}"] for label in labels])
    np.testing.assert_allclose(p, model.predict_proba(X), rtol=1e-12)
    if scores:
        z = np.column_stack([found[column] for column in scored])
        np.testing.assert_allclose(z, model.decision_function(X).reshape(len(X), -1), rtol=1e-12)


def test_refused(work: Path, tmp_path: Path) -> None:
    """A model without probabilities: what to fit with, and no file."""
    said = dkl_in(work, "predict", "square.zarr", "iris.zarr", tmp_path / "o.csv", "--proba")
    assert said.code == 2
    lines = [line for line in said.err.splitlines() if "--proba" in line]
    assert len(lines) == 1
    assert "loss='log_loss'" in lines[0]
    assert not (tmp_path / "o.csv").exists()


def test_refused_of_numbers(work: Path, tmp_path: Path) -> None:
    """Numbers have no probabilities."""
    dkl.SingleKernelRegressor(n_components=5, verbose=0).fit(np.eye(4), np.arange(4.0)).save(work / "numbers.zarr")
    said = dkl_in(work, "predict", "numbers.zarr", "iris.zarr", tmp_path / "o.csv", "--proba")
    assert said.code == 2
    assert "--proba is for classification" in said.err


@pytest.mark.parametrize("name", NAMES)
def test_evaluate(work: Path, name: str) -> None:
    """A line for each figure, and the table; --json has them."""
    words = ("evaluate", f"{name}-model.zarr", f"{name}.zarr")
    found, text = json.loads(done(work, *words, "--json")), done(work, *words)
    for label, key in (("log loss", "log_loss"), ("Brier score", "brier_score"), ("calibration error",) * 2):
        value = found[key.replace(" ", "_")]
        assert any(label in line and f"{value:.4f}" in line for line in text.splitlines()), label
    assert "came true" in text
    square = done(work, "evaluate", "square.zarr", "iris.zarr")
    assert "log loss" not in square
    assert "calibration error" in square


def test_evaluate_a_hinge(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No confidence, no table."""
    monkeypatch.setattr(dkl.SingleKernelClassifier, "_loss_of_scores", lambda self: None)
    words = ("evaluate", "square.zarr", "iris.zarr")
    assert json.loads(done(work, *words, "--json"))["calibration"] is None
    text = done(work, *words)
    assert "came true" not in text
    assert "calibration" not in text
