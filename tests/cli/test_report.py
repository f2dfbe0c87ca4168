"""dkl report: one page from the command line, whose command makes the model again."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import dkl
from dkl.cli.report import command_of, flag_text
from tests.cli.in_process import dkl_in, done

FIT = ("--n-components", "20", "--cv", "3", "--alpha", "1e-5,0.01,10")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set with two splits, a file of new rows, and a model."""
    folder = tmp_path_factory.mktemp("report")
    iris = load_iris(as_frame=True)
    frame: pd.DataFrame = iris.data.assign(kind=iris.target_names[iris.target])
    frame.to_csv(folder / "iris.csv", index=False)
    frame.iloc[::5].to_csv(folder / "new.csv", index=False)
    split = ("--split", "test=0.3")
    done(folder, "ingest", "iris.csv", "iris.zarr", "--target", "kind", "--scale", "standard", *split)
    done(folder, "fit", "iris.zarr", "model.zarr", *FIT)
    return folder


def facts_of(path: Path) -> dict:
    """The JSON in the page."""
    found = re.search(r'<script type="application/json" id="dkl-report">(.*?)</script>', path.read_text(), re.S)
    assert found is not None
    return json.loads(found[1])


def test_every_split_is_scored(work: Path) -> None:
    """As `dkl evaluate` does; the page says where it is."""
    said = done(work, "report", "model.zarr", "iris.zarr", "-o", "r.html")
    assert "r.html is " in said
    splits = facts_of(work / "r.html")["splits"]
    assert list(splits) == ["train", "test"]
    for split in splits:
        found = json.loads(done(work, "evaluate", "model.zarr", "iris.zarr", "--split", split, "--json"))
        assert splits[split]["accuracy"]["value"] == pytest.approx(found["accuracy"], rel=1e-4)
    done(work, "report", "model.zarr", "iris.zarr", "--split", "test", "--title", "Irises <b>", "-o", "one.html")
    assert list(facts_of(work / "one.html")["splits"]) == ["test"]
    assert "<h1>Irises &lt;b&gt;</h1>" in (work / "one.html").read_text()


def test_the_command_makes_the_model_again(work: Path) -> None:
    """Run as it stands on the page, with another name for the model: the same weights."""
    done(work, "report", "model.zarr", "iris.zarr", "-o", "again.html", "--overwrite")
    text = re.search(r"<pre>(.*?)</pre>", (work / "again.html").read_text(), re.S)
    assert text is not None
    words = shlex.split(unescape(text[1]))
    assert words[:4] == ["dkl", "fit", "iris.zarr", "model.zarr"]
    done(work, *["second.zarr" if word == "model.zarr" else word for word in words[1:]])
    first, second = dkl.load(work / "model.zarr"), dkl.load(work / "second.zarr")
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_the_command_has_no_secret() -> None:
    """A page is passed on; what a URL holds beside its place stays here."""
    data, model = "https://me:hunter2@host/rows.csv?sig=s3cret", "s3://key:s3cret@bucket/model.zarr"
    said = command_of(model, (data,))(dkl.SingleKernelRegressor())
    assert said.startswith("dkl fit https://host/rows.csv s3://bucket/model.zarr --task regression")
    assert "s3cret" not in said
    assert "hunter2" not in said


def test_values_of_flags() -> None:
    """As they are typed."""
    assert [flag_text(value) for value in (True, None, 0.5, [0.1, 1.0], "each")] == [
        "yes",
        "none",
        "0.5",
        "0.1,1.0",
        "each",
    ]


def test_files_and_no_rows_at_all(work: Path) -> None:
    """Files are prepared as the training rows were; without DATA there are no scores."""
    done(work, "report", "model.zarr", "new.csv", "-o", "new.html")
    found = json.loads(done(work, "evaluate", "model.zarr", "new.csv", "--json"))
    told = facts_of(work / "new.html")["splits"]["rows"]
    assert (told["rows"], told["accuracy"]["value"]) == (30, pytest.approx(found["accuracy"], rel=1e-4))
    done(work, "report", "model.zarr", "-o", "none.html")
    assert facts_of(work / "none.html")["splits"] == {}
    assert "DATA.zarr" in facts_of(work / "none.html")["command"]


def test_refusals(work: Path) -> None:
    """One line, exit code 1, and no file."""
    (work / "there.html").write_text("mine")
    for words, said in (
        (("model.zarr", "-o", "there.html"), "'there.html' exists; choose another name or use --overwrite"),
        (("model.zarr", "-o", "r.pdf"), "does not end in .html; use r.html"),
        (("model.zarr", "iris.zarr", "--split", "tset", "-o", "n.html"), "has no split 'tset'"),
        (("iris.zarr", "-o", "n.html"), "iris.zarr"),
    ):
        found = dkl_in(work, "report", *words)
        assert found.code == 1, found
        assert said in found.err
        assert len(found.err.splitlines()) == 1
    assert (work / "there.html").read_text() == "mine"
    assert not (work / "n.html").exists()
