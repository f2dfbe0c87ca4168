"""Whether a data set is what ingest wrote: the digest of its attributes and shapes, and chunks that are missing.

The bytes of each chunk have a checksum (the codec crc32c). Older data sets have neither checksums nor a digest, and
omit chunks of zeros. In those, a missing chunk that may have been zeros gives a warning; any other is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from typing import Any

from dkl.sources.batch import Unreachable
from dkl.sources.damage import ALL_WRITTEN, Damaged, cut_of
from dkl.sources.files import filesystem, one_line
from dkl.sources.recipe_matrices import GROUP

ARRAYS = ("X", "X/data", "X/indices", "X/indptr", "y", "row", "channel")
GROUP_KEYS = (
    "format", "version", "task", "recipe", "dropped", "rows", "class_counts", "target_range", "channels",
    "split", "splits", "sizes", "coordinates",
)  # fmt: skip
ARRAY_KEYS = (ALL_WRITTEN, "classes", "names", "encoding-type", "encoding-version", "shape", "block_rows")
DIGEST = "digest"


def members(group: Any) -> dict[str, Any]:
    """The arrays of one split by name, with the groups of sparse rows and of the recipe."""
    found: dict[str, Any] = {}
    for name in ARRAYS:
        parent = name.partition("/")[0]
        if (parent == name or not hasattr(found.get(parent), "shape")) and name in group:
            found[name] = group[name]
    found |= {name: array for name, array in sorted(group.arrays()) if name not in found}  # coordinates
    if GROUP in group and not hasattr(group[GROUP], "shape"):
        found |= {f"{GROUP}/{name}": array for name, array in sorted(group[GROUP].arrays())}
    return found


def description_digest(group: Any, attributes: dict) -> str:
    """sha256 of the attributes that ingest writes, and of the shape, dtype, chunks and attributes of every array."""
    described: list[Any] = [{key: attributes[key] for key in GROUP_KEYS if key in attributes}]
    for name, node in members(group).items():
        own = {key: node.attrs[key] for key in ARRAY_KEYS if key in node.attrs}
        described.append([name, own])
        if hasattr(node, "shape"):
            described[-1] += [node.shape, str(node.dtype), node.chunks, node.shards]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def check_description(group: Any, path: str) -> None:
    """Refuse a data set whose attributes or array shapes are not those that ingest wrote."""
    expected = group.attrs.get(DIGEST)
    if expected is None:
        return
    try:
        if "splits" not in group.attrs and "X" not in group:
            raise Damaged(f"it has no array 'X', only {sorted(group.keys())}")
        found = description_digest(group, dict(group.attrs))
    except Exception as error:  # unreadable metadata
        raise Damaged(f"the metadata of {path!r} is damaged: {one_line(error)}; ingest the source again") from None
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
    """Refuse a data set with a missing chunk; warn if an older one may have omitted it as zeros."""
    attributes, stored = dict(group.attrs), stored_names(path)
    for name, array in members(group).items():
        if not hasattr(array, "shape") or (only is not None and name.partition("/")[0] != only):
            continue
        for number in missing_chunks(array, name, stored):
            cut = cut_of(array)
            assert cut is not None
            start, stop = cut.rows_of(number)
            if (
                name == "channel"
                and len(attributes.get("channels") or []) == 1
                and array.attrs.get(ALL_WRITTEN) is not True
            ):
                continue  # a single channel has number zero, stored or not
            if array.attrs.get(ALL_WRITTEN) is True or not may_be_zeros(name, attributes, array, start, stop):
                raise cut.refusal(f"{path}/{name}", number, "missing")
            warnings.warn(
                f"chunk {cut.key(number)} of {path}/{name} (entries {start} to {stop - 1}) is missing: it was all "
                "zeros, which older data sets omit, or it is lost; ingest the source again to be sure",
                UserWarning,
                stacklevel=2,
            )
            break


def may_be_zeros(name: str, attributes: dict, array: Any, start: int, stop: int) -> bool:
    """Whether an older ingest may have omitted these entries as zeros, judging by the attributes."""
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
    """Whether one entry of this range can be zero; with `every`, whether all are."""
    return low == high == 0 if every else low <= 0 <= high


def warn_of_older(path: str) -> None:
    """Warn that an older data set has no checksums."""
    warnings.warn(
        f"{path!r} was ingested by an older dkl without checksums, so damage may go unnoticed; ingest the source again",
        UserWarning,
        stacklevel=2,
    )
