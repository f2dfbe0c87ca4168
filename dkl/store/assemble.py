"""From staged parts to the data set: rows in order, prepared by the recipe, split, and written by whole shards."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dkl.sources.batch import Batch
from dkl.sources.coords import Coords
from dkl.sources.intact import DIGEST, description_digest
from dkl.store.coords import CoordWriter, RowCoords
from dkl.store.dataset import FORMAT, VERSION, Appender
from dkl.store.layout import lay_out
from dkl.store.recipe import Recipe
from dkl.store.request import Request
from dkl.store.seen import Seen
from dkl.store.staging import Aligned
from dkl.store.survey import Placement, Survey
from dkl.store.target import Target, merge_targets


class SplitWriter:
    """The arrays of one split while they are written in row order."""

    def __init__(
        self, group: Any, rows: int, entries: int, recipe: Recipe, target: Target, sparse: bool, pool: Any,
        beside: list[Coords], row_coords: RowCoords,
    ) -> None:  # fmt: skip
        self.group, self.target, self.sparse, self.rows = group, target, sparse, rows
        arrays, coords, self.named = lay_out(group, rows, entries, recipe, target, sparse, beside, row_coords)
        self.appenders = {key: Appender(array, pool) for key, array in arrays.items()}
        self.coords = CoordWriter(coords, pool)
        self.seen = Seen(recipe, target.has_classes)
        if sparse:
            self.appenders["X/indptr"].add(np.zeros(1, np.int64))
            self.bound = 0

    def add(self, X: Any, y: np.ndarray | None, numbers: np.ndarray) -> None:
        """Append rows with their targets and their row numbers in the source."""
        if not len(numbers):
            return
        if self.sparse:
            self.appenders["X/data"].add(X.data)
            self.appenders["X/indices"].add(X.indices)
            self.appenders["X/indptr"].add(X.indptr[1:].astype(np.int64) + self.bound)
            self.bound += int(X.indptr[-1])
        else:
            self.appenders["X"].add(X)
        self.appenders["row"].add(numbers)
        if y is not None:
            self.appenders["y"].add(y)
        self.seen.add(X, y, numbers)

    def close(self, attributes: dict, names: list[str], split: str | None) -> None:
        """Write the remaining rows, then the attributes, then `complete`."""
        for appender in self.appenders.values():
            appender.close()
        self.coords.close()
        complete_split(self.group, attributes, self.rows, self.seen, names, self.target, split, self.named)


def complete_split(
    group: Any, attributes: dict, rows: int, seen: Seen, names: list[str], target: Target, split: str | None,
    coords: list[str],
) -> None:  # fmt: skip
    """What a split says of its rows, and `complete`."""
    said = seen.attributes(names, target.classes, target.kind == "regression")
    own = {"rows": rows, **said} | ({"split": split} if split else {})
    own["coordinates"] = " ".join(["channel", *coords])  # as xarray lists them
    _complete(group, {**attributes, **own})


def attributes_of(
    rows: int, found: Survey, recipe: Recipe, target: Target, origin: Any
) -> dict:  # fmt: skip
    """What all groups of a data set say, with its identity."""
    task = "classification" if target.kind == "text" else target.kind
    attributes = {"format": FORMAT, "version": VERSION, "task": task, "recipe": recipe.to_json(), "origin": origin}
    attributes["dropped"] = rows - sum(found.rows)
    attributes["id"] = hashlib.sha256(json.dumps([attributes, found.rows]).encode()).hexdigest()
    return attributes


def open_groups(root: Any, request: Request) -> list[Any]:
    """The groups of the splits in an empty data set."""
    root.attrs.put({"format": FORMAT, "version": VERSION, "complete": False})
    groups = [root.create_group(name) for name in request.split_names] or [root]
    for group in groups:
        group.attrs.put({"format": FORMAT, "version": VERSION, "complete": False})
    return groups


def close_root(root: Any, attributes: dict, found: Survey, request: Request) -> None:
    """What a data set says of its splits, and `complete`."""
    splits = request.split_names
    if splits:
        sizes = dict(zip(splits, found.rows, strict=True))
        _complete(root, {**attributes, "rows": sum(found.rows), "splits": list(splits), "sizes": sizes})


@dataclass(frozen=True)
class Preparation:
    """Rows as they are stored: their splits, inputs, targets and numbers in the source."""

    recipe: Recipe
    target: Target
    request: Request
    sparse: bool

    @cached_property
    def place(self) -> Placement:
        """The split of each row."""
        return Placement(self.request, self.recipe.channels)

    def targets(self, start: int, pieces: list[Batch]) -> np.ndarray | None:
        """y as it is stored."""
        y = merge_targets(start, pieces, [c.name for c in self.recipe.channels])
        return None if y is None or self.target.kind == "none" else self.target.encode(y)

    def inputs(self, pieces: list[Batch]) -> Any:
        """X as it is stored."""
        dtype, strict = np.dtype(self.recipe.dtype), self.request.missing == "refuse"
        blocks = [c.apply(b, dtype, strict) for c, b in zip(self.recipe.channels, pieces, strict=True)]
        return _side_by_side(blocks, self.sparse)


def assemble(
    root: Any, aligned: Aligned, found: Survey, prepared: Preparation, origin: Any, pool: ThreadPoolExecutor,
    progress: Any, beside: list[Coords],
) -> None:  # fmt: skip
    """Write the whole data set into an empty Zarr group."""
    recipe, target, request, sparse = prepared.recipe, prepared.target, prepared.request, prepared.sparse
    row_coords, total = RowCoords(beside), sum(part.rows for part in aligned.channels[0])
    names, splits = [c.name for c in recipe.channels], request.split_names
    attributes, groups = attributes_of(total, found, recipe, target, origin), open_groups(root, request)
    writers = [
        SplitWriter(group, rows, entries, recipe, target, sparse, pool, beside, row_coords)
        for group, rows, entries in zip(groups, found.rows, found.entries, strict=True)
    ]
    progress.begin(total)
    for start, pieces in aligned:
        split = prepared.place(start, pieces)
        y, X = prepared.targets(start, pieces), prepared.inputs(pieces)
        numbers = np.arange(start, start + X.shape[0])
        labels = row_coords.read(start, start + X.shape[0])
        for i, writer in enumerate(writers):
            mask = split == i
            writer.coords.add(labels, mask)
            if mask.all():
                writer.add(X, y, numbers)
            else:
                writer.add(X[mask], None if y is None else y[mask], numbers[mask])
        progress.advance(X.shape[0])
    for writer, name in zip(writers, splits or [None], strict=True):
        writer.close(attributes, names, name)
    progress.end()
    close_root(root, attributes, found, request)


def _complete(group: Any, attributes: dict) -> None:
    """Write the attributes, their digest, and `complete`."""
    group.attrs.put({**attributes, DIGEST: description_digest(group, attributes), "complete": True})


def _side_by_side(blocks: list[Any], sparse: bool) -> Any:
    if sparse:
        from scipy.sparse import hstack

        together = blocks[0] if len(blocks) == 1 else hstack(blocks, format="csr")
        together.sort_indices()
        return together
    dense = [block.toarray() if hasattr(block, "toarray") else block for block in blocks]
    return dense[0] if len(dense) == 1 else np.hstack(dense)
