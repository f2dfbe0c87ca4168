"""The toy family on disk and on the command line, by `@register` and an entry point alone: no line of dkl knows it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dkl
from tests.cli.in_process import dkl_in
from tests.contracts.test_toy import CODE, FEW, N, X, Y, everything, regressor
from tests.contracts.toy import ToyClassifier, ToyRegressor
from tests.engine.conftest import ROOT, assert_same_bits, wait_until
from tests.learn.clients import steps_of

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore:learning stopped at:sklearn.exceptions.ConvergenceWarning"),
]


@pytest.mark.parametrize("outputs", [1, 2])
def test_saved_is_loaded(tmp_path: Path, outputs: int) -> None:
    """A regressor: parameters, weights, history and answers, bit for bit; twice."""
    y = Y if outputs == 1 else np.column_stack([Y, X])
    model = regressor(delta=0.3, landmarks=None if outputs == 1 else "uniform").fit(X, y)
    for name in ("first", "second"):
        model.save(tmp_path / name)
        again = dkl.load(tmp_path / name)
        assert type(again) is ToyRegressor
        assert repr(again) == repr(model)
        assert_same_bits(everything(again), everything(model))
        assert again.predict(X).tobytes() == model.predict(X).tobytes()
        assert again.history_["momentum"].attrs == model.history_["momentum"].attrs
        assert again.evaluate(X, y) == model.evaluate(X, y)
        model = again


def test_a_classifier_is_loaded(tmp_path: Path) -> None:
    """Classes that are words, and thresholds."""
    words = np.array(["low", "middle", "high"])[CODE]
    model = ToyClassifier(**FEW, calibrate=20).fit(X, words)
    model.save(tmp_path / "m")
    again = dkl.load(tmp_path / "m")
    assert type(again) is ToyClassifier
    assert again.classes_.tolist() == ["high", "low", "middle"]
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python in which a package with the toy is installed."""
    home = tmp_path_factory.mktemp("site")
    about = home / "toy_family-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-family\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dkl.families]\ntoy = tests.contracts.toy\n")
    path = os.pathsep.join([str(home), str(ROOT)])
    return os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "COLUMNS": "100"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set of numbers, one of classes, and a file of new rows."""
    folder = tmp_path_factory.mktemp("place")
    for name, y, task in (("numbers", Y, "regression"), ("classes", CODE, "classification")):
        table = np.column_stack([X, y])
        np.savetxt(folder / f"{name}.csv", table, delimiter=",", header="a,b,c,y", comments="")
        dkl.ingest(folder / f"{name}.csv", folder / f"{name}.zarr", target="y", task=task, dtype="float64")
    np.savetxt(folder / "new.csv", X[:50], delimiter=",", header="a,b,c", comments="")
    return folder


WORDS = ("--n-components", "16", "--sigma", "0.5", "--max-iter", "8", "--tol", "1e-12")


def dkl_run(place: Path, plugin: dict[str, str], *words: str, code: int = 0) -> str:
    """What `python -m dkl` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "dkl", *words], cwd=place, env=plugin, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stderr if code else done.stdout


def test_verbs(place: Path, plugin: dict[str, str]) -> None:
    """fit, inspect, evaluate and predict of the model that Python makes of the same rows."""
    said = dkl_run(place, plugin, "fit", "numbers.zarr", "m.zarr", "--model", "toy:delta=0.7", *WORDS)
    assert "ToyRegressor" in said
    assert "8 iterations" in said
    model, right = dkl.load(place / "m.zarr"), regressor(dtype="float64").fit(str(place / "numbers.zarr"))
    assert model.delta == 0.7
    assert_same_bits(everything(model), everything(right))
    about = json.loads(dkl_run(place, plugin, "inspect", "m.zarr", "--json"))
    assert (about["estimator"], about["components"], about["inputs"]) == ("ToyRegressor", 16, 3)
    assert about["learning"]["iterations"] == 8
    assert about["learning"]["momentum"] == float(right.history_["momentum"][-1])
    figures = json.loads(said_here(place, "evaluate", "m.zarr", "numbers.zarr", "--json"))
    assert figures["r2"] == pytest.approx(right.score(X, Y), rel=1e-9)
    assert figures["rows"] == N
    dkl_run(place, plugin, "predict", "m.zarr", "new.csv", "answers.csv")
    answers = np.genfromtxt(place / "answers.csv", delimiter=",", names=True)
    np.testing.assert_allclose(answers[answers.dtype.names[-1]], right.predict(X[:50]), rtol=1e-6)


def said_here(place: Path, *words: str) -> str:
    """What `dkl` prints in this process, which has imported the toy."""
    said = dkl_in(place, *words)
    assert said.code == 0, said
    return said.out


def test_classes(place: Path) -> None:
    """The classifier of the family is chosen by the task; its defaults are its own."""
    said_here(place, "fit", "classes.zarr", "c.zarr", "--model", "toy", "--n-components", "16")
    model = dkl.load(place / "c.zarr")
    assert type(model) is ToyClassifier
    assert (model.alpha, model.max_iter) == (1.0, 1000)
    figures = json.loads(said_here(place, "evaluate", "c.zarr", "classes.zarr", "--json"))
    assert figures["accuracy"] == pytest.approx(model.score(X, CODE), abs=2 / N)


def test_plan(place: Path, plugin: dict[str, str]) -> None:
    """dkl plan speaks of the family's own passes."""
    plain = dkl_run(place, plugin, "plan", "numbers.zarr", "--model", "toy", "--n-components", "50")
    assert "50 components" in plain
    assert "for each iteration on all rows" in plain
    found = json.loads(said_here(place, "plan", "numbers.zarr", "--model", "toy", *WORDS, "--json"))
    assert found["flops"] == regressor().plan(X, Y, calibrate=False).flops
    assert found["fits"] is True


REFUSED = [
    (("--model", "toi"), "'toi'"),
    (("--model", "toy", "--learn", "cv"), "learn='cv' is no parameter of ToyRegressor"),
    (("--model", "toy:epsilon=1"), "'epsilon'"),
    (("--model", "toy:delta=-1"), "delta=-1"),
    (("--model", "toy", "--alpha", "auto"), "alpha='auto'"),
]


@pytest.mark.parametrize(("words", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_refusals(place: Path, words: tuple[str, ...], text: str) -> None:
    """A family that there is not, a flag and a parameter that it has not, values that it does not take."""
    said = dkl_in(place, "fit", "numbers.zarr", "none.zarr", *words, *WORDS)
    assert said.code == 1
    assert text in said.err
    assert not (place / "none.zarr").exists()


def test_a_model_of_a_family_that_is_not_installed(place: Path) -> None:
    """Refused with the name of its estimator."""
    regressor().fit(X, Y).save(place / "some.zarr")
    without = os.environ | {"PYTHONPATH": str(ROOT)}
    assert "ToyRegressor" in dkl_run(place, without, "inspect", "some.zarr", code=1)


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a model but the time."""
    group = zarr.open_group(path, mode="r")
    return {name: group[name][...] for name in group.array_keys() if name != "history_seconds"}


def test_resume(place: Path, plugin: dict[str, str]) -> None:
    """kill -9 amid the iterations; dkl resume makes the model of an undisturbed fit."""
    words = ("--model", "toy:delta=0.7", "--n-components", "16", "--sigma", "0.5", "--max-iter", "60", "--tol", "1e-12")
    said_here(place, "fit", "numbers.zarr", "right.zarr", *words)
    command: list[Any] = [sys.executable, "-m", "dkl", "fit", "numbers.zarr", "killed.zarr", *words]
    process = subprocess.Popen(command, cwd=place, env=plugin, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: steps_of(place / "killed.zarr.fit" / "sums") >= 3 or process.poll() is not None, "3 steps")
    finally:
        process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL, "killed before its end"
    assert not (place / "killed.zarr").exists()
    dkl_run(place, plugin, "resume", "killed.zarr")
    assert_same_bits(arrays_of(place / "killed.zarr"), arrays_of(place / "right.zarr"))
    assert not (place / "killed.zarr.fit").exists()
