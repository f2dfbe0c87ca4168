"""Corners that a review found: what belongs to the user stays, and files for prediction are read as the model needs."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import zarr

import dkl
from tests.cli.in_process import dkl_in

ROWS = 120


@pytest.fixture
def table(tmp_path):
    """A CSV of two inputs and the classes 1 and 2; the second input is a hundred times the first's size."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 2)) * [1, 100]
    y = 1 + (X[:, 0] + X[:, 1] / 100 > 0)
    text = "\n".join(f"{a!r},{b!r},{c}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True))
    (tmp_path / "t.csv").write_text("a,b,y\n" + text + "\n")
    (tmp_path / "bare.csv").write_text(text + "\n")
    return X, y


def done(folder, words):
    """A command that succeeds."""
    said = dkl_in(folder, *words.split())
    assert said.code == 0, said
    return said


def predictions(path):
    """The column of predictions."""
    with open(path) as file:
        return [row["prediction"] for row in csv.DictReader(file)]


def test_a_fit_removes_nothing_of_the_user(table, tmp_path):
    """Folders whose names only look like those of an interrupted save stay."""
    done(tmp_path, "ingest t.csv d.zarr")
    for name in ("m.zarr.old-backup", "m.zarr.writing-notes"):
        (tmp_path / name).mkdir()
    done(tmp_path, "fit d.zarr m.zarr --n-components 20")
    assert (tmp_path / "m.zarr.old-backup").is_dir()
    assert (tmp_path / "m.zarr.writing-notes").is_dir()


def test_a_folder_changed_within_its_size_is_another_source(tmp_path):
    """An uncompressed Zarr array with other numbers is ingested again, not taken for what stands there."""
    source = zarr.create_array(str(tmp_path / "s.zarr"), shape=(8, 2), chunks=(8, 2), dtype="f4", compressors=None)
    source[:] = 1.0
    done(tmp_path, "ingest s.zarr d.zarr")
    source[:] = 2.0
    done(tmp_path, "ingest s.zarr d.zarr --overwrite")
    assert (zarr.open_array(str(tmp_path / "d.zarr/X"))[:] == 2.0).all()


def test_missing_values_that_the_recipe_has_nothing_for(table, tmp_path):
    """zero fills them, mean is refused, and NaN is never written."""
    done(tmp_path, "ingest t.csv d.zarr --scale standard")
    (tmp_path / "gap.csv").write_text("a,b,y\n,5,1\n2,3,2\n")
    done(tmp_path, "ingest gap.csv zero.zarr --like d.zarr --missing zero")
    constants = dict(zarr.open_group(str(tmp_path / "d.zarr")).attrs)["recipe"]["channels"][0]
    wanted = (0.0 - constants["shift"][0]) * constants["factor"][0]
    got = zarr.open_array(str(tmp_path / "zero.zarr/X"))[:]
    np.testing.assert_allclose(got[0, 0], wanted, rtol=1e-6)
    assert np.isfinite(got).all()
    said = dkl_in(tmp_path, *["ingest", "gap.csv", "mean.zarr", "--like", "d.zarr", "--missing", "mean"])
    assert said.code == 1
    assert "means" in said.err


def test_labels_of_a_file_belong_to_its_rows(table, tmp_path):
    """A model of x.npy and y.npy predicts for new.npy without asking for y.npy again."""
    X, y = table
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "new.npy", X[:7])
    done(tmp_path, "ingest x.npy d.zarr --target y.npy --scale standard")
    done(tmp_path, "fit d.zarr m.zarr --n-components 50")
    done(tmp_path, "predict m.zarr new.npy new.csv")
    done(tmp_path, "predict m.zarr d.zarr all.csv")
    assert predictions(tmp_path / "new.csv") == predictions(tmp_path / "all.csv")[:7]


@pytest.mark.parametrize("words", ["--target lab.txt", "--target 3"])
def test_svmlight_has_its_own_target(tmp_path, words):
    """Another one is refused rather than ignored."""
    (tmp_path / "t.svm").write_text("1 1:2\n0 2:3\n")
    (tmp_path / "lab.txt").write_text("5\n6\n")
    said = dkl_in(tmp_path, *f"ingest t.svm d.zarr {words}".split())
    assert said.code == 1
    assert "first field" in said.err


def test_descriptors_are_for_images(table, tmp_path):
    """A table with descriptors is refused, not read twice."""
    said = dkl_in(tmp_path, *["ingest", "t.csv", "d.zarr", "--descriptor", "hog,lbp"])
    assert said.code == 1
    assert "images" in said.err


def test_weights_of_numbered_classes_come_back_from_the_run(table, tmp_path, monkeypatch):
    """A fit that died before its first block is resumed with {1: 5.0, 2: 1.0}, not with texts."""
    from dkl.cli import fit

    done(tmp_path, "ingest t.csv d.zarr")
    words = "--n-components 20 --class-weight 1=5,2=1"
    done(tmp_path, f"fit d.zarr right.zarr {words}")
    monkeypatch.setattr(fit, "finish", lambda *args, **kwargs: None)
    done(tmp_path, f"fit d.zarr m.zarr {words}")
    monkeypatch.undo()
    done(tmp_path, "resume m.zarr")
    right, resumed = (dkl.load(tmp_path / name) for name in ("right.zarr", "m.zarr"))
    np.testing.assert_array_equal(right.coef_, resumed.coef_)
    assert resumed.class_weight == {1: 5.0, 2: 1.0}


def test_files_without_header_and_without_target(table, tmp_path):
    """Rows without names are read with and without the column of the target, also if one was dropped."""
    done(tmp_path, "ingest bare.csv d.zarr --scale standard")
    done(tmp_path, "fit d.zarr m.zarr --n-components 50")
    lines = (tmp_path / "bare.csv").read_text().splitlines()
    (tmp_path / "inputs.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n")
    done(tmp_path, "predict m.zarr bare.csv with.csv")
    done(tmp_path, "predict m.zarr inputs.csv without.csv")
    assert predictions(tmp_path / "with.csv") == predictions(tmp_path / "without.csv")
    done(tmp_path, "ingest bare.csv one.zarr --drop 0")
    done(tmp_path, "fit one.zarr one-m.zarr --n-components 50")
    done(tmp_path, "predict one-m.zarr bare.csv one.csv")
    assert len(predictions(tmp_path / "one.csv")) == ROWS


def test_a_dataframe_is_not_taken_for_prepared_rows(table, tmp_path):
    """The model of scaled rows refuses raw columns, and says what to do."""
    import pandas as pd

    done(tmp_path, "ingest t.csv d.zarr --scale standard")
    done(tmp_path, "fit d.zarr m.zarr --n-components 20")
    with pytest.raises(ValueError, match="like=model_path"):
        dkl.load(tmp_path / "m.zarr").predict(pd.read_csv(tmp_path / "t.csv")[["a", "b"]])
    dkl.ingest(tmp_path / "t.csv", tmp_path / "again.zarr", like=tmp_path / "m.zarr", verbose=0)
    again, first = (zarr.open_array(str(tmp_path / name / "X"))[:] for name in ("again.zarr", "d.zarr"))
    np.testing.assert_array_equal(again, first)


def test_a_header_that_counts_its_columns(tmp_path):
    """0,1,2 and any name over the target is a header, as numpy's tables have it."""
    (tmp_path / "t.csv").write_text("0,1,2,0\n" + "0.5,1.5,2.5,1\n0.1,1.1,2.1,0\n" * 4)
    said = done(tmp_path, "ingest t.csv d.zarr")
    assert "8 rows x 3 inputs" in said.out


def test_evaluate_prefers_rows_that_were_not_trained_with(table, tmp_path):
    """Of the splits train and valid it takes valid."""
    done(tmp_path, "ingest t.csv d.zarr --split valid=0.3")
    done(tmp_path, "fit d.zarr m.zarr --n-components 20")
    found = json.loads(done(tmp_path, "evaluate m.zarr d.zarr --json").out)
    assert found["rows"] == zarr.open_array(str(tmp_path / "d.zarr/valid/y")).shape[0] < ROWS / 2


def test_left_out_rows_are_counted(table, tmp_path):
    """By ingest, and by predict."""
    (tmp_path / "gaps.csv").write_text("a,b,y\n1,,1\n2,3,2\n,1,1\n4,5,1\n")
    assert "2 rows left out" in done(tmp_path, "ingest gaps.csv g.zarr --missing drop").out
    done(tmp_path, "ingest t.csv d.zarr")
    done(tmp_path, "fit d.zarr m.zarr --n-components 20")
    said = done(tmp_path, "predict m.zarr gaps.csv out.csv --missing drop")
    assert "2 rows with missing values" in said.out
    with open(tmp_path / "out.csv") as file:
        assert [row["row"] for row in csv.DictReader(file)] == ["1", "3"]
