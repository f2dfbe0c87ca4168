"""Staged parts: every array where a reader expects it, what is known of each part, and channels cut alike."""

from __future__ import annotations

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.sources.batch import Batch, Coded, Segment
from dkl.store.folder import Folder
from dkl.store.staging import MOST_LABELS, Aligned, Staging, rows_of

SILENT = SimpleNamespace(advance=lambda size: None)
TOP = float(np.finfo("f4").max)


class Rows:
    """A source of batches that are there already; what is parsed is noted, an exception is raised."""

    name = "rows"

    def __init__(self, *batches):
        self.batches, self.parsed, self.asked = batches, [], False

    def segments(self):
        """One for each."""
        self.asked = True
        for number, batch in enumerate(self.batches):
            yield Segment(number, batch, 1)

    def parse(self, segment):
        """What it is."""
        self.parsed.append(segment.number)
        if isinstance(segment.data, Exception):
            raise segment.data
        return segment.data


@pytest.fixture
def folder(tmp_path):
    """An empty staging folder."""
    made = Folder(str(tmp_path / "staged"))
    made.create()
    return made


@pytest.fixture
def pool():
    """Two threads."""
    with ThreadPoolExecutor(2) as threads:
        yield threads


def stage(folder, pool, *batches, number=0, dtype=None, most=2):
    """The parts of a source of batches."""
    staging = Staging(folder, dtype)
    staging.stage(number, Rows(*batches), pool, most, SILENT)
    return staging, staging.parts(number)


def arrays_on_disk(folder, name):
    """By the description: a line of JSON up to a multiple of 64 bytes, then each array from such a multiple on."""
    data = folder.read(name)
    place = data.index(b"\n") + 1
    assert place % 64 == 0
    assert place <= 64 * math.ceil((len(data[:place].rstrip()) + 1) / 64)
    found = {}
    for key, kind, shape in json.loads(data[:place]):
        found[key] = np.ndarray(shape, kind, data, place)
        place += 64 * math.ceil(found[key].nbytes / 64)
    assert place == len(data)
    return found


@pytest.mark.parametrize("width", [*range(1, 18), 63, 64, 65])
def test_arrays_lie_at_multiples_of_64_bytes(folder, pool, width):
    """For heads and arrays of every length."""
    X, y = np.arange(3.0 * width).reshape(3, width), np.array([1.0, 2.0, 3.0])
    text = {"t" * width: Coded(np.array([0, 1, 0], np.int32), ["a", "b"])}
    staging, parts = stage(folder, pool, Batch(X, text, y))
    found = arrays_on_disk(folder, "part-0-0.rows")
    assert list(found) == ["X", "text0", "y"]
    for name, wanted in (("X", X), ("text0", text["t" * width].codes), ("y", y)):
        np.testing.assert_array_equal(found[name], wanted)
    again = staging.load(parts[0])
    np.testing.assert_array_equal(again.X, X)
    np.testing.assert_array_equal(again.y, y)
    assert again.text["t" * width].codes.tolist() == [0, 1, 0]
    assert again.text["t" * width].names == ["a", "b"]


def test_sparse_rows_come_back(folder, pool):
    """With their width, and targets that are names."""
    X = sp.csr_array(np.array([[0.0, 2.0, 0.0, 4.0], [5.0, 0.0, 0.0, 0.0]]))
    staging, parts = stage(folder, pool, Batch(X, y=Coded(np.array([1, -1], np.int32), ["p", "q"])))
    again = staging.load(parts[0])
    assert again.X.shape == (2, 4)
    np.testing.assert_array_equal(again.X.toarray(), X.toarray())
    assert (again.y.codes.tolist(), again.y.names) == ([1, -1], ["p", "q"])
    assert staging.load(stage(folder, pool, Batch(X), number=1)[1][0]).y is None


@pytest.mark.parametrize(
    ("X", "dtype", "kept"),
    [
        ([[1.5, TOP]], "float32", "float32"),
        ([[1.5, 1e39]], "float32", "float64"),
        ([[1.5, -1e39]], "float32", "float64"),
        ([[1.5, np.inf]], "float32", "float32"),
        ([[1.5, np.nan]], "float32", "float32"),
        ([[1.5, 2.5]], None, "float64"),
        ([[1.5, 2.5]], "float64", "float64"),
        (np.array([[1, 2]], "uint8"), "float32", "uint8"),
        (np.array([[1, 2]], "float32"), "float64", "float32"),
        (np.array([[1, 2]], "float16"), "float64", "float16"),
    ],
)
def test_numbers_are_staged_narrow(folder, pool, X, dtype, kept):
    """float64 in the precision of the data set, unless one would become infinite; others as they are."""
    X = np.array(X)
    stage(folder, pool, Batch(X), dtype=dtype and np.dtype(dtype))
    found = arrays_on_disk(folder, "part-0-0.rows")["X"]
    assert found.dtype == kept
    np.testing.assert_array_equal(found, X.astype(kept))


def summary(folder, pool, batch):
    """What is known of a batch."""
    return stage(folder, pool, batch)[1][0].summary


def test_what_is_known_of_dense_rows(folder, pool):
    """Rows, width, kind, and names of texts."""
    text = {"t": Coded(np.array([0, 0]), ["a", "b"])}
    found = summary(folder, pool, Batch(np.ones((2, 3), np.float32), text, Coded(np.array([0, 1]), ["x", "y"])))
    expected = {"rows": 2, "dtype": "float32", "sparse": False, "text": {"t": ["a", "b"]}, "width": 3}
    assert found == expected | {"labels": ["x", "y"]}


@pytest.mark.parametrize(("indices", "ends"), [([3, 7, 5], (3, 7)), ([0, 2, 1], (0, 2)), ([], (1, 0))])
def test_what_is_known_of_sparse_rows(folder, pool, indices, ends):
    """The first and the last column that is stored; without any, what makes no channel wider."""
    bounds = [0, len(indices), len(indices)]
    X = sp.csr_array((np.ones(len(indices)), np.array(indices, np.int32), bounds), shape=(2, 9))
    found = summary(folder, pool, Batch(X))
    expected = {"rows": 2, "dtype": "float64", "sparse": True, "text": {}, "entries": len(indices)}
    assert found == expected | {"lowest": ends[0], "highest": ends[1]}


@pytest.mark.parametrize(
    ("y", "values", "largest"),
    [
        ([3.0, -7.0, 3.0, np.nan], [-7.0, 3.0], 7.0),
        ([3.0, 0.5], None, None),
        ([np.nan, np.nan], [], 0.0),
        ([0.0, 0.0], [0.0], 0.0),
        (np.arange(MOST_LABELS), list(range(MOST_LABELS)), MOST_LABELS - 1),
        (np.arange(MOST_LABELS + 1), None, MOST_LABELS),
    ],
)
def test_what_is_known_of_targets(folder, pool, y, values, largest):
    """Whole numbers are listed, up to 5000 of them."""
    assert MOST_LABELS == 5000
    y = np.array(y, float)
    found = summary(folder, pool, Batch(np.ones((len(y), 1)), y=y))
    assert (found["values"], found["largest"]) == (values, largest)


def one(value, rows=1):
    """A batch of equal rows."""
    return Batch(np.full((rows, 1), float(value)))


def test_what_is_staged_is_not_parsed_again(folder, pool):
    """Of a source that was interrupted only the rest; one that was read to its end is not even looked at."""
    source = Rows(one(0), one(1), one(2))
    staging = Staging(folder)
    staging.stage(0, source, pool, 2, SILENT)
    assert folder.read_json("source-0.json") == {"parts": 3}
    for name in ("source-0.json", "part-0-1.json"):
        Path(folder.path, name).unlink()
    again = Rows(one(0), one(1), one(2))
    Staging(folder).stage(0, again, pool, 2, SILENT)
    assert again.parsed == [1]
    whole = Rows(one(0))
    Staging(folder).stage(0, whole, pool, 2, SILENT)
    assert whole.asked is False
    assert [p.name for p in Staging(folder).parts(0)] == ["part-0-0", "part-0-1", "part-0-2"]


def test_parts_without_rows_are_left_out(folder, pool):
    """Wherever they are; a source that has no segment at all is refused."""
    _, parts = stage(folder, pool, one(0, 0), one(1, 2), one(2, 0), one(3, 1))
    assert [(p.name, p.rows) for p in parts] == [("part-0-1", 2), ("part-0-3", 1)]
    with pytest.raises(ValueError, match="'rows' has no rows"):
        stage(folder, pool, number=1)
    assert "source-1.json" not in folder.names()


@pytest.mark.parametrize("most", [1, 2, 9])
@pytest.mark.parametrize("bad", [0, 2, 4])
def test_a_segment_that_cannot_be_parsed(folder, pool, most, bad):
    """Its error is raised wherever it is, and the source does not count as read."""
    batches = [ValueError(f"segment {i}") if i == bad else one(i) for i in range(5)]
    with pytest.raises(ValueError, match=f"segment {bad}"):
        stage(folder, pool, *batches, most=most)
    assert "source-0.json" not in folder.names()


def test_what_has_not_begun_is_given_up_after_an_error(folder):
    """The source breaks off while the first of five segments is parsed: the other four never are."""
    go = threading.Event()

    class Broken(Rows):
        def segments(self):
            yield from super().segments()
            threading.Timer(0.3, go.set).start()
            raise ValueError("broken off")

        def parse(self, segment):
            go.wait(20)
            return super().parse(segment)

    source = Broken(*map(one, range(5)))
    with ThreadPoolExecutor(1) as single, pytest.raises(ValueError, match="broken off"):
        Staging(folder).stage(0, source, single, 9, SILENT)
    assert source.parsed == [0]


@pytest.mark.parametrize(
    "cuts", [[(6,), (6,)], [(1, 5), (6,)], [(6,), (2, 4)], [(2, 2, 2), (3, 3)], [(1, 2, 3), (2, 1, 1, 2)], [(3, 3)] * 3]
)
def test_rows_side_by_side(folder, pool, cuts):
    """Whatever parts each channel is staged in, all rows come in order, cut where any of them is."""
    X = [np.arange(6.0)[:, None] + 10 * c for c in range(len(cuts))]
    channels, staging = [], None
    for c, sizes in enumerate(cuts):
        pieces = np.split(X[c], np.cumsum(sizes)[:-1])
        staging, parts = stage(folder, pool, *(Batch(p, y=p[:, 0]) for p in pieces), number=c)
        channels.append(parts)
    edges = sorted({0, *(int(e) for sizes in cuts for e in np.cumsum(sizes))})
    found = list(Aligned(staging, channels, pool))
    assert [start for start, _ in found] == edges[:-1]
    for (start, pieces), stop in zip(found, edges[1:], strict=True):
        assert len(pieces) == len(cuts)
        for c, piece in enumerate(pieces):
            np.testing.assert_array_equal(piece.X, X[c][start:stop])
            np.testing.assert_array_equal(piece.y, X[c][start:stop, 0])


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([False, True, True])])
def test_some_rows_of_a_batch(rows):
    """Numbers, texts and targets of either kind."""
    text = {"t": Coded(np.array([0, 1, 0]), ["a", "b"])}
    for y in (None, np.array([1.0, 2.0, 3.0]), Coded(np.array([2, 1, 0]), ["p", "q", "r"])):
        some = rows_of(Batch(np.arange(6.0).reshape(3, 2), text, y), rows)
        assert some.X.tolist() == [[2, 3], [4, 5]]
        assert (some.text["t"].codes.tolist(), some.text["t"].names) == ([1, 0], ["a", "b"])
        if y is None:
            assert some.y is None
        else:
            assert np.asarray(getattr(some.y, "codes", some.y)).tolist() == ([1, 0] if isinstance(y, Coded) else [2, 3])
