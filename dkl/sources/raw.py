"""An array in a stream: a header with dtype and shape, then the rows, read a few at a time.

npy and IDX differ in the header only. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any, BinaryIO

import numpy as np

from dkl.sources.batch import SourceError
from dkl.sources.files import one_line, reading

SEGMENT = 8 * 2**20
MOST_TRANSPOSED = 2**28
"""Bytes of an array in Fortran order that may be read at once and transposed."""
IDX_KINDS = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
NPY_MAGIC = b"\x93NUMPY"
KEPT_DTYPES = tuple(map(np.dtype, ("u1", "i1", "u2", "i2", "f4", "f8")))


def is_idx(head: bytes) -> bool:
    """Whether the first bytes are an IDX header."""
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in IDX_KINDS and 1 <= head[3] <= 8


def kept_dtype(dtype: np.dtype, path: str) -> np.dtype:
    """The dtype of stored numbers: small ones keep theirs, others become float32 or float64."""
    if dtype.kind not in "fiub":
        what = {"c": "complex numbers", "O": "Python objects", "V": "records"}.get(dtype.kind, "text or dates")
        raise SourceError(f"{path!r} holds {what} (dtype {dtype}); save it as numbers, for instance float32")
    plain = dtype.newbyteorder("=")
    if plain in KEPT_DTYPES:
        return plain
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    return np.dtype(np.float32 if dtype == np.float16 else np.float64)


def rows_per_segment(row_bytes: int) -> int:
    """Rows that fill about one segment."""
    return max(1, SEGMENT // max(1, row_bytes))


class RawRows:
    """Consecutive rows in a stream that is positioned at the first of them."""

    def __init__(self, path: str, stream: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        self.path, self.stream, self.dtype, self.shape = path, stream, dtype, shape
        self.row_bytes = int(np.prod(shape[1:], dtype=object)) * dtype.itemsize
        self.position = 0

    def read(self, count: int) -> np.ndarray:
        """The next rows."""
        size, parts = count * self.row_bytes, []
        with reading(self.path):
            while size and (part := self.stream.read(size)):
                parts.append(part)
                size -= len(part)
        if size:
            got = self.position + (count * self.row_bytes - size) // max(1, self.row_bytes)
            raise SourceError(f"{self.path!r} is truncated: it holds {got} of its {self.shape[0]} rows; copy it again")
        self.position += count
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        return np.frombuffer(data, self.dtype).reshape(count, *self.shape[1:])

    @property
    def can_skip(self) -> bool:
        """Whether rows can be left out without reading them."""
        return hasattr(self.stream, "seek") and not isinstance(self.stream, (io.BufferedReader, zipfile.ZipExtFile))

    def skip(self, count: int) -> None:
        """Leave the next rows out."""
        with reading(self.path):
            self.stream.seek(count * self.row_bytes, io.SEEK_CUR)
        self.position += count

    def finish(self) -> None:
        """Refuse bytes after the last row."""
        with reading(self.path):
            more = self.stream.read(1)
        if more:
            raise SourceError(f"{self.path!r} has bytes after the {self.shape[0]} rows of its header; save it again")

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()


class MappedRows:
    """Rows of a local file in Fortran order, memory-mapped."""

    def __init__(self, path: str, local: str) -> None:
        with reading(path):
            try:
                self.array: Any = np.load(local, mmap_mode="r", allow_pickle=False)
            except ValueError as error:
                raise SourceError(f"{path!r} cannot be mapped: {one_line(error)}; copy it again") from None
        self.dtype, self.shape, self.position = self.array.dtype, self.array.shape, 0

    def read(self, count: int) -> np.ndarray:
        """The next rows, read from disk on access."""
        self.position += count
        return self.array[self.position - count : self.position]

    can_skip = True

    def skip(self, count: int) -> None:
        """Leave the next rows out."""
        self.position += count

    def finish(self) -> None:
        """Nothing follows a mapped array."""

    def close(self) -> None:
        """The mapping is freed with its last view."""


def npy_header(path: str, stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """(shape, whether in Fortran order, dtype) of an npy stream, which is left at the first number."""
    from numpy.lib import format as npy

    try:
        with reading(path):
            version = npy.read_magic(stream)
            if version not in ((1, 0), (2, 0)):
                raise SourceError(f"{path!r} has npy version {version}; save it as a plain array")
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(stream)
    except SourceError:
        raise
    except ValueError as error:
        raise SourceError(f"{path!r} is not an npy file, or is damaged: {one_line(error)}") from None
    if dtype.hasobject:
        raise SourceError(f"{path!r} holds Python objects, which are never unpickled; save it as numbers")
    return tuple(map(int, shape)), bool(fortran), dtype


def npy_rows(path: str, stream: BinaryIO) -> RawRows:
    """The rows of an npy stream in C order."""
    shape, fortran, dtype = npy_header(path, stream)
    if not shape:
        raise SourceError(f"{path!r} holds a single number (shape {shape}); give an array of rows")
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if fortran and len(shape) > 1 and size <= MOST_TRANSPOSED:
        with reading(path):
            data = stream.read(size)
        if len(data) < size:
            raise SourceError(f"{path!r} is truncated: it holds {len(data)} of {size} bytes; copy it again")
        turned = np.frombuffer(data, dtype).reshape(shape, order="F")
        return RawRows(path, io.BytesIO(turned.tobytes("C") + stream.read(1)), dtype, shape)
    if fortran and len(shape) > 1:
        raise SourceError(
            f"{path!r} is in Fortran order ({size:,} bytes) and cannot be read by rows from here; save "
            "np.ascontiguousarray(X), or decompress it to a local .npy"
        )
    return RawRows(path, stream, dtype, shape)


def idx_rows(path: str, stream: BinaryIO) -> RawRows:
    """The rows of an IDX stream."""
    with reading(path):
        head = stream.read(4)
        if not is_idx(head):
            raise SourceError(f"{path!r} begins with {head!r}, which is not an IDX header; name an IDX file")
        sizes = stream.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise SourceError(f"{path!r} is truncated within its header; copy it again")
    return RawRows(path, stream, np.dtype(IDX_KINDS[head[2]]), struct.unpack(f">{head[3]}I", sizes))
