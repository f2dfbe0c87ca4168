"""Untrusted Zarr: numbers and texts in known codecs are opened; anything else is refused before it is decoded.

Every Zarr node that dkl reads is opened here. An array of objects could hold pickles, an unknown codec could run any
code, and a few bytes of metadata may declare terabytes of fill values.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
from typing import Any

from dkl.sources.batch import SourceError
from dkl.sources.files import filesystem, one_line
from dkl.sources.shown import shown

CODECS = frozenset(
    [
        "bytes",
        "endian",
        "transpose",
        "sharding_indexed",
        "zstd",
        "blosc",
        "gzip",
        "zlib",
        "lz4",
        "bz2",
        "lzma",
        "shuffle",
        "delta",
        "fixedscaleoffset",
        "astype",
        "bitround",
        "quantize",
        "packbits",
        "crc32",
        "crc32c",
        "adler32",
        "fletcher32",
        "vlen-utf8",
    ]
)
WIDEST_VALUE = 2**16
"""Bytes of one value, which may be a text of fixed width."""
UNCHECKED_BYTES = 2**30
"""Bytes that an array may declare without a look at its files."""
MOST_COMPRESSION = 2**16
"""Decoded bytes per stored byte: about what zstd reaches on zeros."""
METADATA_FILES = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")


class UnsafeZarr(SourceError):
    """A Zarr array that dkl refuses to decode."""


def open_node(path: str, **how: Any) -> Any:
    """zarr.open(path, mode='r') of a path or URL: a group, or an array that is safe to decode."""
    import zarr

    try:
        node = zarr.open(path, mode="r", **how)
    except Exception:
        _refuse_named(path)
        raise
    return node if isinstance(node, zarr.Group) else checked(node, path)


def open_in_store(store: Any, path: str) -> Any:
    """The same for a path in an open Zarr store."""
    import zarr

    node = zarr.open(store=store, path=path, mode="r")
    return node if isinstance(node, zarr.Group) else checked(node, f"{store}/{path}")


def member(group: Any, name: str, place: str) -> Any:
    """group[name]; KeyError if there is none. `place` is the path of the group."""
    own = f"{place.rstrip('/')}/{name}"
    try:
        node = group[name]
    except KeyError:
        raise
    except Exception as error:  # damaged metadata, or a name that Zarr does not know
        _refuse_named(own)
        raise SourceError(f"{own!r} is damaged: {one_line(error)}; copy it again") from None
    return checked(node, own) if hasattr(node, "shape") else node


def has_member(group: Any, name: str, place: str) -> bool:
    """Whether group[name] exists; one that cannot be opened is refused."""
    try:
        member(group, name, place)
    except KeyError:
        return False
    return True


def arrays_of(group: Any, place: str) -> Iterator[tuple[str, Any]]:
    """(name, array) of each array in a group."""
    for name, array in sorted(group.arrays()):
        yield name, checked(array, f"{place.rstrip('/')}/{name}")


def checked(array: Any, place: str) -> Any:
    """The array, if its dtype and all its codecs are known; else UnsafeZarr."""
    for name in codecs_of(array):
        if name not in CODECS:
            raise _unknown(place, name)
    if array.dtype.kind == "O" or (array.dtype.hasobject and array.dtype.kind != "T"):
        raise UnsafeZarr(
            f"{shown(place)!r} holds objects ({array.dtype}), which could be pickles; store numbers or texts"
        )
    if array.dtype.itemsize > WIDEST_VALUE:
        raise UnsafeZarr(
            f"{shown(place)!r} declares values of {array.dtype.itemsize:,} bytes each; store values of at most "
            f"{WIDEST_VALUE:,}"
        )
    return array


def codecs_of(array: Any) -> list[str]:
    """Names of all codecs and filters, also of those inside a shard."""
    return _names(array.metadata.to_dict())


def _names(entry: Any) -> list[str]:
    """Names of codecs in the metadata of an array, or in the configuration of a codec."""
    found = []
    lists = [entry.get(key) or () for key in ("codecs", "index_codecs", "filters")]
    for codec in [*(c for some in lists for c in some), *([entry["compressor"]] if entry.get("compressor") else [])]:
        about = codec if isinstance(codec, dict) else {"name": str(codec)}
        found.append(str(about.get("name", about.get("id"))).removeprefix("numcodecs."))
        found += _names(about.get("configuration") or {})
    return found


def _unknown(place: str, name: str) -> UnsafeZarr:
    return UnsafeZarr(
        f"{shown(place)!r} uses the codec {name!r}, which dkl does not decode; write it again with zstd, blosc or gzip"
    )


def _refuse_named(place: str) -> None:
    """Refuse by name the codec or dtype that kept Zarr from opening an array, if that is why."""
    for document in ("zarr.json", ".zarray"):
        names, dtype = [], ""
        with contextlib.suppress(Exception):  # no such file, or not JSON: another reason
            fs, folder = filesystem(place)
            about = json.loads(fs.cat_file(f"{folder.rstrip('/')}/{document}"))
            names, dtype = _names(about), str(about.get("dtype"))
        for name in names:
            if name not in CODECS:
                raise _unknown(place, name) from None
        if dtype == "|O":
            raise UnsafeZarr(
                f"{shown(place)!r} holds objects, which could be pickles; store numbers or texts"
            ) from None


def declared_bytes(array: Any) -> int:
    """Bytes of all chunks of an array when decoded; edge chunks are as large as the others."""
    cut = array.shards or array.chunks
    blocks = math.prod(-(-size // max(1, step)) for size, step in zip(array.shape, cut, strict=True))
    return blocks * math.prod(map(int, cut)) * array.dtype.itemsize


def check_held(array: Any, place: str, unchecked: int = UNCHECKED_BYTES, ratio: int = MOST_COMPRESSION) -> None:
    """Refuse an array that declares far more bytes than its files can decode to."""
    declared = declared_bytes(array)
    if declared <= unchecked or place.startswith(("http:", "https:")):  # HTTP cannot list files
        return
    held = 0
    for size in _sizes(place):
        held += size
        if held * ratio >= declared:
            return
    raise UnsafeZarr(
        f"{shown(place)!r} declares {declared:,} bytes but holds {held:,}, so it is damaged; copy it again"
    )


def _sizes(place: str) -> Iterator[int]:
    """Bytes of each file of data under a path or URL."""
    if "://" not in place:
        for folder, _, names in os.walk(place):
            for name in names:
                if name not in METADATA_FILES:
                    with contextlib.suppress(FileNotFoundError):
                        yield os.stat(os.path.join(folder, name)).st_size
        return
    fs, folder = filesystem(place)
    for name, about in fs.find(folder, detail=True).items():
        if name.rpartition("/")[2] not in METADATA_FILES:
            yield int(about.get("size") or 0)
