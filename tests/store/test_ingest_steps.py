"""The steps of an ingest one by one: what is begun, who may go on, what is put in place and what is put back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zarr

from dkl.sources.batch import Column
from dkl.store import ingest as steps
from dkl.store.folder import Folder
from dkl.store.ingest import begin_ingest, check_resumable, open_ingest, run_ingest, staging_path
from dkl.store.request import Request
from dkl.store.staging import Part
from dkl.store.write import channels_of, put_in_place, staging_dtype
from tests.store.made import ingest

X = np.arange(24.0).reshape(12, 2)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with two sources, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", X=X, y=np.arange(12) % 2)
    np.savez("b.npz", X=X + 100, y=np.arange(12) % 2)
    return tmp_path


class Told:
    """What is said of progress: the passes, and what each counts."""

    def __init__(self):
        self.passes = []

    def name(self, what):
        """Of the pass."""
        return self

    def begin(self, total, unit="rows"):
        """So much is to be done."""
        self.passes.append([total, unit, 0])

    def advance(self, size):
        """So much is done."""
        self.passes[-1][2] += size

    def end(self):
        """Nothing is left."""


def asked(sources=("a.npz",), dest="d.zarr", **how):
    """A request."""
    return Request(tuple(sources), dest, **how)


def names(folder):
    """What lies there."""
    return sorted(p.name for p in folder.iterdir())


def test_what_is_begun(place):
    """The journal says what was asked, and from where; a second one is told to resume."""
    folder = begin_ingest(asked(seed=3))
    assert folder.path == staging_path("d.zarr") == str(place / "d.zarr.ingest")
    journal = json.loads((place / "d.zarr.ingest" / "ingest.json").read_text())
    assert (journal["format"], journal["version"], journal["from"]) == ("dkl-ingest", 1, str(place))
    assert journal["secret"] is False
    assert journal["request"]["seed"] == 3
    assert [entry[0] for entry in journal["origin"][1:]] == ["a.npz"]
    request, again, where = open_ingest("d.zarr")
    assert (request, again.path, where) == (asked(seed=3), folder.path, str(place))
    check_resumable(request, folder)
    with pytest.raises(FileExistsError, match=r"running or was interrupted; run dkl resume d\.zarr,"):
        begin_ingest(asked(seed=3))


def test_what_is_no_unfinished_ingest(place):
    """Nothing, and a folder of something else."""
    with pytest.raises(ValueError, match="holds no ingest to resume"):
        open_ingest("d.zarr")
    folder = Folder(staging_path("d.zarr"))
    folder.create()
    for journal in ([], {}, {"format": "a"}, {"format": "zoo"}):
        folder.write_json("ingest.json", journal)
        with pytest.raises(ValueError, match="holds no ingest to resume"):
            open_ingest("d.zarr")


def test_a_secret_is_typed_again(place, monkeypatch):
    """The same request goes on, another is told that one is under way; resume asks for it."""
    monkeypatch.setattr(steps, "_open_sources", lambda request: [])
    url = "https://me:{}@host/a.csv"
    folder = begin_ingest(asked([url.format("word")], seed=3))
    assert "word" not in (place / "d.zarr.ingest" / "ingest.json").read_text()
    assert begin_ingest(asked([url.format("other")], seed=3)).path == folder.path
    for seed in (2, 4):
        with pytest.raises(FileExistsError, match="is running or was interrupted"):
            begin_ingest(asked([url.format("word")], seed=seed))
    with pytest.raises(FileExistsError, match="is running or was interrupted"):
        begin_ingest(asked(["a.npz"], seed=3))
    request, folder, _ = open_ingest("d.zarr")
    with pytest.raises(ValueError, match="was given with a password or a token, which is not stored"):
        check_resumable(request, folder)
    folder.write_json("ingest.json", ["damaged"])
    with pytest.raises(FileExistsError, match="is running or was interrupted"):
        begin_ingest(asked([url.format("word")], seed=3))


@pytest.mark.parametrize(
    ("sources", "dest", "line"),
    [
        (["a.npz", "./d.zarr/"], "d.zarr", "is both a source and the destination"),
        (["d.zarr/train"], "d.zarr", "is inside the destination"),
        (["a.npz"], "file", "is not a data set of dkl and is not overwritten"),
        (["a.npz"], "none/d.zarr", "does not exist; create it first"),
    ],
)
def test_destinations_that_cannot_be(place, sources, dest, line):
    """Whatever is said of overwriting; nothing is begun."""
    (place / "file").touch()
    with pytest.raises((ValueError, OSError), match=line):
        begin_ingest(asked(sources, dest, overwrite=True))
    assert names(place) == ["a.npz", "b.npz", "file"]


def test_a_data_set_is_replaced_when_that_is_said(place):
    """Else it stays; a neighbour whose name begins alike is no part of it."""
    ingest("a.npz", place / "d.zarr")
    with pytest.raises(FileExistsError, match="choose another destination or use --overwrite"):
        begin_ingest(asked())
    request = asked(["b.npz"], overwrite=True)
    folder = begin_ingest(request)
    told = Told()
    run_ingest(request, folder, 1, told)
    assert [unit for _, unit, _ in told.passes] == ["bytes", "rows"]
    assert told.passes[1] == [12, "rows", 12]
    assert told.passes[0][0] > 0
    np.testing.assert_array_equal(zarr.open(str(place / "d.zarr"), mode="r")["X"][:], X + 100)
    assert names(place) == ["a.npz", "b.npz", "d.zarr"]


def test_what_stands_is_not_made_again(place):
    """Killed when only the staging folder was left, it ends at once; a source that changed is refused."""
    request = asked()
    folder = begin_ingest(request)
    journal = folder.read_json("ingest.json")
    run_ingest(request, folder, 1, Told())
    made = os.stat(place / "d.zarr" / "zarr.json").st_mtime_ns
    folder.begin("ingest.json", journal)
    run_ingest(request, folder, 1, Told())
    assert names(place) == ["a.npz", "b.npz", "d.zarr"]
    assert os.stat(place / "d.zarr" / "zarr.json").st_mtime_ns == made
    for origin in ([], ["~"], [journal["origin"][0], ["z.npz", None]]):
        folder.begin("ingest.json", journal | {"origin": origin})
        with pytest.raises(ValueError, match="have changed; remove"):
            run_ingest(request, folder, 1, Told())
        folder.end("ingest.json")


@pytest.mark.parametrize(
    ("how", "dtype"),
    [
        ({}, "float32"),
        ({"dtype": "float32"}, "float32"),
        ({"dtype": "float64"}, "float64"),
        ({"missing": "drop"}, "float32"),
        ({"missing": "mean"}, None),
        ({"missing": "zero"}, None),
        ({"scale": ("minmax",)}, None),
        ({"scale": ("none", "l1")}, None),
        ({"recipe": {}}, None),
        ({"recipe": {}, "missing": "drop"}, None),
    ],
)
def test_numbers_that_nothing_is_computed_with_are_staged_narrow(how, dtype):
    """Only those."""
    assert staging_dtype(asked(**how)) == (dtype and np.dtype(dtype))


@pytest.mark.parametrize("aside", [False, True])
def test_putting_in_place(tmp_path, aside):
    """What was there goes aside, over what lies there from an earlier try; without leave it stays."""
    paths = {name: tmp_path / name for name in ("fresh", "dest", "aside")}
    for name in ("fresh", "dest", *(["aside"] if aside else [])):
        paths[name].mkdir()
        (paths[name] / name).touch()
    with pytest.raises(FileExistsError, match="appeared during the ingest; move it away and run dkl resume"):
        put_in_place(*map(str, (paths["fresh"], paths["dest"], paths["aside"])), False)
    assert names(paths["dest"]) == ["dest"]
    put_in_place(*map(str, (paths["fresh"], paths["dest"], paths["aside"])), True)
    assert (names(paths["dest"]), names(paths["aside"]), paths["fresh"].exists()) == (["fresh"], ["dest"], False)
    paths["dest"].rename(paths["fresh"])
    put_in_place(*map(str, (paths["fresh"], paths["dest"], paths["aside"])), False)
    assert names(paths["dest"]) == ["fresh"]


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("aside", [False, True])
def test_giving_up(place, there, aside):
    """What was to be replaced is put back, unless something is there; the staging folder goes."""
    folder = Folder(staging_path("d.zarr"))
    folder.begin("ingest.json", {})
    if aside:
        (place / "d.zarr.ingest" / "replaced").mkdir()
        (place / "d.zarr.ingest" / "replaced" / "old").touch()
    if there:
        (place / "d.zarr").mkdir()
        (place / "d.zarr" / "new").touch()
    steps._give_up(asked(), folder)
    assert not (place / "d.zarr.ingest").exists()
    found = names(place / "d.zarr") if (place / "d.zarr").exists() else None
    assert found == (["new"] if there else ["old"] if aside else None)


@pytest.mark.parametrize("complete", [True, False, None, "other"])
def test_giving_up_on_a_store(complete):
    """A data set that is whole stays, and what is none; a half one goes."""
    url = "memory://given-up/d.zarr"
    group = zarr.open_group(url, mode="w")
    attributes = {"format": "dkl-dataset" if complete != "other" else "zoo"}
    group.attrs.put(attributes | ({} if complete is None else {"complete": complete is True}))
    folder = Folder(staging_path(url))
    folder.begin("ingest.json", {})
    steps._give_up(asked(dest=url), folder)
    assert folder.names() == set()
    assert steps.exists(url) == (complete in (True, "other"))
    steps.remove(url)


def test_whether_it_stands(place):
    """Whole, and of the same origin."""
    group = zarr.open_group("d.zarr", mode="w")
    for attributes, stands in (
        ({"complete": True, "origin": [1]}, True),
        ({"complete": True, "origin": [2]}, False),
        ({"complete": False, "origin": [1]}, False),
        ({"origin": [1]}, False),
    ):
        group.attrs.put({"format": "dkl-dataset"} | attributes)
        assert steps._is_finished(asked(), [1]) is stands
    group.attrs.put({"complete": True, "origin": [1]})
    assert steps._is_finished(asked(), [1]) is False
    assert steps._is_finished(asked(dest="nothing"), [1]) is False


def opened(channel, path, *columns):
    """A file of a channel."""
    return steps.Opened(channel, path, SimpleNamespace(columns=[Column(c) for c in columns] or None))


def test_parts_of_channels():
    """Files of one channel are further rows of it, in order; their columns must be the same."""
    staged = [[Part(f"p{number}", 1, {}), Part(f"q{number}", 1, {})] for number in range(4)]
    files = [opened(1, "a", "x"), opened(0, "b"), opened(1, "c", "x"), opened(0, "d")]
    parts, firsts = channels_of(files, staged)
    assert [[p.name for p in channel] for channel in parts] == [["p1", "q1", "p3", "q3"], ["p0", "q0", "p2", "q2"]]
    assert [first.path for first in firsts] == ["b", "a"]
    for other in ("w", "y"):
        with pytest.raises(ValueError, match="'c' and 'a' have different columns"):
            channels_of([files[0], opened(1, "c", other)], staged[:2])


def test_sources_and_their_channels(place):
    """One channel for each source; with rows all are one; a recipe wants as many as it has."""
    np.savez("c1.npz", X=X, y=X[:, 0])
    np.savez("c2.npz", X=X, y=X[:, 0])
    found = steps._open_sources(asked(["a.npz", "c*.npz", "b.npz"]))
    assert [(f.channel, os.path.basename(f.path)) for f in found] == [
        (0, "a.npz"), (1, "c1.npz"), (1, "c2.npz"), (2, "b.npz"),
    ]  # fmt: skip
    assert [f.channel for f in steps._open_sources(asked(["a.npz", "b.npz"], rows=True))] == [0, 0]
    ingest(["a.npz", "b.npz"], place / "two.zarr")
    recipe = zarr.open("two.zarr", mode="r").attrs["recipe"]
    assert len(steps._open_sources(asked(["a.npz", "b.npz"], recipe=recipe))) == 2
    for sources in (["a.npz"], ["a.npz", "b.npz", "c1.npz"]):
        with pytest.raises(ValueError, match=f"{len(sources)} sources were given; the data set has 2 channels"):
            steps._open_sources(asked(sources, recipe=recipe))
    for descriptor in (("hog",), ("pixels", "hog"), ("zz",)):
        with pytest.raises(ValueError, match="applies to images"):
            steps._open_sources(asked(descriptor=descriptor))


@pytest.mark.parametrize("scale", [("minmax",), ("none", "minmax"), ("minmax", "none")])
def test_one_scale_for_all_or_one_for_each(place, scale):
    """Each channel's own."""
    made = ingest(["a.npz", "b.npz"], place / "d.zarr", scale=scale, dtype="float64")
    each = scale * 2 if len(scale) == 1 else scale
    for c, (how, raw) in enumerate(zip(each, (X, X + 100), strict=True)):
        low, high = raw.min(axis=0), raw.max(axis=0)
        expected = (raw - (low + high) / 2) * 2 / (high - low) if how == "minmax" else raw
        np.testing.assert_allclose(made["X"][:, 2 * c : 2 * c + 2], expected, atol=1e-12)
    assert made.attrs["task"] == "classification"
    assert made.attrs["dropped"] == 0


def test_a_split_without_rows(place):
    """It is named, with the rows there are; so is a data set of which every row is dropped."""
    with pytest.raises(ValueError, match="none of the 12 rows is left for test"):
        ingest("a.npz", place / "d.zarr", split={"test": 1e-9})
    np.savez("n.npz", X=X * np.nan, y=np.arange(12) % 2)
    with pytest.raises(ValueError, match="none of the 12 rows is left for the data set"):
        ingest("n.npz", place / "d.zarr", missing="drop")
    assert names(place) == ["a.npz", "b.npz", "n.npz"]


def test_on_a_store(place):
    """Written where it belongs, and replaced there when that is said."""
    url = "memory://ingested/d.zarr"
    for source, expected in (("a.npz", X), ("b.npz", X + 100)):
        request = asked([source], url, overwrite=True)
        run_ingest(request, begin_ingest(request), 1, Told())
        made = zarr.open(url, mode="r")
        np.testing.assert_array_equal(made["X"][:], expected)
        assert made.attrs["complete"] is True
        assert Folder(staging_path(url)).names() == set()
    steps.remove(url)


class Watching(Told):
    """Looks at the unfinished data set while rows are written."""

    def advance(self, size):
        """What the whole, and each split, say of themselves."""
        super().advance(size)
        if self.passes[-1][1] == "rows":
            begun = [f"d.zarr.ingest/result.zarr/{name}/zarr.json" for name in (".", "train", "test")]
            self.said = [json.loads(Path(file).read_text())["attributes"] for file in begun]


def test_nothing_is_complete_while_it_is_written(place):
    """Neither the whole nor a split; at the end both say so, with their sizes."""
    gaps = X.copy()
    gaps[[2, 7, 8], 1] = np.nan
    np.savez("g.npz", X=gaps, y=np.array(list("abcabcabcabc")))
    request, told = asked(["g.npz"], split=(("test", 0.4),), missing="drop"), Watching()
    run_ingest(request, begin_ingest(request), 1, told)
    assert told.said == [{"format": "dkl-dataset", "version": 1, "complete": False}] * 3
    root = zarr.open_group("d.zarr", mode="r")
    said = dict(root.attrs)
    kept = sorted([*root["train"]["row"][:].tolist(), *root["test"]["row"][:].tolist()])
    assert kept == [0, 1, 3, 4, 5, 6, 9, 10, 11]
    sizes = {name: root[name].attrs["rows"] for name in ("train", "test")}
    assert (said["rows"], said["dropped"], said["splits"], said["sizes"]) == (9, 3, ["train", "test"], sizes)
    assert said["task"] == root["train"].attrs["task"] == "classification"
    for name in sizes:
        group = root[name]
        assert group["X"].shape[0] == sizes[name] == group["row"].shape[0]
        np.testing.assert_array_equal(group["X"][:], X[group["row"][:]])
        assert [group["y"].attrs["classes"][k] for k in group["y"][:]] == ["abc"[i % 3] for i in group["row"][:]]
        assert (group.attrs["complete"], group.attrs["split"], said["complete"]) == (True, name, True)


def test_a_data_set_is_known_by_what_it_is_made_of(place):
    """The same sources and options have the same id, others another one; without a target there is no y."""
    first = ingest("a.npz", place / "one.zarr", target="none")
    assert (first.attrs["task"], "y" in first) == ("none", False)
    assert len(first.attrs["id"]) == 64
    again = ingest("a.npz", place / "one.zarr", target="none", overwrite=True)
    other = ingest("b.npz", place / "two.zarr", target="none")
    assert len({first.attrs["id"], other.attrs["id"]}) == 2
    assert again.attrs["recipe"] == first.attrs["recipe"]
