"""What all staged parts together decide: that their rows agree, channel names, layout, precision, and the target."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dkl.sources.batch import SourceError
from dkl.store.assemble import Target
from dkl.store.request import Request
from dkl.store.staging import Part
from dkl.store.survey import target_name

FIRST_INEXACT = 2.0**53
"""Whole numbers from here on are not all exact in float64."""
SPARSE_BELOW = 0.25
"""Share of entries that are stored, above which sparse sources become dense rows."""


def check_rows(parts: list[list[Part]], names: list[str]) -> None:
    """Refuse channels that do not have the same number of rows."""
    counts = [sum(part.rows for part in channel) for channel in parts]
    if not min(counts):
        raise SourceError(f"{names[int(np.argmin(counts))]!r} has no rows")
    if len(set(counts)) > 1:
        found = ", ".join(f"{name!r} {count:,}" for name, count in zip(names, counts, strict=True))
        raise SourceError(
            f"sources have different numbers of rows ({found}); channels have the same rows (say --rows if the sources "
            "are further rows of one table)"
        )


def channel_names(firsts: list, request: Request) -> list[str]:
    """A name for each channel that no other has."""
    names = [file.source.name for file in firsts]
    if len(request.descriptor) > 1:
        names = [f"{name} {request.descriptor[i % len(request.descriptor)]}" for i, name in enumerate(names)]
    return [name if names.count(name) == 1 else f"{name} {i}" for i, name in enumerate(names)]


def is_sparse(request: Request, parts: list[list[Part]], channels: Any) -> bool:
    """Whether rows are stored sparse: as asked, or if all sources are and little of them is stored."""
    all_sparse = all(part.summary["sparse"] for channel in parts for part in channel)
    if request.layout == "sparse" and not all_sparse:
        dense = next(i for i, channel in enumerate(parts) if not all(part.summary["sparse"] for part in channel))
        raise SourceError(
            f"layout='sparse', but {channels[dense].name!r} is dense; use --layout dense, or sparse sources only "
            "(svmlight, scipy.sparse .npz)"
        )
    if request.layout != "auto" or not all_sparse:
        return request.layout == "sparse"
    entries = sum(part.summary["entries"] for channel in parts for part in channel)
    cells = sum(part.rows for part in parts[0]) * sum(channel.n_inputs for channel in channels)
    return entries <= SPARSE_BELOW * cells


def final_dtype(request: Request, parts: list[list[Part]]) -> str:
    """float32, unless the user says otherwise or small whole numbers can stay what they are."""
    if request.dtype != "auto":
        return request.dtype
    kinds = {part.summary["dtype"] for channel in parts for part in channel}
    texts = any(part.summary["text"] for channel in parts for part in channel)
    small = len(kinds) == 1 and kinds <= {"uint8", "int8", "uint16", "int16"}
    return kinds.pop() if small and not texts and set(request.scale) <= {"none"} else "float32"


def find_target(request: Request, parts: list[list[Part]], firsts: list) -> Target:
    """What the target is: names, classes or numbers. Whole numbers are classes if there are few for so many rows."""
    for channel, (_, path, source) in zip(parts, firsts, strict=True):
        summaries = [part.summary for part in channel]
        if not source.has_target:
            continue
        name = target_name(source, request)
        if len({"labels" in s for s in summaries}) > 1:
            raise SourceError(f"the target of {path!r} is text in some rows and numbers in others; make it one of them")
        if "labels" in summaries[0]:
            if request.task == "regression":
                raise SourceError(f"the target of {path!r} is text; it cannot be used for regression")
            return Target("text", name, sorted(set().union(*(s.get("labels", []) for s in summaries))))
        values = [s.get("values") for s in summaries]
        distinct = set().union(*(v for v in values if v is not None)) if None not in values else None
        rows = sum(part.rows for part in channel)
        sizes = [s["largest"] for s in summaries]
        if request.task != "regression" and None not in sizes and max(sizes) >= FIRST_INEXACT:
            raise SourceError(
                f"the target of {path!r} holds {max(sizes):.0f}, a whole number that float64 cannot tell from "
                "its neighbours; say --task regression if it is a measure, or write classes as text"
            )
        if request.task == "classification":
            if distinct is None:
                raise SourceError(f"the target of {path!r} has too many values, or broken ones, to be classes")
            return Target("classification", name)
        few = distinct is not None and len(distinct) <= max(20, math.isqrt(rows))
        return Target("classification" if few and request.task == "auto" else "regression", name)
    if request.task != "auto":
        raise SourceError(f"task {request.task!r} needs a target, and no source has one; say --target")
    return Target("none")
