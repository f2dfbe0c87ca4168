"""Bytes of a file on any fsspec filesystem, decompressed by their magic number; each failure is one sentence."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from dkl.sources.batch import SourceError, Unreachable
from dkl.sources.shown import clean, shown

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}
UNREADABLE = {b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z", b"\x04\x22\x4d\x18": "lz4"}
SUFFIXES = (".gz", ".bz2", ".xz")
BUFFER = 4 * 2**20


def filesystem(path: str) -> tuple[Any, str]:
    """The fsspec filesystem of a path or URL, and the path on it."""
    import fsspec

    try:
        return fsspec.core.url_to_fs(path)
    except ImportError as error:
        hint = "pip install 'dkl[s3]'" if path.startswith("s3:") else "install the package it names"
        raise SourceError(f"{path!r} cannot be reached: {one_line(error)} ({hint})") from None
    except ValueError as error:
        raise SourceError(f"{path!r} cannot be reached: {one_line(error)}") from None


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Any failure to read bytes becomes a SourceError that names the path."""
    try:
        yield
    except SourceError:
        raise
    except FileNotFoundError:
        raise SourceError(f"{path!r} does not exist; check the path") from None
    except PermissionError:
        raise SourceError(f"{path!r} cannot be read: permission denied") from None
    except IsADirectoryError:
        raise SourceError(f"{path!r} is a folder; name a file in it") from None
    except EOFError:
        raise SourceError(f"{path!r} is truncated; copy it again") from None
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise SourceError(f"{path!r} is damaged: {one_line(error)}; copy it again") from None
    except UnicodeDecodeError as error:
        shown = error.object[error.start : error.start + 1]
        raise SourceError(
            f"{path!r} is not {error.encoding} text (byte {shown!r}); use --encoding latin-1, or its own encoding"
        ) from None
    except Unreachable:
        raise
    except OSError as error:
        if str(error) == "Invalid data stream":  # bz2's only message
            raise SourceError(f"{path!r} is damaged: {one_line(error)}; copy it again") from None
        raise Unreachable(f"{path!r} cannot be read: {one_line(error)}") from None
    except Exception as error:  # object stores raise their own
        if "://" not in path:
            raise
        raise Unreachable(
            f"{path!r} cannot be reached: {one_line(error)}"
        ) from None  # the original may quote the whole URL


def one_line(error: BaseException) -> str:
    """The first line of an error, or its type, without the secrets of a URL."""
    return clean(str(error).strip().split("\n")[0]) or type(error).__name__


def open_stream(path: str) -> BinaryIO:
    """The decompressed bytes."""
    fs, name = filesystem(path)
    with reading(path):
        if fs.isdir(name):
            raise IsADirectoryError(path)
        raw = fs.open(name, "rb", block_size=BUFFER)
        first = raw.read(6)
        raw.seek(0)
    for magic, kind in UNREADABLE.items():
        if first.startswith(magic):
            raise SourceError(f"{path!r} is compressed with {kind}; decompress it, or use gzip, bz2 or xz")
    for magic, kind in MAGIC.items():
        if first.startswith(magic):
            openers: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
            return io.BufferedReader(openers[kind](raw, "rb"), BUFFER)
    return raw


def read_head(path: str, size: int = 2**16) -> bytes:
    """The first decompressed bytes."""
    with reading(path), open_stream(path) as stream:
        return stream.read(size)


def stored_size(path: str) -> int:
    """Bytes of the file as stored (compressed)."""
    fs, name = filesystem(path)
    with reading(path):
        return int(fs.size(name) or 0)


def identity(path: str) -> list:
    """Values that change when the file does: its size and modification time."""
    if path.startswith("sklearn:"):
        return [path]
    fs, name = filesystem(path)
    with reading(path):
        if fs.isdir(name):
            found = fs.find(name, detail=True)
            facts = [[file.removeprefix(name), _facts(found[file])] for file in sorted(found)]
            return [len(found), hashlib.sha256(repr(facts).encode()).hexdigest()]
        return _facts(fs.info(name))


def forget_listings(paths: list[str]) -> None:
    """Ask object stores again what they hold."""
    for fs in {id(fs): fs for fs in (filesystem(path)[0] for path in paths if "://" in path)}.values():
        fs.invalidate_cache()


def _facts(info: dict) -> list:
    """Size, and tag or modification time, of a file."""
    return [info.get("size"), str(info.get("ETag") or info.get("mtime") or info.get("LastModified") or "")]


def bare_name(path: str) -> str:
    """The file's name without folder and suffixes."""
    name = PurePosixPath(shown(path).rstrip("/")).name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name.split(".")[0] or name
