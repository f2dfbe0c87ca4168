"""From staged parts to the data set: rows in order, prepared by the recipe, split, and written by whole shards."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.checks import first_where
from dkl.sources.batch import Batch, Coded, SourceError
from dkl.sources.coords import Coords
from dkl.sources.intact import DIGEST, description_digest
from dkl.sources.recipe_matrices import GROUP
from dkl.store.coords import CoordWriter, RowCoords, write_inputs
from dkl.store.dataset import FORMAT, VERSION, Appender, create_rows, cut_rows
from dkl.store.recipe import Recipe
from dkl.store.request import Request
from dkl.store.staging import Aligned
from dkl.store.survey import Placement, Survey

Y_DTYPES = {"text": "int32", "classification": "int64", "regression": "float64"}


@dataclass(frozen=True)
class Target:
    """The kind of y: text (class names), classification (integers), regression, or none."""

    kind: str
    name: str | None = None
    classes: list[str] = field(default_factory=list)

    def encode(self, y: Any) -> np.ndarray:
        """y as it is stored."""
        if isinstance(y, Coded):
            place = {name: i for i, name in enumerate(self.classes)}
            return np.array([place[name] for name in y.names] or [0], np.int32)[y.codes]
        kept = y if self.kind == "regression" else np.where(np.isnan(y), 0.0, y)  # rows without a target are dropped
        return kept.astype(Y_DTYPES[self.kind])


def index_dtype(columns: int) -> Any:
    """The narrowest integer dtype for column indices."""
    return np.int32 if columns <= np.iinfo(np.int32).max else np.int64


class SplitWriter:
    """The arrays of one split while they are written."""

    def __init__(
        self, group: Any, rows: int, entries: int, recipe: Recipe, target: Target, sparse: bool, pool: Any,
        beside: list[Coords], row_coords: RowCoords,
    ) -> None:  # fmt: skip
        m, dtype = recipe.n_inputs, np.dtype(recipe.dtype)
        row_bytes = dtype.itemsize * m if not sparse else max(1, entries // rows) * (dtype.itemsize + 4)
        cut = cut_rows(rows, row_bytes)
        plain = (cut[1] or cut[0], None)
        self.group, self.target, self.sparse, self.rows = group, target, sparse, rows
        self.inputs = [(c.name, name) for c in recipe.channels for name in c.names]
        self.appenders: dict[str, Appender] = {}
        if sparse:
            inner = group.create_group("X")
            inner.attrs.put(
                {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [rows, m], "block_rows": plain[0]}
            )
            stored = cut_rows(entries, dtype.itemsize)
            for name, kind in (("data", dtype), ("indices", index_dtype(m))):
                self._open(inner, f"X/{name}", name, (entries,), kind, stored, ["entry"], pool)
            self._open(inner, "X/indptr", "indptr", (rows + 1,), np.int64, (plain[0] + 1, None), ["bound"], pool)
            self.appenders["X/indptr"].add(np.zeros(1, np.int64))
            self.bound = 0
        else:
            self._open(group, "X", "X", (rows, m), dtype, cut, ["row", "input"], pool)
        self._open(group, "row", "row", (rows,), np.int64, plain, ["row"], pool)
        if target.kind != "none":
            self._open(group, "y", "y", (rows,), Y_DTYPES[target.kind], plain, ["row"], pool)
        if target.classes:
            group["y"].attrs["classes"] = target.classes
        owner = np.repeat(np.arange(len(recipe.channels)), [c.n_inputs for c in recipe.channels]).astype(np.int32)
        channel = write_inputs(group, "channel", owner)
        channel.attrs["names"] = [c.name for c in recipe.channels]
        for name, values in recipe.matrices().items():
            inner = group.require_group(GROUP)
            cut_of_matrix = cut_rows(len(values), values[0].nbytes)
            dims = [f"{name}_row", f"{name}_input"]
            create_rows(inner, name, values.shape, values.dtype, cut_of_matrix, dims)[:] = values
        names = recipe.input_names
        if names is not None:
            write_inputs(group, "input", np.array(names))
        self.coords = CoordWriter(group, beside, row_coords, rows, plain, pool)
        self.counts: dict[Any, int] = {}
        self.span = [np.inf, -np.inf]
        self.edges = np.append(0, np.cumsum([c.n_inputs for c in recipe.channels]))
        self.ranges = np.tile([np.inf, -np.inf], (len(recipe.channels), 1))

    def _open(self, group: Any, key: str, name: str, shape: tuple, dtype: Any, cut: Any, dims: list, pool: Any) -> None:
        self.appenders[key] = Appender(create_rows(group, name, shape, dtype, cut, dims), pool)

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
            self.span = [min(self.span[0], float(y.min())), max(self.span[1], float(y.max()))]
            if self.target.kind != "regression":
                for value, count in zip(*np.unique(y, return_counts=True), strict=True):
                    self.counts[value.item()] = self.counts.get(value.item(), 0) + int(count)
        for i in range(len(self.ranges)):
            low, high = _range(X, self.edges[i], self.edges[i + 1])
            if low != low:
                raise _missing_value(X, numbers, self.inputs)
            self.ranges[i] = min(self.ranges[i][0], low), max(self.ranges[i][1], high)

    def close(self, attributes: dict, names: list[str], split: str | None) -> None:
        """Write the remaining rows, then the attributes, then `complete`."""
        for appender in self.appenders.values():
            appender.close()
        self.coords.close()
        counts = {
            str(self.target.classes[k] if self.target.classes else k): self.counts[k] for k in sorted(self.counts)
        }
        ranges = [
            {"name": name, "inputs": int(self.edges[i + 1] - self.edges[i]), "low": low, "high": high}
            for i, (name, (low, high)) in enumerate(zip(names, self.ranges.tolist(), strict=True))
        ]
        span = self.span if self.target.kind == "regression" else None
        own = {"rows": self.rows, "class_counts": counts, "target_range": span, "channels": ranges} | (
            {"split": split} if split else {}
        )
        own["coordinates"] = " ".join(["channel", *self.coords.names])  # as xarray lists them
        _complete(self.group, {**attributes, **own})


def _missing_value(X: Any, numbers: np.ndarray, inputs: list[tuple[str, str]]) -> SourceError:
    """The error of a missing value that the recipe does not fill."""
    found = first_where(X, np.isnan)
    assert found is not None
    channel, column = inputs[found[1]]
    return SourceError(
        f"row {numbers[found[0]]} of channel {channel!r} has no value in column {column!r}, and the recipe has no fill "
        "value for it; use --missing drop or zero"
    )


def _range(X: Any, first: int, last: int) -> tuple[float, float]:
    """(minimum, maximum) of some columns."""
    if not hasattr(X, "indptr"):
        return float(X[:, first:last].min()), float(X[:, first:last].max())
    inside = X.data[(X.indices >= first) & (X.indices < last)]
    zero = [] if len(inside) == X.shape[0] * (last - first) else [0.0]
    values = [*zero, *([inside.min(), inside.max()] if len(inside) else [])]
    return float(min(values)), float(max(values))


def merge_targets(start: int, pieces: list[Batch], names: list[str]) -> Any:
    """The target of all channels; refused if they disagree."""
    found: Any = None
    for batch, name in zip(pieces, names, strict=True):
        if batch.y is None:
            continue
        if found is None:
            found, first = batch.y, name
            continue
        mine, other = _plain(found), _plain(batch.y)
        if {mine.dtype.kind, other.dtype.kind} != {"f"}:
            mine, other = mine.astype(str), other.astype(str)
        differ = mine != other if mine.dtype.kind == "U" else ~_equal(mine, other)
        if np.any(differ):
            row = int(np.argmax(differ))
            raise SourceError(
                f"row {start + row} has the target {mine[row]} in {first!r} and {other[row]} in {name!r}; channels are "
                "the same rows in the same order (use --rows if the sources are further rows of one table)"
            )
    return found


def _plain(y: Any) -> np.ndarray:
    return np.array([*y.names, ""])[y.codes] if isinstance(y, Coded) else y


def _equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def assemble(
    root: Any, aligned: Aligned, found: Survey, recipe: Recipe, target: Target, request: Request, sparse: bool,
    origin: Any, pool: ThreadPoolExecutor, progress: Any, beside: list[Coords],
) -> None:  # fmt: skip
    """Write the whole data set into an empty Zarr group."""
    row_coords = RowCoords(beside)
    names, dtype = [c.name for c in recipe.channels], np.dtype(recipe.dtype)
    splits, place = request.split_names, Placement(request, recipe.channels)
    task = "classification" if target.kind == "text" else target.kind
    dropped = sum(part.rows for part in aligned.channels[0]) - sum(found.rows)
    attributes = {"format": FORMAT, "version": VERSION, "task": task, "recipe": recipe.to_json(), "origin": origin}
    attributes["dropped"] = dropped
    attributes["id"] = hashlib.sha256(json.dumps([attributes, found.rows]).encode()).hexdigest()
    root.attrs.put({"format": FORMAT, "version": VERSION, "complete": False})
    groups = [root.create_group(name) for name in splits] or [root]
    for group in groups:
        group.attrs.put({"format": FORMAT, "version": VERSION, "complete": False})
    writers = [
        SplitWriter(group, rows, entries, recipe, target, sparse, pool, beside, row_coords)
        for group, rows, entries in zip(groups, found.rows, found.entries, strict=True)
    ]
    progress.begin(sum(part.rows for part in aligned.channels[0]))
    for start, pieces in aligned:
        split = place(start, pieces)
        y = merge_targets(start, pieces, names)
        y = None if y is None or target.kind == "none" else target.encode(y)
        blocks = [c.apply(b, dtype, request.missing == "refuse") for c, b in zip(recipe.channels, pieces, strict=True)]
        X = _side_by_side(blocks, sparse)
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
    if splits:
        sizes = dict(zip(splits, found.rows, strict=True))
        _complete(root, {**attributes, "rows": sum(found.rows), "splits": list(splits), "sizes": sizes})


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
