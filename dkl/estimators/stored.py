"""How a fitted attribute lies on disk. `FITTED` of an estimator says it once, for save, load, inspect and help.

A model is a record of plain values (`fitted`) and named arrays. An attribute `coef_` has the name `coef` there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.estimators.json_values import from_json, to_json
from dkl.features.stored import restore_map, store_map
from dkl.learn.history import Column, history_dataset
from dkl.learn.learned import HISTORY

ABSENT: Any = object()
"""What an optional attribute reads as if the record does not have it."""


@dataclass
class Record:
    """What a model is on disk; `params` are those of its feature map, None if the map says all by itself."""

    params: dict[str, Any] | None
    fitted: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    dims: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, name: str, dims: tuple[str, ...], values: Any) -> None:
        """One array, with the names of its dimensions."""
        self.arrays[name], self.dims[name] = np.asarray(values), dims


@dataclass(frozen=True)
class Stored:
    """A fitted attribute. This kind follows from others, so nothing of it is stored."""

    about: str
    """One sentence, for the docstring."""
    name: str = field(default="", kw_only=True)
    """The name on disk, if it is not that of the attribute without its underscore."""
    optional: bool = field(default=False, kw_only=True)
    """Whether a fitted model may lack it."""
    tells: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    """What `dkl inspect` says of a value, as JSON; None for what is usual of the kind."""
    told: bool = field(default=True, kw_only=True)
    """Whether it says anything."""

    def key(self, attribute: str) -> str:
        """The name on disk."""
        return self.name or attribute.removesuffix("_")

    def write(self, attribute: str, value: Any, to: Record) -> None:
        """Add the value to a record."""

    def read(self, attribute: str, record: Record) -> Any:
        """The value, or ABSENT; a KeyError if the record must have it."""
        return ABSENT

    def tell(self, value: Any) -> Any:
        """What `dkl inspect` says, as JSON; None for nothing."""
        if not self.told:
            return None
        return self.usual(value) if self.tells is None else self.tells(value)

    def usual(self, value: Any) -> Any:
        """What is said of a value of this kind."""
        return None


@dataclass(frozen=True)
class Array(Stored):
    """An array of numbers; of fewer dimensions than named, the last ones count."""

    dims: tuple[str, ...]
    single: bool = field(default=False, kw_only=True)
    """Whether one value is read as a number."""

    def write(self, attribute: str, value: Any, to: Record) -> None:
        """The array, at least of one dimension."""
        values = np.atleast_1d(value)
        to.add(self.key(attribute), self.dims[-values.ndim :], values)

    def read(self, attribute: str, record: Record) -> Any:
        """The array."""
        name = self.key(attribute)
        if self.optional and name not in record.arrays:
            return ABSENT
        values = record.arrays[name]
        return float(values[0]) if self.single and values.size == 1 else values

    def usual(self, value: Any) -> Any:
        """A few values, or the ends and the middle of many."""
        return few_or_range(value)


@dataclass(frozen=True)
class Value(Stored):
    """A plain value; `convert` makes it what it was, or refuses."""

    convert: Callable[[Any], Any]
    plain: Callable[[Any], Any] = field(default=lambda value: value, kw_only=True)
    """The value as JSON."""
    only: type | None = field(default=None, kw_only=True)
    """A record that holds another type is read as if it held nothing."""

    def write(self, attribute: str, value: Any, to: Record) -> None:
        """The value as JSON."""
        to.fitted[self.key(attribute)] = self.plain(value)

    def read(self, attribute: str, record: Record) -> Any:
        """The value."""
        name = self.key(attribute)
        if self.optional and name not in record.fitted:
            return ABSENT
        value = record.fitted[name]
        return ABSENT if self.only is not None and not isinstance(value, self.only) else self.convert(value)

    def usual(self, value: Any) -> Any:
        """The value itself."""
        return self.plain(value)


@dataclass(frozen=True)
class Map(Stored):
    """A feature map: plain values beside the others, and arrays under their own names."""

    def write(self, attribute: str, value: Any, to: Record) -> None:
        """The plain part and the arrays."""
        about, arrays = store_map(value)
        to.fitted |= about
        for name, (dims, values) in arrays.items():
            to.add(name, dims, values)

    def read(self, attribute: str, record: Record) -> Any:
        """The map; one that does not hold together is refused."""
        return restore_map(record.fitted, record.arrays, record.params)


@dataclass(frozen=True)
class Classes(Stored):
    """Labels: numbers as an array, strings as JSON."""

    def write(self, attribute: str, value: Any, to: Record) -> None:
        """The labels; other types are refused."""
        if value.dtype.kind in "fiub":
            to.add("classes", ("class",), value)
            return
        labels = value.tolist()
        for label in labels:
            if not isinstance(label, str):
                raise TypeError(
                    f"class {label!r} is a {type(label).__name__}, which cannot be saved; use strings or numbers as "
                    "labels"
                )
        to.fitted["classes"], to.fitted["classes_are_objects"] = labels, value.dtype == object

    def read(self, attribute: str, record: Record) -> Any:
        """The labels; strings are as wide as the longest one, whatever a file says."""
        if "classes" in record.arrays:
            return record.arrays["classes"]
        labels = record.fitted["classes"]
        if not all(isinstance(label, str) for label in labels):
            raise ValueError(f"classes {labels!r:.80} are not strings")
        return np.array(labels, object if record.fitted["classes_are_objects"] else np.str_)

    def usual(self, value: Any) -> Any:
        """All of them."""
        return value.tolist()


@dataclass(frozen=True)
class History(Stored):
    """The xarray Dataset of iterations: columns as arrays, coordinates along the inputs as JSON."""

    def write(self, attribute: str, value: Any, to: Record) -> None:
        """Columns under history_..."""
        for name, column in value.data_vars.items():
            to.add(f"history_{name}", column.dims, column.values)
        to.fitted["history"] = _coords_along("input", value)
        further = {str(dim) for column in value.data_vars.values() for dim in column.dims[1:]} - {"input"}
        to.fitted["history_coords"] = {dim: _coords_along(dim, value) for dim in sorted(further)}
        to.fitted["history_columns"] = {
            str(name): [str(column.attrs.get("long_name", name)), *map(str, column.dims[1:])]
            for name, column in value.data_vars.items()
        }

    def read(self, attribute: str, record: Record) -> Any:
        """The Dataset."""
        if "history" not in record.fitted:
            return ABSENT
        fitted, arrays = record.fitted, with_prefix("history_", record.arrays)
        about = {
            str(name): Column(str(meaning), str(dim[0]) if dim else None, arrays[name].dtype.kind in "iu")
            for name, (meaning, *dim) in fitted.get("history_columns", {}).items()
        }
        along = {"input": fitted["history"], **fitted.get("history_coords", {})}
        coords = {dim: {name: from_json(v) for name, v in some.items()} for dim, some in along.items()}
        return history_dataset(about or HISTORY, arrays, coords)


def _coords_along(dim: str, value: Any) -> dict[str, Any]:
    """Coordinates along a dimension as JSON; what is no number is text."""
    own = {str(name): c.values for name, c in value.coords.items() if c.dims == (dim,)}
    return {
        name: to_json(name, values if values.dtype.kind in "fiub" else np.array([str(one) for one in values.tolist()]))
        for name, values in own.items()
    }


@dataclass(frozen=True)
class Columns(Stored):
    """A dict of columns of the same length, as cv_results_."""

    prefix: str
    dim: str

    def write(self, attribute: str, value: Any, to: Record) -> None:
        """Columns under the prefix."""
        for name, column in value.items():
            to.add(self.prefix + name, (self.dim,), column)

    def read(self, attribute: str, record: Record) -> Any:
        """The columns, if there are any."""
        return with_prefix(self.prefix, record.arrays) or ABSENT


@dataclass(frozen=True)
class Matrices(Stored):
    """A dict of matrices, each with dimensions of its own."""

    prefix: str

    def write(self, attribute: str, value: Any, to: Record) -> None:
        """Matrices under the prefix."""
        for name, matrix in value.items():
            to.add(self.prefix + name, (f"{name}_row", f"{name}_input"), matrix)

    def read(self, attribute: str, record: Record) -> Any:
        """The matrices, if there are any."""
        return with_prefix(self.prefix, record.arrays) or ABSENT


def with_prefix(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays whose names begin so, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def check_finite(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape, another dtype than float64, or with NaN or infinity."""
    if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite float64 of shape {shape}, got {array.dtype} {array.shape}: {array}")


def as_list(value: Any) -> Any:
    """A number, or all values."""
    return np.asarray(value).tolist()


def count_labels(labels: Any) -> int:
    """How many labels 0, 1 ... there are."""
    return int(np.max(labels)) + 1


def few_or_range(value: Any) -> Any:
    """A number, up to eight numbers, or the ends and the middle of more."""
    values = np.asarray(value)
    if values.size <= 8 or values.dtype.kind not in "fiub":
        return values.tolist()
    return range_of(values)


def range_of(values: Any) -> dict[str, float]:
    """Ends and middle of several numbers."""
    values = np.asarray(values)
    return {"low": float(values.min()), "median": float(np.median(values)), "high": float(values.max())}
