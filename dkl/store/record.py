"""A record on disk: a Zarr group of plain arrays, with JSON attributes written last.

The attributes list every array with its shape, dtype and digest. So a record that is truncated, foreign or tampered
with is refused. Nothing in it is ever executed. `digest` is the digest of all other attributes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from dkl.sources.files import filesystem
from dkl.sources.safe_zarr import UnsafeZarr, codecs_of, member
from dkl.sources.shown import clean, shown
from dkl.store.folder import exists, is_url, remove

FORMAT, VERSION = "dkl-model", 1
DIGEST = "digest"
"""The attribute that holds the digest of the others."""
CODECS = {"bytes", "zstd"}
KINDS = "fiub"
UNCHECKED_BYTES, MOST_COMPRESSION = 2**26, 2**8
"""Bytes that a record may declare unchecked, and decoded bytes per stored byte beyond."""


def save_record(
    path: Any,
    attributes: dict,
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]],
    kind: str = FORMAT,
    overwrite: bool = False,
) -> None:
    """Write {name: (dimension names, array)}; a local record is written atomically.

    overwrite: replace a record of the same kind once the new one is complete. Nothing else is ever replaced.
    """
    target = os.fspath(path)
    if exists(target):
        _check_replaceable(target, kind, overwrite)
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
    """Move fresh to final; the old record is removed after that."""
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
    """Remove the remains of killed saves of this path; call it only if no other save is running."""
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
    """Whether the path is a Zarr group with attributes, which are written last."""
    import zarr

    try:
        return bool(dict(zarr.open_group(target, mode="r").attrs))
    except Exception:  # not even a group
        return False


def _name(kind: str) -> str:
    return kind.replace("-", " ")


def _check_replaceable(target: str, kind: str, overwrite: bool) -> None:
    """Refuse to overwrite, unless the path holds only a record of this kind and `overwrite` is set."""
    import zarr

    try:
        attributes = dict(zarr.open_group(target, mode="r", zarr_format=3).attrs)
    except Exception:  # not even a group
        attributes = {}
    if attributes.get("format") != kind:
        raise FileExistsError(f"{shown(target)!r} exists and is not a {_name(kind)}; choose another path")
    listed = attributes.get("arrays")
    known = {"zarr.json", *(name.split("/")[0] for name in (listed if isinstance(listed, dict) else ()))}
    strange = sorted(name for name in _entries(target) - known if not name.startswith("."))
    if strange:
        raise FileExistsError(
            f"{shown(target)!r} also holds {strange[0]!r}, which is not part of the {_name(kind)}; move it away"
        )
    if not overwrite:
        raise FileExistsError(
            f"{shown(target)!r} exists and holds a {_name(kind)}; choose another path, or use overwrite=True"
        )


def _entries(target: str) -> set[str]:
    """Names directly under a path or URL."""
    if not is_url(target):
        return set(os.listdir(target))
    fs, name = filesystem(target)
    return {path.rstrip("/").rpartition("/")[2] for path in fs.ls(name, detail=False)} - {name.rpartition("/")[2]}


def _write(target: str, attributes: dict, arrays: dict[str, tuple[tuple[str, ...], np.ndarray]], kind: str) -> None:
    import zarr

    group = zarr.open_group(target, mode="w", zarr_format=3)
    described = {}
    for name, (dimensions, array) in arrays.items():
        array = np.asarray(array, array.dtype.newbyteorder("="), order="C")
        chunks = tuple(max(1, size) for size in array.shape)
        constant = _is_constant(array)
        group.create_array(
            name,
            data=array,
            dimension_names=list(dimensions),
            chunks=chunks,
            compressors=None if constant else zarr.codecs.ZstdCodec(),
            config={"write_empty_chunks": constant},
        )
        described[name] = {"shape": list(array.shape), "dtype": array.dtype.str, "sha256": _digest(array)}
    whole = {"format": kind, "version": VERSION, "arrays": described, **attributes}
    group.attrs.put({**whole, DIGEST: digest_of(whole)})


def _is_constant(array: np.ndarray) -> bool:
    """Whether a large array is constant: compressed, it would exceed MOST_COMPRESSION."""
    return array.nbytes > UNCHECKED_BYTES // 16 and bool((array == array.flat[0]).all())


def digest_of(attributes: dict) -> str:
    """sha256 of the attributes as JSON with sorted keys."""
    plain = json.loads(json.dumps({name: value for name, value in attributes.items() if name != DIGEST}))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"").hexdigest()


class DamagedRecord(ValueError):
    """A complete record that has changed since it was written."""


def open_attributes(path: Any, kind: str = FORMAT) -> dict:
    """The JSON attributes of a record; refused if it is not one."""
    return dict(_open_group(os.fspath(path), kind).attrs)


def _open_group(target: str, kind: str) -> Any:
    import zarr

    try:
        group = zarr.open_group(target, mode="r", zarr_format=3)
        attributes = dict(group.attrs)
    except ImportError as error:
        raise ValueError(f"{shown(target)!r} cannot be opened: {_line(error)} (pip install 'dkl[s3]' for S3)") from None
    except Exception as error:  # zarr's own errors differ by store and version
        raise ValueError(f"{shown(target)!r} is not a {_name(kind)}, or is damaged: {_line(error)}") from None
    if attributes.get("format") != kind:
        raise ValueError(f"{shown(target)!r} is a Zarr group but not a {_name(kind)}, or it is incomplete")
    version = attributes.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(
            f"{shown(target)!r} has format version {version!r}, and this dkl reads up to {VERSION}; upgrade dkl"
        )
    if DIGEST in attributes and attributes[DIGEST] != digest_of(attributes):
        raise DamagedRecord(
            f"the attributes of {shown(target)!r} have the wrong digest; the file is damaged or was changed"
        )
    return group


def open_record(path: Any, most_bytes: int, kind: str = FORMAT) -> tuple[dict, dict[str, np.ndarray]]:
    """Attributes and arrays; refuses anything but what was written."""
    target = os.fspath(path)
    group, place = _open_group(target, kind), shown(target)
    attributes = dict(group.attrs)
    described = attributes.get("arrays")
    if not isinstance(described, dict):
        raise ValueError(f"{place!r} is damaged: its attributes do not list its arrays; copy it again")
    found = {name: _described(group, name, expected, target) for name, expected in described.items()}
    total = sum(int(array.nbytes) for array in found.values())
    if total > most_bytes:
        raise ValueError(
            f"{place!r} declares {total:,} bytes, but {most_bytes:,} are free; load it on a machine with more memory"
        )
    held = (
        UNCHECKED_BYTES
        if total <= UNCHECKED_BYTES
        else UNCHECKED_BYTES + MOST_COMPRESSION * sum(_held(target, name, a.ndim) for name, a in found.items())
    )
    if total > held:
        raise ValueError(
            f"{place!r} declares {total:,} bytes, far more than its files hold, so it is damaged; copy it again"
        )
    arrays = {}
    for name, array in found.items():
        try:
            values = np.asarray(array[...])
        except Exception as error:
            raise ValueError(f"array {name!r} of {place!r} cannot be read: {_line(error)}") from None
        if _digest(values) != described[name].get("sha256"):
            raise ValueError(f"array {name!r} of {place!r} has the wrong digest; the file is damaged or was changed")
        arrays[name] = values
    return attributes, arrays


def _described(group: Any, name: str, expected: Any, target: str) -> Any:
    """An array of the record, checked against its attributes; its values are not read yet."""
    place = shown(target)
    try:
        array = member(group, name, target)
        shape, dtype = tuple(expected["shape"]), np.dtype(expected["dtype"])
        fits = array.shape == shape and array.dtype == dtype and dtype.kind in KINDS and set(codecs_of(array)) <= CODECS
        fits = fits and all(chunk <= max(1, size) for chunk, size in zip(array.chunks, shape, strict=True))
    except UnsafeZarr:
        raise
    except KeyError:
        raise ValueError(f"{place!r} has no array {name!r}, so it is damaged; copy it again") from None
    except Exception as error:
        raise ValueError(f"array {name!r} of {place!r} is damaged: {_line(error)}; copy it again") from None
    if not fits:
        raise ValueError(f"array {name!r} of {place!r} does not match its attributes; the file is damaged")
    return array


def _held(target: str, name: str, dimensions: int) -> int:
    """Stored bytes of the single chunk of an array; 0 if it is missing."""
    chunk = "/".join([target.rstrip("/"), name, "c", *("0" * dimensions)])
    if not is_url(target):
        return os.path.getsize(chunk) if os.path.isfile(chunk) else 0
    fs, key = filesystem(chunk)
    try:
        return int(fs.size(key) or 0)
    except FileNotFoundError:
        return 0


def _line(error: Exception) -> str:
    return clean(str(error).split("\n")[0]) or type(error).__name__
