"""IDX, the format of MNIST: a big-endian header, then bytes; labels are in a second file beside it."""

from __future__ import annotations

from typing import Any

from dkl.sources.batch import Reading, SourceError
from dkl.sources.dense import DenseRows
from dkl.sources.files import filesystem, open_stream, reading
from dkl.sources.labels import open_labels
from dkl.sources.raw import idx_rows


def open_idx(path: str, how: Reading) -> DenseRows:
    """Rows of an IDX file, flattened; labels from the named file, or from the one beside it."""
    with open_stream(path) as stream:
        shape = idx_rows(path, stream).shape
    if len(shape) < 2:
        raise SourceError(f"{path!r} is 1-D, as labels are; give the images file as source and {path!r} as --target")
    return DenseRows(path, how, lambda: idx_rows(path, open_stream(path)), _labels(path, how))


def _labels(path: str, how: Reading) -> Any:
    if how.target == "none":
        return None
    if how.target is not None:
        return open_labels(how.target, how)
    folder, slash, name = path.rpartition("/")
    beside = folder + slash + name.replace("images", "labels").replace("idx3", "idx1")
    if beside == path:
        return None
    fs, there = filesystem(beside)
    with reading(beside):
        return open_labels(beside, how) if fs.exists(there) else None
