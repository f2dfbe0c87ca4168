"""dkl.ingest and what goes on after an interruption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

import dkl
from dkl.engine.progress import Progress, listening
from dkl.store.ingest import open_ingest, run_ingest, staging_path
from dkl.store.staging import Staging
from tests.store.made import small_segments, table, tree


class Stop(Exception):
    """An interruption."""


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """Two channels in many segments."""
    small_segments(monkeypatch, 900)
    frame = table(300, labels=["u", "v"]).drop(columns="colour")
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "x.npy", np.random.default_rng(1).normal(size=(300, 5)))
    return [tmp_path / "t.csv", str(tmp_path / "x.npy")]


OPTIONS = {"scale": ["minmax", "l1"], "split": {"test": 0.3}, "verbose": 0}


def test_paths_and_events(tmp_path, sources):
    """Path objects, the path back, and a pass of bytes for each source, then one of rows."""
    events = []
    with listening(events.append):
        assert dkl.ingest([sources[0], sources[1]], tmp_path / "d.zarr", **OPTIONS) == str(tmp_path / "d.zarr")
    assert [e["name"] for e in events] == [f"reading {sources[0]}", f"reading {sources[1]}", "writing d.zarr"]
    assert events[0]["bytes"] > 0.9 * Path(sources[0]).stat().st_size - 50
    assert events[2]["rows"] == 300
    made = zarr.open(str(tmp_path / "d.zarr"), mode="r")
    assert made.attrs["splits"] == ["train", "test"]


@pytest.mark.parametrize("after", [0, 1, 5, 20])
def test_interrupted_while_reading(tmp_path, monkeypatch, sources, after):
    """What was parsed is not parsed again, and the result is the same."""
    dkl.ingest(sources, tmp_path / "whole.zarr", threads=2, **OPTIONS)
    count, parse = [0], Staging._parse

    def dying(self, *arguments):
        if count[0] == after:
            raise Stop
        count[0] += 1
        parse(self, *arguments)

    dest = str(tmp_path / "d.zarr")
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "_parse", dying)
        with pytest.raises(Stop):
            dkl.ingest(sources, dest, threads=1, **OPTIONS)
    assert not Path(dest).exists()
    with pytest.raises(FileExistsError, match="dkl resume"):
        dkl.ingest(sources, dest, **OPTIONS)
    parsed = []
    monkeypatch.setattr(Staging, "_parse", lambda self, *a: (parsed.append(a[2].number), parse(self, *a)))
    request, folder, _ = open_ingest(dest)
    run_ingest(request, folder, 2, Progress(0))
    total = len(parsed) + after
    assert total > 20
    assert tree(dest) == tree(tmp_path / "whole.zarr")
    assert not Path(staging_path(dest)).exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_interrupted_while_writing(tmp_path, monkeypatch, sources, overwrite):
    """Nothing stands at the destination, or what stood there; then the same data set."""
    dkl.ingest(sources, tmp_path / "whole.zarr", **OPTIONS)
    dest = str(tmp_path / "d.zarr")
    if overwrite:
        dkl.ingest(sources[1], dest, verbose=0)
        before = tree(dest)

    def stop(*arguments):
        raise Stop

    def go_on():
        if Path(staging_path(dest)).exists():
            run_ingest(*open_ingest(dest)[:2], 2, Progress(0))
        else:
            dkl.ingest(sources, dest, overwrite=overwrite, **OPTIONS)

    places = ("dkl.store.assemble.SplitWriter.close", "dkl.store.write.put_in_place", "dkl.store.folder.Folder.end")
    for where in places:
        with monkeypatch.context() as patch:
            patch.setattr(where, stop)
            with pytest.raises(Stop):
                go_on()
        if where is not places[-1]:
            assert tree(dest) == before if overwrite else not Path(dest).exists()
    run_ingest(*open_ingest(dest)[:2], 2, Progress(0))
    assert tree(dest) == tree(tmp_path / "whole.zarr")
    assert not Path(staging_path(dest)).exists()


def test_a_source_that_changed_is_not_resumed(tmp_path, monkeypatch, sources):
    """Rows of two versions are not mixed."""
    dest = str(tmp_path / "d.zarr")

    def stop(*arguments):
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr("dkl.store.ingest.write", stop)
        with pytest.raises(Stop):
            dkl.ingest(sources, dest, **OPTIONS)
    with Path(sources[0]).open("a") as file:
        file.write("1,2,3,u\n")
    with pytest.raises(ValueError, match="have changed"):
        run_ingest(*open_ingest(dest)[:2], 1, Progress(0))
    with pytest.raises(ValueError, match=r"no unfinished ingest|no ingest to resume"):
        open_ingest(str(tmp_path / "other.zarr"))


def test_like_must_be_a_data_set(tmp_path, sources):
    """A Zarr of something else, or nothing."""
    zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    for like in ("g.zarr", "nothing.zarr"):
        with pytest.raises(ValueError, match=r"not a data set|not a Zarr"):
            dkl.ingest(sources, tmp_path / "d.zarr", like=tmp_path / like, verbose=0)


def test_missing_sources(tmp_path):
    """Named, and nothing is left behind."""
    for sources in (tmp_path / "no.csv", [tmp_path / "*.csv"], []):
        with pytest.raises(ValueError):
            dkl.ingest(sources, tmp_path / "d.zarr", verbose=0)
    assert list(tmp_path.iterdir()) == []
