"""The format of a path: as given, or detected from its first bytes after decompression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dkl.checks import check_choice
from dkl.sources.arrays import open_npy, open_npz
from dkl.sources.batch import Reading, Source, SourceError
from dkl.sources.bundled import PREFIX, Bundled
from dkl.sources.delimited import Delimited
from dkl.sources.files import SUFFIXES, filesystem, read_head, reading
from dkl.sources.idx import open_idx
from dkl.sources.parquet import Parquet
from dkl.sources.patches import open_images
from dkl.sources.raw import NPY_MAGIC, is_idx
from dkl.sources.svmlight import Svmlight, looks_like_svmlight
from dkl.sources.text import read_text_head
from dkl.sources.zarr_rows import open_zarr

FORMATS: dict[str, Callable[[str, Reading], Any]] = {
    "csv": Delimited, "svmlight": Svmlight, "npy": open_npy, "npz": open_npz, "idx": open_idx, "parquet": Parquet,
    "images": open_images, "zarr": open_zarr, "sklearn": Bundled,
}  # fmt: skip
MAGIC = {NPY_MAGIC: "npy", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"PAR1": "parquet"}
ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")
TABLES = (".parquet", ".csv")


def open_source(path: str, how: Reading) -> Source:
    """The source behind a path or URL."""
    if how.format is None:
        return FORMATS[find_format(path, how)](path, how)
    try:
        return FORMATS[check_choice("format", how.format, FORMATS)](path, how)
    except SourceError:
        raise
    except ValueError as error:
        raise SourceError(str(error)) from None


def find_format(path: str, how: Reading) -> str:
    """The format that is detected at a path."""
    if path.startswith(PREFIX):
        return "sklearn"
    fs, name = filesystem(path)
    with reading(path):
        if fs.isdir(name):
            return "zarr" if any(fs.exists(f"{name.rstrip('/')}/{file}") for file in ZARR_FILES) else "images"
    head = read_head(path)
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return kind
    if is_idx(head):
        return "idx"
    if _suffix(path) in (".csv", ".tsv"):
        return "csv"
    return "svmlight" if looks_like_svmlight(read_text_head(path, how.encoding)) else "csv"


def _suffix(path: str) -> str:
    """The suffix of the format, without that of compression."""
    name = path.lower().rpartition("/")[2]
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return "." + name.rpartition(".")[2] if "." in name else ""


def expand(path: str) -> list[str]:
    """The files of a glob pattern, or of a folder of tables, sorted; any other path unchanged."""
    if path.startswith(PREFIX):
        return [path]
    fs, name = filesystem(path)
    with reading(path):
        if _is_pattern(path) and not fs.exists(name):
            return _matching(path, fs, name)
        if not fs.isdir(name):
            return [path]
        inside = {_last(entry["name"]): entry for entry in fs.ls(name, detail=True)}
    seen = {key: entry for key, entry in inside.items() if key and not key.startswith((".", "_"))}
    kinds = {_suffix(key) if entry["type"] != "directory" else "folder" for key, entry in seen.items()}
    if len(kinds) != 1 or not kinds <= set(TABLES):
        return [path]
    return [f"{path.rstrip('/')}/{key}" for key in sorted(seen)]


def _is_pattern(path: str) -> bool:
    return any(mark in path for mark in ("*[" if path.startswith(("http:", "https:")) else "*?["))


def _matching(path: str, fs: Any, name: str) -> list[str]:
    found = fs.glob(name, detail=True)
    visible = {key: entry for key, entry in found.items() if not _last(key).startswith(".")}
    files = [key for key, entry in visible.items() if entry["type"] != "directory"] or list(visible)
    if not files:
        raise SourceError(f"{path!r} matches no file; check the pattern and the folder")
    return sorted(fs.unstrip_protocol(file) if "://" in path else file for file in files)


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
