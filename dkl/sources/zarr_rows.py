"""Rows of a Zarr source: an array, a group of `X` and `y`, or a csr matrix of three arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dkl.sources.batch import Batch, Coded, Column, Reading, Segment, SourceError
from dkl.sources.columns import Columns, check_many, check_width, numbered, refuse_unused
from dkl.sources.coords import coords_of
from dkl.sources.damage import Damaged, read_rows
from dkl.sources.dense import check_labels, dense_batch
from dkl.sources.files import bare_name, one_line
from dkl.sources.intact import check_chunks, check_description, is_older, warn_of_older
from dkl.sources.labels import as_target, check_count, is_position, open_labels
from dkl.sources.raw import SEGMENT, kept_dtype
from dkl.sources.safe_zarr import UnsafeZarr, arrays_of, check_held, has_member, member, open_node
from dkl.sources.sparse import check_columns, check_indptr, check_sparse_shape, row_cuts, sparse_batch
from dkl.sources.stretch import Stretch, stretches, within
from dkl.sources.whole import whole

FORMAT = "dkl-dataset"
LARGEST_SHARD = 4 * SEGMENT
INDPTR_BYTES, INDPTR_COMPRESSION = 2**26, 2**12
"""indptr is read at once: bytes that it may declare unchecked, and decoded bytes per stored byte beyond."""


def open_zarr(path: str, how: Reading) -> DenseZarr | SparseZarr:
    """The rows of a Zarr array or group, dense or csr."""
    node = _open(path)
    if hasattr(node, "shape"):
        return DenseZarr(path, how, whole(node), None, path)
    attributes = dict(node.attrs)
    _check_data_set(path, attributes, node)
    if "encoding-type" in attributes:
        return SparseZarr(path, how, node, None, path)
    try:
        X = member(node, "X", path) if has_member(node, "X", path) else _only_matrix(path, node)
    except SourceError:
        raise
    except Exception as error:  # damaged metadata
        raise SourceError(f"{path!r} is damaged: {one_line(error)}; copy it again") from None
    place = f"{path.rstrip('/')}/{X.name.rpartition('/')[2]}"
    return DenseZarr(path, how, whole(X), node, place) if hasattr(X, "shape") else SparseZarr(path, how, X, node, place)


def _open(path: str) -> Any:
    try:
        return open_node(path)
    except UnsafeZarr:
        raise
    except ImportError as error:
        raise SourceError(f"{path!r} cannot be opened: {one_line(error)} (pip install 'dkl[s3]' for S3)") from None
    except Exception as error:  # zarr's own errors differ by store and version
        raise SourceError(f"{path!r} is not a readable Zarr store: {one_line(error)}") from None


def _check_data_set(path: str, attributes: dict, node: Any) -> None:
    """Refuse a data set of dkl that is incomplete, damaged, or split."""
    if attributes.get("format") == FORMAT and attributes.get("complete") is not True:
        raise SourceError(f"{path!r} was not ingested completely; run dkl resume {path}")
    splits = attributes.get("splits")
    if splits and not has_member(node, "X", path):
        shown = ", ".join(map(str, splits))
        raise SourceError(f"{path!r} is split into {shown}; give one of them, as in {path.rstrip('/')}/{splits[0]}")
    if attributes.get("format") == FORMAT:
        check_description(node, path)
        check_chunks(node, path)
        if is_older(attributes):
            warn_of_older(path)


def _only_matrix(path: str, node: Any) -> Any:
    found = {name: array for name, array in arrays_of(node, path) if array.ndim == 2}
    if len(found) != 1:
        shown = ", ".join(found) or "none"
        raise SourceError(
            f"{path!r} has no array X, and its 2-D arrays are: {shown}; give one of them, as in {path}/NAME"
        )
    return next(iter(found.values()))


class _Target:
    """Labels of a Zarr source: an array beside X (class codes if it lists `classes`), or a file."""

    def __init__(self, path: str, how: Reading, group: Any, rows: int) -> None:
        wanted = how.target or "y"
        self.path, self.how, self.array, self.file, self.classes = f"{path}/{wanted}", how, None, None, None
        if (
            wanted == "none"
            or is_position(wanted)
            or (how.target is None and (group is None or not has_member(group, "y", path)))
        ):
            return
        if group is None or not has_member(group, wanted, path):
            self.file = open_labels(wanted, how)
            check_count(path, rows, self.file)
            return
        self.array = whole(member(group, wanted, path))
        shape = getattr(self.array, "shape", None)
        if shape not in ((rows,), (rows, 1)):
            raise SourceError(f"{self.path!r} has shape {shape}; give {rows} labels, one per row")
        listed = self.array.attrs.get("classes")
        self.classes = list(map(str, listed)) if listed else None
        self.is_text = self.array.dtype.kind not in "fiub"

    @property
    def has_labels(self) -> bool:
        return self.array is not None or self.file is not None

    def open(self) -> Any:
        """A reader at the first label of a file; None if labels are in an array."""
        return self.file.open() if self.file is not None else None

    def read(self, first: int, last: int, given: Any) -> np.ndarray | Coded | None:
        """The labels of some rows; `given` are those read from a file."""
        if self.array is None:
            return None if given is None else as_target(given)
        values = np.asarray(_read(self.path, self.array, first, last)).reshape(-1)
        if self.is_text:
            return as_target(values if values.dtype.kind in "US" else values.astype(object))
        if self.classes is None or values.dtype.kind == "f":
            return values.astype(np.float64)
        outside = (values.astype(np.int64) < -1) | (values >= len(self.classes))
        if outside.any():
            code, row = values[outside][0], first + int(np.argmax(outside))
            raise SourceError(
                f"{self.path!r} has the code {code} in row {row}, but lists {len(self.classes)} classes; correct it"
            )
        return Coded(values.astype(np.int32), self.classes)


def _read(path: str, array: Any, first: int, last: int) -> np.ndarray:
    try:
        return read_rows(array, first, last)
    except Damaged as error:
        raise SourceError(str(error)) from None
    except Exception as error:  # stores and codecs raise any exception
        raise SourceError(f"{path!r} cannot be read after row {first}: {one_line(error)}; copy it again") from None


class DenseZarr:
    """A 2-D Zarr array, read in whole chunks; labels from y, a column by position, or a file."""

    def __init__(self, path: str, how: Reading, X: Any, group: Any, place: str) -> None:
        refuse_unused(path, how, "which holds numbers only", "categorical")
        if X.ndim != 2 or not all(X.shape):
            raise SourceError(f"{path!r} holds an array of shape {X.shape}; give rows and columns")
        check_held(X, place)
        self.path, self.how, self.X, self.name = path, how, X, bare_name(path)
        self.dtype = kept_dtype(X.dtype, path)
        self.rows, width = X.shape
        check_many(path, width)
        self.row_bytes = width * X.dtype.itemsize
        self.size: int | None = self.rows * self.row_bytes
        self.coords = coords_of(path, group, X, how.target or "y")
        self.labels = _Target(path, how, group, self.rows)
        position = how.target if not self.labels.has_labels and is_position(how.target or "") else "none"
        named = self.coords.names is not None and not _by_number(how)
        names = list(self.coords.names or ()) if named else numbered(width)
        self.chosen = Columns(path, names, [False] * width, how, named=named, target=position or "none")
        if self.chosen.wanted != list(range(width)):
            self.coords = self.coords._replace(
                inputs={key: values[self.chosen.wanted] for key, values in self.coords.inputs.items()}
            )
        self.columns = self.chosen.inputs
        self.has_target = self.labels.has_labels or self.chosen.target is not None
        self.step = self._rows_of_a_segment()

    def _rows_of_a_segment(self) -> int:
        """Whole shards if they are small, else whole chunks; about 8 MiB together."""
        shards = getattr(self.X, "shards", None)
        unit = shards[0] if shards and shards[0] * self.row_bytes <= LARGEST_SHARD else self.X.chunks[0]
        return int(max(1, SEGMENT // max(1, unit * self.row_bytes)) * unit)

    def stretches(self) -> list[Stretch]:
        """Segments."""
        return stretches(-(-self.rows // self.step))

    def segments(self, stretch: Stretch | None = None) -> Iterator[Segment]:
        """Row ranges of whole chunks."""
        return within(stretch, _ranges(range(0, self.rows, self.step), self.rows, self.labels, self.row_bytes))

    def parse(self, segment: Segment) -> Batch:
        """The rows of a range."""
        first, last, given = segment.data
        values = _read(self.path, self.X, first, last)
        batch = dense_batch(self.chosen, values, None, self.dtype, first)
        if not self.labels.has_labels:
            return batch
        y = self.labels.read(first, last, given)
        check_labels(self.path, y, first, self.how)
        return Batch(batch.X, {}, y)


def _by_number(how: Reading) -> bool:
    """Whether a recipe has column positions instead of names."""
    return how.inputs is not None and all(column.name.lstrip("-").isdigit() for column in how.inputs)


def _ranges(starts: range, rows: int, target: _Target, row_bytes: int) -> Iterator[Segment]:
    labels = target.open()
    try:
        for number, first in enumerate(starts):
            last = min(first + starts.step, rows)
            given = labels.read(last - first) if labels else None
            yield Segment(number, (first, last, given), (last - first) * row_bytes)
        if labels:
            labels.finish()
    finally:
        if labels:
            labels.close()


class SparseZarr:
    """A csr matrix as a group of data, indices and indptr."""

    def __init__(self, path: str, how: Reading, X: Any, group: Any, place: str) -> None:
        refuse_unused(path, how, "a sparse matrix", "categorical", "drop")
        kind = X.attrs.get("encoding-type")
        if kind != "csr_matrix":
            raise SourceError(f"{path!r} holds a group of encoding-type {kind!r}; save X.tocsr()")
        lacking = [name for name in ("data", "indices", "indptr") if name not in X]
        if lacking:
            raise SourceError(f"{path!r} is damaged: its csr matrix has no {lacking[0]!r}; save it again")
        if how.target and is_position(how.target):
            raise SourceError(f"target={how.target!r}: {path!r} is sparse; name the array or file of labels")
        self.path, self.how, self.X, self.name = path, how, X, bare_name(path)
        self.data, self.indices, indptr = (whole(member(X, name, place)) for name in ("data", "indices", "indptr"))
        kept_dtype(self.data.dtype, path)
        self.rows, self.width = check_sparse_shape(path, X.attrs.get("shape", ()))
        check_width(path, self.width, how)
        for name, array in (("data", self.data), ("indices", self.indices)):
            check_held(array, f"{place}/{name}")
        check_held(indptr, f"{place}/indptr", INDPTR_BYTES, INDPTR_COMPRESSION)
        stored = (self.data.shape[0], self.indices.shape[0])
        if how.inputs is None:
            check_columns(path, self.width, stored[0])
        indptr = _read(f"{path}/indptr", indptr, 0, indptr.shape[0])
        self.indptr = check_indptr(path, indptr, self.rows, stored)
        self.item_bytes = self.data.dtype.itemsize + self.indices.dtype.itemsize
        self.size: int | None = stored[0] * self.item_bytes
        self.columns = [Column(name) for name in numbered(self.width)]
        self.labels = _Target(path, how, group, self.rows)
        self.has_target = self.labels.has_labels

    def stretches(self) -> list[Stretch]:
        """Segments."""
        return stretches(len(list(row_cuts(self.indptr, self.item_bytes))))

    def segments(self, stretch: Stretch | None = None) -> Iterator[Segment]:
        """Row ranges of about 8 MiB."""
        return within(stretch, self._segments())

    def _segments(self) -> Iterator[Segment]:
        labels = self.labels.open()
        try:
            for number, (first, last) in enumerate(row_cuts(self.indptr, self.item_bytes)):
                given = labels.read(last - first) if labels else None
                size = int(self.indptr[last] - self.indptr[first]) * self.item_bytes
                yield Segment(number, (first, last, given), size)
            if labels:
                labels.finish()
        finally:
            if labels:
                labels.close()

    def parse(self, segment: Segment) -> Batch:
        """The rows of a range as a csr batch."""
        first, last, given = segment.data
        start, stop = int(self.indptr[first]), int(self.indptr[last])
        data, indices = (_read(self.path, array, start, stop) for array in (self.data, self.indices))
        indptr = self.indptr[first : last + 1] - start
        batch = sparse_batch(self.path, (data, indices, indptr), self.width, None, first, self.how)
        y = self.labels.read(first, last, given)
        check_labels(self.path, y, first, self.how)
        return Batch(batch.X, {}, y)
