"""From a source's columns to inputs: fill, the steps of the scale (store/scale_steps.py), one-hot texts, the dtype.

A recipe is made once, from the training rows, and is stored with the data set and the model: JSON, and beside it the
matrices, of which the JSON holds the digests.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dkl.sources.batch import Batch, Coded, Column, SourceError
from dkl.sources.recipe_matrices import Matrices, matrix_name
from dkl.store.equal_blocks import CELLS
from dkl.store.scale_steps import Step, needs_dense, parse_steps
from dkl.store.zca import Whitening


@dataclass(frozen=True)
class Channel:
    """The inputs of one source with `width` numeric columns; `base` is the first index of a source without names."""

    name: str
    columns: tuple[Column, ...] | None
    width: int
    base: int = 0
    categories: dict[str, list[str]] = field(default_factory=dict)
    scale: str = "none"
    shift: tuple[float, ...] | None = None
    factor: tuple[float, ...] | None = None
    fill: tuple[float, ...] | None = None
    target: str = ""  # as asked of the source: a name, a position, none
    whitening: Whitening | None = None
    image_shape: tuple[int, ...] | None = None  # (height, width, colours), if its rows are images

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What the scale does, in order."""
        return parse_steps(self.scale)

    @property
    def is_dense(self) -> bool:
        """Whether the scale makes dense rows of sparse ones."""
        return needs_dense(self.steps)

    @property
    def names(self) -> list[str]:
        """Names of the inputs in order: numeric columns, and one per category of a text column."""
        if self.columns is None:
            return [str(i + self.base) for i in range(self.width)]
        found: list[str] = []
        for column in self.columns:
            found += [f"{column.name}={c}" for c in self.categories[column.name]] if column.is_text else [column.name]
        return found

    @property
    def n_inputs(self) -> int:
        return self.width + sum(map(len, self.categories.values()))

    def missing_rows(self, batch: Batch) -> np.ndarray:
        """Mask of rows with a missing value or an unknown category."""
        if hasattr(batch.X, "indptr"):
            gap = np.zeros(batch.X.shape[0], bool)
            gap[np.repeat(np.arange(batch.X.shape[0]), np.diff(batch.X.indptr))[np.isnan(batch.X.data)]] = True
        elif batch.X.dtype.kind == "f":
            gap = np.isnan(batch.X).any(axis=1)
        else:
            gap = np.zeros(batch.X.shape[0], bool)
        for name, column in batch.text.items():
            gap |= self._codes(name, column) < 0
        return gap

    def _codes(self, name: str, column: Coded) -> np.ndarray:
        """Codes of this recipe's categories, -1 for unknown ones."""
        known = {category: i for i, category in enumerate(self.categories[name])}
        table = np.array([*(known.get(n, -1) for n in column.names), -1], np.int64)
        return table[column.codes]

    def apply(self, batch: Batch, dtype: np.dtype, strict: bool) -> Any:
        """Inputs (n, n_inputs) of a batch, dense or csr like it; strict refuses missing and unknown values."""
        if hasattr(batch.X, "indptr") and not self.is_dense:
            return self._apply_sparse(batch.X, dtype)
        if self.is_dense:
            blocks = [_cast(block, dtype, self.name) for block in self.prepared(batch.X, len(self.steps))]
            return np.concatenate(blocks) if blocks else np.empty((0, self.width), dtype)
        X, joined = self._filled(batch.X), not self.categories
        for step in self.steps:
            if not joined and not step.kind.is_by_column:
                X, joined = self._with_categories(X, batch.text, strict), True
            X = step.kind.rows(X, self, step.number)
        return _cast(X if joined else self._with_categories(X, batch.text, strict), dtype, self.name)

    def prepared(self, X: Any, steps: int) -> Iterator[np.ndarray]:
        """Dense float64 rows after so many steps, a few at a time, so that they take little memory."""
        count = max(1, CELLS // max(1, self.width))
        for start in range(0, X.shape[0], count):
            rows = self.dense(X[start : start + count])
            rows = self._filled(rows).astype(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):  # rows that will be dropped, or refused by the cast
                for step in self.steps[:steps]:
                    rows = step.kind.rows(rows, self, step.number)
            yield rows

    def dense(self, X: Any) -> np.ndarray:
        """Rows as an array of all columns; sparse rows with an index that the recipe does not know are refused."""
        return X if not hasattr(X, "indptr") else self.counted(X).toarray()

    def counted(self, X: Any) -> Any:
        """Sparse rows with indices from 0, in the width of the channel."""
        from scipy.sparse import csr_array

        columns = X.indices - self.base
        if len(columns) and (columns.min() < 0 or columns.max() >= self.width):
            worst = int(columns.max() if columns.max() >= self.width else columns.min()) + self.base
            raise SourceError(
                f"channel {self.name!r} has index {worst}; the data set was made from indices {self.base} to "
                f"{self.base + self.width - 1}"
            )
        return csr_array((X.data, columns, X.indptr), shape=(X.shape[0], self.width))

    def _filled(self, X: np.ndarray) -> np.ndarray:
        if X.shape[1] != self.width:
            raise SourceError(
                f"channel {self.name!r} has {X.shape[1]} numbers in a row; the data set was made from {self.width}"
            )
        return X if self.fill is None else np.where(np.isnan(X), np.array(self.fill), X)

    def _with_categories(self, X: np.ndarray, text: dict[str, Coded], strict: bool) -> np.ndarray:
        assert self.columns is not None
        out = np.zeros((len(X), self.n_inputs))
        place = number = 0
        for column in self.columns:
            if not column.is_text:
                out[:, place] = X[:, number]
                place, number = place + 1, number + 1
                continue
            codes = self._codes(column.name, text[column.name])
            if strict and (codes < 0).any():
                value = text[column.name].names[text[column.name].codes[np.argmax(codes < 0)]]
                raise SourceError(
                    f"column {column.name!r} holds {value!r}, which is not a category of the data set; use --missing "
                    "zero "
                    "to encode it as none of them"
                )
            unknown = (codes < 0) & (text[column.name].codes >= 0)
            if unknown.any():
                value = text[column.name].names[text[column.name].codes[np.argmax(unknown)]]
                warnings.warn(
                    f"column {column.name!r} holds {value!r}, which no training row has; it is treated as missing",
                    UserWarning,
                )
            seen = np.flatnonzero(codes >= 0)
            out[seen, place + codes[seen]] = 1.0
            place += len(self.categories[column.name])
        return out

    def _apply_sparse(self, X: Any, dtype: np.dtype) -> Any:
        from scipy.sparse import csr_array

        own = self.counted(X)
        columns, data = own.indices, own.data
        if self.fill is not None:
            data = np.where(np.isnan(data), np.array(self.fill)[columns], data)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        for step in self.steps:
            assert step.kind.entries is not None
            data = step.kind.entries(data, rows, columns, X.shape[0], self)
        return csr_array((_cast(data, dtype, self.name), columns, X.indptr), shape=own.shape)

    def to_json(self) -> dict:
        """JSON values."""
        return {
            "name": self.name,
            "columns": None if self.columns is None else [[c.name, c.is_text] for c in self.columns],
            "width": self.width,
            "base": self.base,
            "categories": self.categories,
            "scale": self.scale,
            "target": self.target,
            "whitening": None if (known := self.whitening) is None else [known.inputs, known.digest],
            **{k: None if (v := getattr(self, k)) is None else list(v) for k in ("shift", "factor", "fill")},
            **({} if self.image_shape is None else {"image_shape": list(self.image_shape)}),
        }

    @classmethod
    def from_json(cls, values: dict) -> Channel:
        """The channel of these values; TypeError or KeyError if they are not one."""
        columns, whitening = values["columns"], values.get("whitening")  # recipes of earlier versions have no matrix
        shape = values.get("image_shape")
        return cls(
            name=str(values["name"]),
            columns=None if columns is None else tuple(Column(str(n), bool(t)) for n, t in columns),
            width=int(values["width"]),
            base=int(values["base"]),
            categories={str(k): list(map(str, v)) for k, v in values["categories"].items()},
            scale=str(values["scale"]),
            target=str(values["target"]),
            whitening=None if whitening is None else Whitening(int(whitening[0]), str(whitening[1])),
            image_shape=None if shape is None else tuple(map(int, shape)),
            **{k: None if values[k] is None else tuple(map(float, values[k])) for k in ("shift", "factor", "fill")},
        )


def _cast(X: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    """X in the data set's dtype; a number that it cannot hold is refused."""
    if X.dtype == dtype:
        return X
    with np.errstate(over="ignore", invalid="ignore"):
        cast = X.astype(dtype)
    bad = cast != X if dtype.kind in "iu" else np.isinf(cast) & np.isfinite(X)
    if bad.any():
        value = X.flat[int(np.argmax(bad))]
        raise SourceError(
            f"channel {name!r} holds {value:g}, which {dtype} cannot hold; use --dtype float64, or scale it"
        )
    return cast


def _with_matrix(channel: Channel, values: np.ndarray | None) -> Channel:
    return channel if channel.whitening is None else replace(channel, whitening=channel.whitening.with_values(values))


@dataclass(frozen=True)
class Recipe:
    """All channels, the dtype, and how the sources were read, so that new rows are read the same way."""

    channels: tuple[Channel, ...]
    dtype: str
    missing: str
    target: str | None
    reading: dict

    @property
    def n_inputs(self) -> int:
        return sum(channel.n_inputs for channel in self.channels)

    @property
    def input_names(self) -> list[str] | None:
        """Names of all inputs, prefixed by the channel if there are several; None if columns have no names."""
        if all(c.columns is None or all(k.name.lstrip("-").isdigit() for k in c.columns) for c in self.channels):
            return None
        several = len(self.channels) > 1
        return [f"{c.name} {name}" if several else name for c in self.channels for name in c.names]

    @property
    def input_labels(self) -> list[str]:
        """A label for each input, channel by channel: its name, or its number if columns have no names."""
        return [name for channel in self.channels for name in channel.names]

    def to_json(self) -> dict:
        """JSON values."""
        return {
            "channels": [channel.to_json() for channel in self.channels],
            "dtype": self.dtype,
            "missing": self.missing,
            "target": self.target,
            "reading": self.reading,
        }

    def matrices(self) -> Matrices:
        """The matrices by name, to be stored beside the JSON."""
        known = {matrix_name(i): channel.whitening for i, channel in enumerate(self.channels)}
        return {name: of.values for name, of in known.items() if of is not None and of.values is not None}

    @classmethod
    def from_json(cls, values: dict, matrices: Matrices | None = None) -> Recipe:
        """The recipe of these values; ValueError if they are not one, or if a matrix is another one."""
        try:
            channels = tuple(map(Channel.from_json, values["channels"]))
            if matrices:
                channels = tuple(_with_matrix(c, matrices.get(matrix_name(i))) for i, c in enumerate(channels))
            if np.dtype(values["dtype"]).kind not in "fiu":
                raise TypeError(values["dtype"])
            return cls(channels, values["dtype"], values["missing"], values["target"], dict(values["reading"]))
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"the recipe of the data set is damaged: {error!r}; ingest the source again") from None
