"""Infinitely many features from the command line: fit, inspect, evaluate, predict, plan and resume; bad input."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import dkl
from dkl.store.checkpoint import Checkpoint
from tests.cli.in_process import dkl_in, done

FEW = ["--model", "infinite", "--n-alphas", "4", "--eps", "0.05"]
WORDS = [*FEW, "--max-features", "6", "--improve", "1", "--bandwidths", "0.5:2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data set of two classes, and a model."""
    folder = tmp_path_factory.mktemp("infinite")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    rows = np.column_stack([X, np.sin(2 * X[:, 0]) > 0])
    np.savetxt(folder / "t.csv", rows, delimiter=",", header="a,b,c,y", comments="")
    done(folder, "ingest", "t.csv", "d.zarr", "--target", "y", "--split", "test=0.3", "--task", "classification")
    dkl_in(folder, "fit", "d.zarr", "m.zarr", *WORDS, "--loss", "squared_hinge")
    return folder


def test_the_verbs_know_the_family(folder):
    """The file's model is that of Python; inspect tells how many features it has."""
    model = dkl.load(folder / "m.zarr")
    same = dkl.InfiniteFeatureClassifier(
        max_features=6, improve=1, bandwidths="0.5:2", loss="squared_hinge", n_alphas=4, eps=0.05, random_state=0,
        dtype="float32", verbose=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same.fit(str(folder / "d.zarr" / "train"))
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert "\nfeatures used" in done(folder, "inspect", "m.zarr")
    about = json.loads(done(folder, "inspect", "m.zarr", "--json"))
    assert about["n_features_used"] == model.n_features_used_ <= 6
    figures = json.loads(done(folder, "evaluate", "m.zarr", "d.zarr", "--json"))
    assert figures["accuracy"] > 0.8
    done(folder, "predict", "m.zarr", "t.csv", "o.csv")
    plan = json.loads(done(folder, "plan", "d.zarr", *WORDS, "--json"))
    assert plan["fits"]


def test_an_input_says_the_task(folder):
    """--tasks NAME: fit, inspect, evaluate, predict from the file, and a task that the fit did not have."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(200, 2)), rng.integers(1, 4, 200)])
    y = rows[:, 0] * (rows[:, 2] - 2) > 0.1  # the sign of the slope is that of the task
    for name, tasks in (("tasks.csv", rows[:, 2]), ("new.csv", rows[:, 2] + 1)):
        table = np.column_stack([rows[:, :2], tasks, y])
        np.savetxt(folder / name, table, delimiter=",", header="a,b,site,y", comments="", fmt="%.6g")
    done(folder, "ingest", "tasks.csv", "t.zarr", "--target", "y", "--task", "classification")
    words = [*WORDS, "--loss", "squared_hinge", "--tasks"]
    assert json.loads(done(folder, "plan", "t.zarr", *words, "site", "--json"))["fits"]
    done(folder, "fit", "t.zarr", "t-model.zarr", *words, "site")
    about = json.loads(done(folder, "inspect", "t-model.zarr", "--json"))
    assert (about["tasks"], about["task_input"]) == ([1.0, 2.0, 3.0], 2)
    assert "input site" in done(folder, "inspect", "t-model.zarr")
    model = dkl.load(folder / "t-model.zarr")
    right = model.predict(rows.astype(np.float32)).astype(int)
    assert json.loads(done(folder, "evaluate", "t-model.zarr", "t.zarr", "--json"))["accuracy"] == (right == y).mean()
    done(folder, "predict", "t-model.zarr", "tasks.csv", "tasks-out.csv")
    told = np.loadtxt(folder / "tasks-out.csv", delimiter=",", skiprows=1)[:, 1]
    assert (told == right).mean() > 0.99
    answer = dkl_in(folder, "predict", "t-model.zarr", "new.csv", "no.csv")
    assert "task 4.0 at row" in answer.err
    answer = dkl_in(folder, "fit", "t.zarr", "no.zarr", *words, "sit")
    assert "did you mean 'site'" in answer.err


def test_options_stand_in_a_file_too(folder):
    """As flags do."""
    text = done(folder, "fit", "--write-config", "-", *FEW[:2], "--max-features", "6", "--bandwidths", "0.5:2")
    assert "max_features = 6" in text
    assert 'bandwidths = "0.5:2"' in text
    (folder / "c.toml").write_text(
        'max_features = 6\nimprove = 1\nn_alphas = 4\neps = 0.05\nbandwidths = "0.5:2"\nloss = "squared_hinge"\n'
    )
    answer = dkl_in(folder, "fit", "d.zarr", "f.zarr", *FEW[:2], "--config", "c.toml")
    assert answer.code == 0, answer.err
    np.testing.assert_array_equal(dkl.load(folder / "f.zarr").coef_, dkl.load(folder / "m.zarr").coef_)


def test_interrupted_fits_are_resumed(folder, monkeypatch):
    """After a round, with the same bits as one that was not."""
    save = Checkpoint.save_step

    def save_step(self, number, *rest):
        save(self, number, *rest)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save_step", save_step)
        assert dkl_in(folder, "fit", "d.zarr", "again.zarr", *WORDS, "--loss", "squared_hinge").code == 130
    assert "interrupted fit" in done(folder, "inspect", "again.zarr")
    assert dkl_in(folder, "resume", "again.zarr").code == 0
    model, again = (dkl.load(folder / name) for name in ("m.zarr", "again.zarr"))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.path_.identical(model.path_)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bandwidths", "2:0.5"], "bandwidths='2:0.5' must be factors of sigma"),
        (["--max-features", "none"], "'none' is not possible"),
        (["--per-round", "0"], "per_round=0"),
        (["--improve", "-1"], "improve=-1"),
        (["--loss", "huber"], "loss='huber' is for numbers"),
        (["--solver", "cg"], "solver='cg' is not known"),
        (["--n-components", "5"], "n_components=5 is no parameter of InfiniteFeatureClassifier"),
        (["--learn", "cv"], "learn='cv' is no parameter of InfiniteFeatureClassifier"),
    ],
)
def test_bad_input(folder, words, said):
    """One line, and no model."""
    answer = dkl_in(folder, "fit", "d.zarr", "no.zarr", "--model", "infinite", *words)
    assert answer.code in (1, 2)
    assert said in answer.err
    assert not (folder / "no.zarr").exists()
