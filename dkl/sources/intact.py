"""Whether a data set is what ingest wrote: the digest of what it says of itself, and chunks that are not there.

The bytes of chunks have checksums of their own (the codec crc32c). Older data sets have neither checksums nor a digest,
and leave out chunks of zeros; of those a missing chunk is refused where it cannot have been zeros, else warned of.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from typing import Any

from dkl.sources.batch import Unreachable
from dkl.sources.damage import EVERY, Damaged, cut_of
from dkl.sources.files import filesystem, one_line

ARRAYS = ("X", "X/data", "X/indices", "X/indptr", "y", "row", "channel")
GROUP_KEYS = (
    "format", "version", "task", "recipe", "dropped", "rows", "class_counts", "target_range", "channels",
    "split", "splits", "sizes", "coordinates",
)  # fmt: skip
ARRAY_KEYS = (EVERY, "classes", "names", "encoding-type", "encoding-version", "shape", "block_rows")
DIGEST = "digest"


def members(group: Any) -> dict[str, Any]:
    """The arrays of one split, and the group of sparse rows, by name."""
    found: dict[str, Any] = {}
    for name in ARRAYS:
        parent = name.partition("/")[0]
        if (parent == name or not hasattr(found.get(parent), "shape")) and name in group:
            found[name] = group[name]
    found |= {name: array for name, array in sorted(group.arrays()) if name not in found}  # coordinates
    return found


def description_digest(group: Any, attributes: dict) -> str:
    """sha256 of the attributes that ingest writes, and of shape, type, cut and attributes of every array."""
    said: list[Any] = [{key: attributes[key] for key in GROUP_KEYS if key in attributes}]
    for name, node in members(group).items():
        own = {key: node.attrs[key] for key in ARRAY_KEYS if key in node.attrs}
        said.append([name, own])
        if hasattr(node, "shape"):
            said[-1] += [node.shape, str(node.dtype), node.chunks, node.shards]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def check_description(group: Any, path: str) -> None:
    """Refuse a data set whose attributes, or arrays' shapes, are not those that ingest wrote."""
    expected = group.attrs.get(DIGEST)
    if expected is None:
        return
    try:
        if "splits" not in group.attrs and "X" not in group:
            raise Damaged(f"it has no array 'X', only {sorted(group.keys())}")
        found = description_digest(group, dict(group.attrs))
    except Exception as error:  # metadata that cannot even be read
        raise Damaged(f"the metadata of {path!r} are damaged: {one_line(error)}; ingest the source again") from None
    if found != expected:
        raise Damaged(
            f"the attributes of {path!r}, or the shapes of its arrays, are not those that ingest wrote; copy it again, "
            "or ingest the source again"
        )


def is_older(attributes: dict) -> bool:
    """Whether a data set was written before there were checksums."""
    return attributes.get("format") == "dkl-dataset" and DIGEST not in attributes


def stored_names(path: str) -> set[str]:
    """Names of all files below a path or URL."""
    if "://" not in path:
        root = os.path.abspath(path)
        return {
            os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
            for folder, _, names in os.walk(root)
            for name in names
        }
    try:
        fs, folder = filesystem(path)
        return {name.removeprefix(folder).lstrip("/") for name in fs.find(folder)}
    except Exception as error:  # every filesystem raises its own
        raise Unreachable(f"{path!r} cannot be reached: {one_line(error)}") from error


def missing_chunks(array: Any, name: str, stored: set[str]) -> list[int]:
    """Numbers of the files of an array that are not among the stored names."""
    cut = cut_of(array)
    return [] if cut is None else [i for i in range(cut.count) if f"{name}/{cut.key(i)}" not in stored]


def check_chunks(group: Any, path: str, only: str | None = None) -> None:
    """Refuse a data set that lacks a chunk; of an older one warn if the chunk may have been zeros."""
    attributes, stored = dict(group.attrs), stored_names(path)
    for name, array in members(group).items():
        if not hasattr(array, "shape") or (only is not None and name.partition("/")[0] != only):
            continue
        for number in missing_chunks(array, name, stored):
            cut = cut_of(array)
            assert cut is not None
            start, stop = cut.rows_of(number)
            if name == "channel" and len(attributes.get("channels") or []) == 1 and array.attrs.get(EVERY) is not True:
                continue  # one channel has the number zero, whether it is stored or not
            if array.attrs.get(EVERY) is True or not may_be_zeros(name, attributes, array, start, stop):
                raise cut.refusal(f"{path}/{name}", number, "missing")
            warnings.warn(
                f"chunk {cut.key(number)} of {path}/{name} (entries {start} to {stop - 1}) is not there: all zeros, "
                "which older data sets leave out, or lost; ingest the source again to be sure",
                UserWarning,
                stacklevel=2,
            )
            break


def may_be_zeros(name: str, attributes: dict, array: Any, start: int, stop: int) -> bool:
    """Whether an older ingest can have left out these entries because all are zero, as far as the attributes tell."""
    ranges, counts, span = (attributes.get(key) for key in ("channels", "class_counts", "target_range"))
    every = (start, stop) == (0, array.shape[0])
    if name == "row":
        return (start, stop) == (0, 1)
    if name == "channel":
        return not ranges or len(ranges) == 1
    if name == "y" and span:
        return _has_zero(span[0], span[1], every)
    if name == "y" and counts:
        names = array.attrs.get("classes")
        return counts.get(str(names[0] if names else 0), 0) >= stop - start
    if name == "X" and ranges:
        return all(_has_zero(c["low"], c["high"], every) for c in ranges)
    return True


def _has_zero(low: float, high: float, every: bool) -> bool:
    """Whether entries of this range can be zero; every: all of them."""
    return low == high == 0 if every else low <= 0 <= high


def warn_of_older(path: str) -> None:
    """Say what an older data set lacks."""
    warnings.warn(
        f"{path!r} was ingested by an older dkl, without checksums: damaged bytes in it may go unnoticed; ingest the "
        "source again",
        UserWarning,
        stacklevel=2,
    )
