"""A record on disk: a Zarr group of plain arrays, with JSON attributes written last.

The attributes name every array with its shape, dtype and digest, so a file that is truncated, foreign or
tampered with is refused in one sentence. Nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from dkl.store.folder import exists, is_url, remove

FORMAT, VERSION = "dkl-model", 1
CODECS = {"bytes", "zstd"}
KINDS = "fiub"


def save_record(
    path: Any, attributes: dict, arrays: dict[str, tuple[tuple[str, ...], np.ndarray]], kind: str = FORMAT
) -> None:
    """Write {name: (dimension names, array)}; a local path appears whole or not at all."""
    target = os.fspath(path)
    if exists(target) and not _is_record(target, kind):
        raise FileExistsError(f"{target!r} exists and is not a {_name(kind)}; choose another path")
    if is_url(target):
        _write(target, attributes, arrays, kind)
        return
    final = Path(target)
    final.parent.mkdir(parents=True, exist_ok=True)
    fresh = final.with_name(f"{final.name}.writing-{uuid.uuid4().hex[:8]}")
    try:
        _write(str(fresh), attributes, arrays, kind)
        _swap(fresh, final)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _swap(fresh: Path, final: Path) -> None:
    """Put fresh in final's place; the old one goes only when the new one stands."""
    old = final.with_name(f"{final.name}.old-{uuid.uuid4().hex[:8]}")
    if final.exists():
        final.rename(old)
    try:
        fresh.rename(final)
    except OSError:
        if old.exists():
            old.rename(final)
        raise
    shutil.rmtree(old, ignore_errors=True)


def sweep(path: Any) -> None:
    """Remove what a save of this path left when it was killed; only for who knows that no other save is under way."""
    target, final = os.fspath(path), Path(os.fspath(path))
    if is_url(target):
        if exists(target) and not _has_attributes(target):
            remove(target)
        return
    ours = re.compile(re.escape(final.name) + r"\.(old|writing)-[0-9a-f]{8}")
    for left in final.parent.iterdir():
        if ours.fullmatch(left.name):
            shutil.rmtree(left, ignore_errors=True)


def _has_attributes(target: str) -> bool:
    """Whether a Zarr group there has the attributes that are written last."""
    import zarr

    try:
        return bool(dict(zarr.open_group(target, mode="r").attrs))
    except Exception:  # not even a group
        return False


def _name(kind: str) -> str:
    return kind.replace("-", " ")


def _is_record(target: str, kind: str) -> bool:
    try:
        open_attributes(target, kind)
    except ValueError:
        return False
    return True


def _write(target: str, attributes: dict, arrays: dict[str, tuple[tuple[str, ...], np.ndarray]], kind: str) -> None:
    import zarr

    group = zarr.open_group(target, mode="w", zarr_format=3)
    described = {}
    for name, (dimensions, array) in arrays.items():
        array = np.asarray(array, array.dtype.newbyteorder("="), order="C")
        chunks = tuple(max(1, size) for size in array.shape)
        codec = zarr.codecs.ZstdCodec()
        group.create_array(name, data=array, dimension_names=list(dimensions), chunks=chunks, compressors=codec)
        described[name] = {"shape": list(array.shape), "dtype": array.dtype.str, "sha256": _digest(array)}
    group.attrs.put({"format": kind, "version": VERSION, "arrays": described, **attributes})


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"").hexdigest()


def open_attributes(path: Any, kind: str = FORMAT) -> dict:
    """The JSON attributes of a record, after checking that it is one."""
    return dict(_open_group(os.fspath(path), kind).attrs)


def _open_group(target: str, kind: str) -> Any:
    import zarr

    try:
        group = zarr.open_group(target, mode="r", zarr_format=3)
        attributes = dict(group.attrs)
    except ImportError as error:
        raise ValueError(f"{target!r} cannot be opened: {_line(error)} (pip install 'dkl[s3]' for S3)") from None
    except Exception as error:  # zarr's own errors differ by store and version
        raise ValueError(f"{target!r} is not a {_name(kind)}, or is damaged: {_line(error)}") from None
    if attributes.get("format") != kind:
        raise ValueError(f"{target!r} is a Zarr group but not a {_name(kind)} (or one that was not written to its end)")
    version = attributes.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(f"{target!r} has format version {version!r}, this dkl reads up to {VERSION}; upgrade dkl")
    return group


def open_record(path: Any, most_bytes: int, kind: str = FORMAT) -> tuple[dict, dict[str, np.ndarray]]:
    """Attributes and arrays; refuses whatever is not exactly what was written."""
    target = os.fspath(path)
    group = _open_group(target, kind)
    attributes = dict(group.attrs)
    described = attributes.get("arrays")
    if not isinstance(described, dict):
        raise ValueError(f"{target!r} does not list its arrays; it is damaged")
    arrays, total = {}, 0
    for name, expected in described.items():
        try:
            array = group[name]
            shape, dtype = tuple(expected["shape"]), np.dtype(expected["dtype"])
            total += int(np.prod(shape, dtype=object)) * dtype.itemsize
            codecs = {codec.to_dict()["name"] for codec in array.metadata.codecs}
            fits = array.shape == shape and array.dtype == dtype and dtype.kind in KINDS and codecs <= CODECS
            fits = fits and all(chunk <= max(1, size) for chunk, size in zip(array.chunks, shape, strict=True))
        except KeyError:
            raise ValueError(f"{target!r} lacks its array {name!r}; the file is damaged") from None
        except Exception as error:
            raise ValueError(f"array {name!r} of {target!r} is garbled: {_line(error)}") from None
        if not fits:
            raise ValueError(f"array {name!r} of {target!r} is not what its attributes say; the file is damaged")
        if total > most_bytes:
            raise ValueError(f"{target!r} declares {total:,} bytes but only {most_bytes:,} are free; not loaded")
        try:
            values = np.asarray(array[...])
        except Exception as error:
            raise ValueError(f"array {name!r} of {target!r} cannot be read: {_line(error)}") from None
        if _digest(values) != expected.get("sha256"):
            raise ValueError(f"array {name!r} of {target!r} has the wrong digest; the file is damaged or was changed")
        arrays[name] = values
    return attributes, arrays


def _line(error: Exception) -> str:
    return str(error).split("\n")[0] or type(error).__name__
