"""Decisions that need all staged parts: row counts agree, channel names, layout, dtype and the target."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dkl.sources.batch import SourceError
from dkl.store.recipe import Channel
from dkl.store.request import Request
from dkl.store.staging import Part
from dkl.store.survey import target_name
from dkl.store.target import Target
from dkl.store.zca import check_inputs

FIRST_INEXACT = 2.0**53
"""From here on, float64 does not hold every integer."""
SPARSE_BELOW = 0.25
"""Share of stored entries above which sparse sources become dense rows."""


def check_rows(parts: list[list[Part]], names: list[str]) -> None:
    """Refuse channels that do not have the same number of rows."""
    counts = [sum(part.rows for part in channel) for channel in parts]
    if not min(counts):
        raise SourceError(f"{names[int(np.argmin(counts))]!r} has no rows; give at least one")
    if len(set(counts)) > 1:
        found = ", ".join(f"{name!r} {count:,}" for name, count in zip(names, counts, strict=True))
        raise SourceError(
            f"sources have different numbers of rows ({found}); channels have the same rows (use --rows if the sources "
            "are further rows of one table)"
        )


def channel_names(firsts: list, request: Request) -> list[str]:
    """A unique name for each channel: of its source, its descriptor, or both."""
    names = [file.source.name for file in firsts]
    if len(request.descriptor) == len(names) > 1:
        names = list(request.descriptor)
    elif len(request.descriptor) > 1:
        names = [f"{name} {request.descriptor[i % len(request.descriptor)]}" for i, name in enumerate(names)]
    return [name if names.count(name) == 1 else f"{name} {i}" for i, name in enumerate(names)]


def is_sparse(request: Request, parts: list[list[Part]], channels: Any) -> bool:
    """Whether rows are stored sparse: as asked, or if all sources are sparse and few entries are stored."""
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


def check_steps(channels: tuple[Channel, ...], sparse: bool, room: int | None) -> None:
    """Refuse steps that do not suit the columns, and matrices that are too large."""
    for channel in channels:
        if channel.categories and (len(channel.steps) > 1 or channel.is_dense):
            raise SourceError(
                f"scale={channel.scale!r} takes numbers only, and channel {channel.name!r} has the text column "
                f"{next(iter(channel.categories))!r}; use one of minmax, standard or l1, or --drop it"
            )
        if sparse and channel.is_dense:
            raise SourceError(
                f"scale={channel.scale!r} leaves no zeros, and the rows of channel {channel.name!r} are sparse; use "
                f"--layout dense ({channel.width:,} numbers in a row), or one of minmax, standard or l1"
            )
        if any(step.kind.learns == "whitening" for step in channel.steps):
            check_inputs(channel.name, channel.width, room)


def final_dtype(request: Request, parts: list[list[Part]]) -> str:
    """float32, unless the user chose a dtype or small integers can be kept."""
    if request.dtype != "auto":
        return request.dtype
    kinds = {part.summary["dtype"] for channel in parts for part in channel}
    texts = any(part.summary["text"] for channel in parts for part in channel)
    small = len(kinds) == 1 and kinds <= {"uint8", "int8", "uint16", "int16"}
    return kinds.pop() if small and not texts and set(request.scale) <= {"none"} else "float32"


def find_target(request: Request, parts: list[list[Part]], firsts: list) -> Target:
    """The target: names, classes or numbers. Integers are classes if few of them are distinct."""
    for channel, (_, path, source) in zip(parts, firsts, strict=True):
        summaries = [part.summary for part in channel]
        if not source.has_target:
            continue
        name = target_name(source, request)
        if len({"labels" in s for s in summaries}) > 1:
            raise SourceError(
                f"the target of {path!r} is text in some rows and numbers in others; make it all text or all numbers"
            )
        if "labels" in summaries[0]:
            if request.task == "regression":
                raise SourceError(
                    f"the target of {path!r} is text, which --task regression cannot use; use --task classification"
                )
            return Target("text", name, sorted(set().union(*(s.get("labels", []) for s in summaries))))
        values = [s.get("values") for s in summaries]
        distinct = set().union(*(v for v in values if v is not None)) if None not in values else None
        rows = sum(part.rows for part in channel)
        sizes = [s["largest"] for s in summaries]
        if request.task != "regression" and None not in sizes and max(sizes) >= FIRST_INEXACT:
            raise SourceError(
                f"the target of {path!r} holds {max(sizes):.0f}, an integer that float64 cannot tell from "
                "its neighbours; use --task regression if it is a measurement, or write classes as text"
            )
        if request.task == "classification":
            if distinct is None:
                raise SourceError(
                    f"the target of {path!r} has too many values, or fractions, to be classes; use --task regression"
                )
            return Target("classification", name)
        few = distinct is not None and len(distinct) <= max(20, math.isqrt(rows))
        return Target("classification" if few and request.task == "auto" else "regression", name)
    if request.task != "auto":
        raise SourceError(f"task {request.task!r} needs a target, and no source has one; use --target")
    return Target("none")
