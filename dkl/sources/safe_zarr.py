"""Zarr from anyone: numbers and texts in known codecs are opened, anything else is refused by name, undecoded.

Every Zarr node that dkl reads is opened here. An array of objects could hold pickles, a codec that is not known could
run anything, and a few bytes of metadata may promise terabytes of fill values.
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
WIDEST = 2**16
"""Bytes of one value: texts of fixed width may be long, but not without end."""
ORDINARY = 2**30
"""Bytes that an array may declare whatever it holds."""
RATIO = 2**16
"""Bytes that a stored byte may stand for: about what zstd makes of zeros."""
DOCUMENTS = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")


class UnsafeZarr(SourceError):
    """A Zarr array that dkl does not decode, in one sentence."""


def open_node(path: str, **how: Any) -> Any:
    """zarr.open(path, mode='r') of a path or URL, if it is a group, or an array that may be decoded."""
    import zarr

    try:
        node = zarr.open(path, mode="r", **how)
    except Exception:
        _refuse_named(path)
        raise
    return node if isinstance(node, zarr.Group) else checked(node, path)


def open_in_store(store: Any, path: str) -> Any:
    """The same of a place in a Zarr store that is open."""
    import zarr

    node = zarr.open(store=store, path=path, mode="r")
    return node if isinstance(node, zarr.Group) else checked(node, f"{store}/{path}")


def member(group: Any, name: str, place: str) -> Any:
    """group[name]; KeyError if there is none. `place` is where the group lies."""
    own = f"{place.rstrip('/')}/{name}"
    try:
        node = group[name]
    except KeyError:
        raise
    except Exception as error:  # metadata that is damaged, or names what Zarr does not know
        _refuse_named(own)
        raise SourceError(f"{own!r} is damaged: {one_line(error)}") from None
    return checked(node, own) if hasattr(node, "shape") else node


def has_member(group: Any, name: str, place: str) -> bool:
    """Whether group[name] is there; one that cannot be opened is refused."""
    try:
        member(group, name, place)
    except KeyError:
        return False
    return True


def arrays_of(group: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Name and array of each array in a group."""
    for name, array in sorted(group.arrays()):
        yield name, checked(array, f"{place.rstrip('/')}/{name}")


def checked(array: Any, place: str) -> Any:
    """The array, if its dtype and every codec of it are known."""
    for name in codecs_of(array):
        if name not in CODECS:
            raise _unknown(place, name)
    if array.dtype.kind == "O" or (array.dtype.hasobject and array.dtype.kind != "T"):
        raise UnsafeZarr(
            f"{shown(place)!r} holds objects ({array.dtype}), which could be pickles; store numbers or texts"
        )
    if array.dtype.itemsize > WIDEST:
        raise UnsafeZarr(
            f"{shown(place)!r} declares values of {array.dtype.itemsize:,} bytes each; {WIDEST:,} are read"
        )
    return array


def codecs_of(array: Any) -> list[str]:
    """Names of all codecs and filters, also of those inside a shard."""
    return _names(array.metadata.to_dict())


def _names(entry: Any) -> list[str]:
    """Codecs that the metadata of an array, or the settings of a codec, name."""
    found = []
    lists = [entry.get(key) or () for key in ("codecs", "index_codecs", "filters")]
    for codec in [*(c for some in lists for c in some), *([entry["compressor"]] if entry.get("compressor") else [])]:
        about = codec if isinstance(codec, dict) else {"name": str(codec)}
        found.append(str(about.get("name", about.get("id"))).removeprefix("numcodecs."))
        found += _names(about.get("configuration") or {})
    return found


def _unknown(place: str, name: str) -> UnsafeZarr:
    return UnsafeZarr(
        f"{shown(place)!r} is written with the codec {name!r}, which dkl does not decode; write it again with zstd, "
        "blosc or gzip"
    )


def _refuse_named(place: str) -> None:
    """Of an array that Zarr did not open: say which codec it names, if that is why."""
    for document in ("zarr.json", ".zarray"):
        names, dtype = [], ""
        with contextlib.suppress(Exception):  # no such file, or no JSON: not our reason
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
    """Bytes of all chunks of an array once they are decoded; those at the edges are as large as the others."""
    cut = array.shards or array.chunks
    blocks = math.prod(-(-size // max(1, step)) for size, step in zip(array.shape, cut, strict=True))
    return blocks * math.prod(map(int, cut)) * array.dtype.itemsize


def check_held(array: Any, place: str, ordinary: int = ORDINARY, ratio: int = RATIO) -> None:
    """Refuse an array that declares far more than its files could stand for."""
    declared = declared_bytes(array)
    if declared <= ordinary or place.startswith(("http:", "https:")):  # the web has no lists of files
        return
    held = 0
    for size in _sizes(place):
        held += size
        if held * ratio >= declared:
            return
    raise UnsafeZarr(
        f"{shown(place)!r} declares {declared:,} bytes but holds {held:,}; it is damaged, or not what it says"
    )


def _sizes(place: str) -> Iterator[int]:
    """Bytes of each file of data under a path or URL."""
    if "://" not in place:
        for folder, _, names in os.walk(place):
            for name in names:
                if name not in DOCUMENTS:
                    with contextlib.suppress(FileNotFoundError):
                        yield os.stat(os.path.join(folder, name)).st_size
        return
    fs, folder = filesystem(place)
    for name, about in fs.find(folder, detail=True).items():
        if name.rpartition("/")[2] not in DOCUMENTS:
            yield int(about.get("size") or 0)
