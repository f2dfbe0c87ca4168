"""Several kernels from the command line: fit, inspect, evaluate, predict, plan and resume; bad input in one line."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import dkl
from tests.cli.in_process import dkl_in, done

WORDS = [
    "--model",
    "multiple",
    "--n-alphas",
    "6",
    "--eps",
    "0.05",
    "--kernels",
    "gaussian:0.5,laplacian",
    "--channels",
    "0:2,2:4",
]
SMALL = ["--n-components", "10", "--cv", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data set of numbers, and a model."""
    folder = tmp_path_factory.mktemp("several")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    rows = np.column_stack([X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)])
    np.savetxt(folder / "t.csv", rows, delimiter=",", header="a,b,c,d,y", comments="")
    done(folder, "ingest", "t.csv", "d.zarr", "--target", "y", "--split", "test=0.3")
    dkl_in(folder, "fit", "d.zarr", "m.zarr", *WORDS, *SMALL)
    return folder


def test_the_verbs_know_the_family(folder):
    """The file's model is that of Python; inspect tells the kernels that are used."""
    model = dkl.load(folder / "m.zarr")
    same = dkl.MultipleKernelRegressor(
        ["gaussian:0.5", "laplacian"], 10, channels=["0:2", "2:4"], cv=3, n_alphas=6, eps=0.05, random_state=0,
        dtype="float32", verbose=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same.fit(str(folder / "d.zarr" / "train"))
    np.testing.assert_array_equal(model.coef_, same.coef_)
    said = done(folder, "inspect", "m.zarr")
    assert "kernel weights  0:2 " in said
    about = json.loads(done(folder, "inspect", "m.zarr", "--json"))
    assert about["path"].endswith("m.zarr")
    assert set(about["kernel_weights"]) == set(model.selected_groups_)
    figures = json.loads(done(folder, "evaluate", "m.zarr", "d.zarr", "--json"))
    assert figures["r2"] > 0.3
    done(folder, "predict", "m.zarr", "t.csv", "o.csv")
    answers = np.loadtxt(folder / "o.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(
        answers[:, 1],
        model.predict(np.loadtxt(folder / "t.csv", delimiter=",", skiprows=1)[:, :4].astype(np.float32)),
        rtol=1e-4,
        atol=1e-5,
    )
    plan = json.loads(done(folder, "plan", "d.zarr", *WORDS, *SMALL, "--json"))
    assert plan["fits"]


def test_interrupted_fits_are_resumed(folder, monkeypatch):
    """With the same bits as one that was not."""
    from dkl.estimators import multiple

    with monkeypatch.context() as patch:
        patch.setattr(multiple, "fit_groups", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert dkl_in(folder, "fit", "d.zarr", "again.zarr", *WORDS, *SMALL).code == 130
    assert "interrupted fit" in done(folder, "inspect", "again.zarr")
    assert dkl_in(folder, "resume", "again.zarr").code == 0
    model, again = (dkl.load(folder / name) for name in ("m.zarr", "again.zarr"))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.path_.identical(model.path_)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--channels", "0:3,2:4"], "channels '0:3' and '2:4' share 1 input, e.g. 2"),
        (["--channels", "0:2,7:9"], "'7:9': slice(7, 9, None), which is empty"),
        (["--channels", "sensor"], "channels='sensor' is not a coordinate of the inputs"),
        (["--kernels", "gausian:1"], "did you mean 'gaussian'"),
        (["--kernels", "gaussian:1,gaussian:1"], "kernels has 'gaussian:1' twice"),
        (["--loss", "log_loss"], "loss='log_loss' is for classes"),
        (["--penalty", "l1"], "penalty='l1' is not known"),
        (["--rule", "frist"], "did you mean 'first'|rule='frist' is not known"),
        (["--sigma", "2"], "sigma=2.0 is no parameter of MultipleKernelRegressor"),
    ],
)
def test_bad_input(folder, words, said):
    """One line, and no model."""
    answer = dkl_in(folder, "fit", "d.zarr", "no.zarr", "--model", "multiple", *SMALL, *words)
    assert answer.code in (1, 2)
    assert any(part in answer.err for part in said.split("|"))
    assert not (folder / "no.zarr").exists()
