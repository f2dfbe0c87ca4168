"""What the command line says of sigma_l1: the error that it leaves, and that of the refit without it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import dkl
from dkl.estimators.summary import refit_in_words
from tests.cli.in_process import done

L1 = ("--n-components", "60", "--learn", "cv", "--groups", "each", "--sigma-l1", "0.02", "--starts", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set in which two of five inputs matter."""
    where = tmp_path_factory.mktemp("refit")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    table = np.column_stack([X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)])
    np.savetxt(where / "rows.csv", table, delimiter=",", header="a,b,c,d,e,y", comments="")
    done(where, "ingest", "rows.csv", "d.zarr", "--task", "regression")
    return where


def test_both_errors_are_told(folder):
    """By fit and by inspect, for people and in JSON, as the model has them."""
    said = done(folder, "fit", "d.zarr", "m.zarr", *L1)
    model = dkl.load(str(folder / "m.zarr"))
    with_l1, without = (model.refit_errors_[name] for name in ("penalised", "refit"))
    assert without < with_l1
    line = f"refit  error {without:.4g} without sigma_l1, {with_l1:.4g} with it"
    assert line in said
    assert line in done(folder, "inspect", "m.zarr")
    about = json.loads(done(folder, "inspect", "m.zarr", "--json"))["learning"]
    assert about["refit_errors"] == model.refit_errors_
    assert about["iterations"] == model.n_iter_
    assert re.search(rf"learned  by cv: {model.n_iter_} iterations", said)


def test_nothing_is_told_without_sigma_l1(folder):
    """There is no refit then."""
    said = done(folder, "fit", "d.zarr", "plain.zarr", *L1[:-4], "--starts", "1")
    assert "refit  error" not in said
    assert "refit  error" not in done(folder, "inspect", "plain.zarr")


def test_a_refit_that_did_not_help():
    """What was kept is said."""
    assert (
        refit_in_words({"penalised": 0.5, "refit": 0.75}) == "error 0.75 without sigma_l1, 0.5 with it, which is kept"
    )
