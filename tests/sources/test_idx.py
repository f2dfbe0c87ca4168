"""IDX files against the arrays they were written from."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from dkl.sources import raw
from dkl.sources.batch import Reading, SourceError
from dkl.sources.idx import open_idx
from tests.sources.whole import read_whole

KINDS = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
IMAGES = np.random.default_rng(0).integers(0, 100, (30, 4, 3))


@pytest.fixture(autouse=True, params=[1, 50, 2**23])
def small(request, monkeypatch):
    """Segments of a row, some rows, all rows."""
    monkeypatch.setattr(raw, "SEGMENT", request.param)


def idx(array, kind=0x08):
    """An array in IDX."""
    return struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape) + array.astype(KINDS[kind]).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_every_dtype(tmp_path, kind):
    """Axes after the first are flattened; labels are found beside the file."""
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.write_bytes(idx(IMAGES, kind))
    assert read_whole(open_idx(str(path), Reading()))[1] is None
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(np.arange(30)))
    X, y, _, _ = read_whole(open_idx(str(path), Reading()))
    np.testing.assert_array_equal(X, IMAGES.reshape(30, 12))
    np.testing.assert_array_equal(y, np.arange(30))
    assert X.dtype.byteorder in "=|"
    assert read_whole(open_idx(str(path), Reading(target="none")))[1] is None


def test_gzip_and_named_labels(tmp_path):
    """As they are distributed."""
    path, labels = tmp_path / "train-images-idx3-ubyte.gz", tmp_path / "mine.gz"
    path.write_bytes(gzip.compress(idx(IMAGES)))
    labels.write_bytes(gzip.compress(idx(np.arange(30) % 10)))
    X, y, _, _ = read_whole(open_idx(str(path), Reading(target=str(labels))))
    np.testing.assert_array_equal(X, IMAGES.reshape(30, 12))
    np.testing.assert_array_equal(y, np.arange(30) % 10)


def test_from_memory():
    """URLs have neighbours too."""
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.pipe("/mnist/a-images-idx3-ubyte", idx(IMAGES))
    fs.pipe("/mnist/a-labels-idx1-ubyte", idx(np.arange(30)))
    _, y, _, _ = read_whole(open_idx("memory://mnist/a-images-idx3-ubyte", Reading()))
    np.testing.assert_array_equal(y, np.arange(30))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (idx(IMAGES)[:-5], "is truncated: it holds 29 of its 30 rows"),
        (gzip.compress(idx(IMAGES))[:-12], "is truncated"),
        (idx(IMAGES) + b"x", "has bytes after the 30 rows"),
        (idx(IMAGES)[:7], "is truncated within its header"),
        (b"\0\0\x07\x03", "is not an IDX header"),
        (idx(np.arange(30)), "is 1-D, as labels are"),
        (idx(IMAGES[:0]), "give at least one "),
        (idx(IMAGES[:9]), "has 9 rows but .* has 30 labels"),
    ],
)
def test_refusals(tmp_path, content, sentence):
    """One sentence each."""
    path = tmp_path / "a-images"
    path.write_bytes(content)
    (tmp_path / "a-labels").write_bytes(idx(np.arange(30)))
    with pytest.raises(SourceError, match=sentence):
        read_whole(open_idx(str(path), Reading()))


def test_infinite(tmp_path):
    """Floats are looked at."""
    images = IMAGES.astype(float)
    images[17, 1, 0] = np.nan
    (tmp_path / "a").write_bytes(idx(images, 0x0E))
    with pytest.raises(SourceError, match="missing value in row 17, column '3'"):
        read_whole(open_idx(str(tmp_path / "a"), Reading()))
