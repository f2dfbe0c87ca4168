"""IDX, the format of MNIST: a big-endian header, then bytes; labels are in a second file beside it.

With a descriptor, or a size, rows are images (sources/idx_images.py); else their bytes.
"""

from __future__ import annotations

from typing import Any

from dkl.sources.batch import Reading, SourceError
from dkl.sources.dense import DenseRows
from dkl.sources.files import filesystem, open_stream, reading
from dkl.sources.idx_images import IdxImages
from dkl.sources.labels import open_labels
from dkl.sources.raw import idx_rows


def open_idx(path: str, how: Reading) -> DenseRows | IdxImages:
    """Rows of an IDX file, flattened or measured; labels from the named file, or from the one beside it."""
    with open_stream(path) as stream:
        shape = idx_rows(path, stream).shape
    if len(shape) < 2:
        raise SourceError(f"{path!r} is 1-D, as labels are; give the images file as source and {path!r} as --target")
    kind = DenseRows if how.descriptor == "pixels" and how.resize is None else IdxImages
    return kind(path, how, lambda: idx_rows(path, open_stream(path)), _labels(path, how))


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
