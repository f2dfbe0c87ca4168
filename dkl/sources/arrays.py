"""NumPy's files: one array (.npy), several in a zip (.npz), or a csr matrix in three (scipy.sparse.save_npz)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from dkl.sources.batch import Batch, Column, Reading, Segment, SourceError
from dkl.sources.columns import check_width, numbered, refuse_unused
from dkl.sources.dense import DenseRows
from dkl.sources.files import bare_name, filesystem, open_stream, read_head, reading, stored_size
from dkl.sources.labels import ArrayLabels, check_count, is_position, open_labels
from dkl.sources.raw import MappedRows, RawRows, kept_dtype, npy_header, npy_rows
from dkl.sources.sparse import check_columns, check_indptr, check_sparse_shape, row_cuts, sparse_batch

INPUTS, TARGETS = ("X", "x", "data"), ("y", "target", "labels")
SPARSE = {"data", "indices", "indptr", "shape", "format"}


def open_npy(path: str, how: Reading) -> DenseRows:
    """A 2-D .npy; its target is a column by position, or another file of labels."""
    with open_stream(path) as stream:
        shape, fortran, dtype = npy_header(path, stream)
    kept_dtype(dtype, path)
    if len(shape) != 2:
        raise SourceError(f"{path!r} is {len(shape)}-D, of shape {shape}; reshape it to rows and columns")
    target = how.target or "none"
    labels = None if target == "none" or is_position(target) else open_labels(target, how)
    local = _local_path(path) if fortran else None
    if local is not None:
        return DenseRows(path, how, lambda: MappedRows(path, local), labels)
    return DenseRows(path, how, lambda: npy_rows(path, open_stream(path)), labels)


def _local_path(path: str) -> str | None:
    """The local path of a file that is not compressed; None of any other file."""
    fs, name = filesystem(path)
    if "file" not in (fs.protocol if isinstance(fs.protocol, (tuple, list)) else (fs.protocol,)):
        return None
    with open(name, "rb") as file:
        return name if file.read(6) == read_head(path, 6) else None


class _Member:
    """A member of a zip as a stream; closing it closes the zip."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.archive = path, open_zip(path)
        with reading(path):
            try:
                self.stream = self.archive.open(name)
            except (RuntimeError, NotImplementedError) as error:
                raise SourceError(f"{path!r} cannot be unpacked: {error}; save it with np.savez_compressed") from None

    def read(self, size: int = -1) -> bytes:
        """The next bytes, unpacked."""
        return self.stream.read(size)

    def close(self) -> None:
        """Close the member and the zip."""
        self.stream.close()
        self.archive.close()


def open_zip(path: str) -> zipfile.ZipFile:
    """The zip at a path or URL."""
    with reading(path):
        return zipfile.ZipFile(open_stream(path))


def _member(path: str, name: str) -> BinaryIO:
    return _Member(path, f"{name}.npy")  # type: ignore[return-value]


def _member_names(path: str) -> list[str]:
    with open_zip(path) as archive:
        names = archive.namelist()
    found = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]
    if not found:
        shown = ", ".join(map(repr, names[:4])) or "nothing"
        raise SourceError(f"{path!r} is a zip of {shown}, not of arrays; unpack it and name the file inside")
    return found


def _opener(path: str, name: str) -> Any:
    return lambda: npy_rows(path, _member(path, name))


def open_npz(path: str, how: Reading) -> DenseRows | SparseNpz:
    """The member X (x, data, or the only 2-D one) with its labels y (target, labels, or what is named)."""
    names = _member_names(path)
    if set(names) >= SPARSE or {"row", "col", "format"} <= set(names):
        return SparseNpz(path, how)
    inputs = next((name for name in INPUTS if name in names), None)
    shapes = {name: _shape(path, name) for name in names}
    if inputs is None:
        flat = [name for name, shape in shapes.items() if len(shape) == 2]
        if len(flat) != 1:
            shown = ", ".join(f"{name} {shape}" for name, shape in list(shapes.items())[:6])
            raise SourceError(f"{path!r} holds {shown}; save the inputs as the member X, the target as y")
        inputs = flat[0]
    if len(shapes[inputs]) != 2:
        raise SourceError(
            f"member {inputs!r} of {path!r} has the shape {shapes[inputs]}; reshape it to rows and columns"
        )
    return DenseRows(path, how, _opener(path, inputs), _npz_labels(path, names, inputs, how))


def _shape(path: str, name: str) -> tuple[int, ...]:
    member = _member(path, name)
    try:
        return npy_header(f"{path}/{name}", member)[0]
    finally:
        member.close()


def _npz_labels(path: str, names: list[str], inputs: str | None, how: Reading) -> Any:
    target = how.target or next((name for name in TARGETS if name in names and name != inputs), "none")
    if target in names:
        return ArrayLabels(f"{path}/{target}", _opener(path, target))
    return None if target == "none" or is_position(target) else open_labels(target, how)


class SparseNpz:
    """A csr matrix that scipy.sparse.save_npz wrote; labels come from another file."""

    def __init__(self, path: str, how: Reading) -> None:
        refuse_unused(path, how, "a sparse matrix", "categorical", "drop")
        self.path, self.how, self.name, self.size = path, how, bare_name(path), stored_size(path)
        kind = self._small("format").astype(str).item()
        if kind != "csr":
            raise SourceError(f"{path!r} is a sparse matrix in {kind} format; save X.tocsr() instead")
        rows, self.width = check_sparse_shape(path, self._small("shape"))
        check_width(path, self.width, how)
        data, indices = self._open("data"), self._open("indices")
        data.close()
        indices.close()
        if how.inputs is None:
            check_columns(path, self.width, data.shape[0])
        self.columns = [Column(name) for name in numbered(self.width)]
        kept_dtype(data.dtype, path)
        if indices.dtype.kind not in "iu":
            raise SourceError(f"{path!r} is damaged: its indices have dtype {indices.dtype}; save X.tocsr() again")
        self.item_bytes = data.dtype.itemsize + indices.dtype.itemsize
        self.indptr = check_indptr(path, self._small("indptr", rows + 1), rows, (data.shape[0], indices.shape[0]))
        if how.target in TARGETS or (how.target and is_position(how.target)):
            raise SourceError(f"target={how.target!r}: {path!r} is sparse and holds inputs only; name a file of labels")
        self.labels = None if how.target in (None, "none") else open_labels(how.target, how)
        check_count(path, rows, self.labels)
        self.has_target = self.labels is not None

    def _open(self, name: str) -> RawRows:
        return npy_rows(f"{self.path}/{name}", _member(self.path, name))

    def _small(self, name: str, most: int = 64) -> np.ndarray:
        """A small member, read at once."""
        member = _member(self.path, name)
        try:
            shape, _, dtype = npy_header(f"{self.path}/{name}", member)
            if int(np.prod(shape, dtype=object)) > most:
                raise SourceError(f"{self.path!r} is damaged: its {name} has shape {shape}; save X.tocsr() again")
            return RawRows(self.path, member, dtype, (1, *shape)).read(1)[0]
        finally:
            member.close()

    def segments(self) -> Iterator[Segment]:
        """Rows in segments of about 8 MiB of stored values."""
        data, indices, labels = self._open("data"), self._open("indices"), self.labels and self.labels.open()
        try:
            for number, (first, last) in enumerate(row_cuts(self.indptr, self.item_bytes)):
                indptr = self.indptr[first : last + 1] - self.indptr[first]
                stored = int(indptr[-1])
                parts = data.read(stored), indices.read(stored), indptr
                given = labels.read(last - first) if labels else None
                yield Segment(number, (parts, given, first), stored * self.item_bytes)
            for opened in (data, indices, labels):
                if opened:
                    opened.finish()
        finally:
            for opened in (data, indices, labels):
                if opened:
                    opened.close()

    def parse(self, segment: Segment) -> Batch:
        """A csr batch."""
        parts, labels, first = segment.data
        return sparse_batch(self.path, parts, self.width, labels, first, self.how)
