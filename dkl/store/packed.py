"""Any record of arrays and plain values as one JSON tree and one array for each dtype, and back, bit for bit.

    pack(record) -> tree, arrays            unpack(tree, arrays, Record) -> record

Records are NamedTuples and dataclasses, nested in any way in tuples, lists and dictionaries. The reader is told the
record that it may find; only that one and those named in its annotations are ever built, and nothing is executed.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np

Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]
KINDS = "fiub"
"""Kinds of dtypes that a record may hold."""


def pack(value: Any) -> tuple[Any, Arrays]:
    """The tree of a record, and its arrays: all those of one dtype stand one after the other in one array."""
    parts: dict[str, list[np.ndarray]] = {}
    tree = _tree(value, parts)
    return tree, {name: (("number",), np.concatenate(flat)) for name, flat in parts.items()}


def unpack(tree: Any, arrays: dict[str, np.ndarray], *records: type) -> Any:
    """What `pack` took, made of these records alone; a tree that names another one is refused."""
    known: dict[type, None] = {}
    for record in records:
        records_of(record, known)
    return _value(tree, arrays, {cls.__name__: cls for cls in known})


def records_of(record: type, found: dict[type, None] | None = None) -> list[type]:
    """A record, and all records that its annotations name, theirs too."""
    found = {} if found is None else found
    if record in found or not _is_record(record):
        return list(found)
    found[record] = None
    for hint in typing.get_type_hints(record).values():
        for cls in _classes(hint):
            records_of(cls, found)
    return list(found)


def _classes(hint: Any) -> Iterator[type]:
    """Every class in an annotation."""
    if isinstance(hint, type):
        yield hint
    for argument in typing.get_args(hint):
        yield from _classes(argument)


def _is_record(cls: Any) -> bool:
    return isinstance(cls, type) and (hasattr(cls, "_fields") or dataclasses.is_dataclass(cls))


def _fields(record: Any) -> tuple[str, ...]:
    """Names of what a record is made of."""
    if hasattr(record, "_fields"):
        return tuple(record._fields)
    return tuple(field.name for field in dataclasses.fields(record) if field.init)


def _tree(value: Any, parts: dict[str, list[np.ndarray]]) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in KINDS:
            raise TypeError(f"an array of dtype {value.dtype} cannot be kept; keep numbers")
        flat = parts.setdefault(value.dtype.name, [])
        start = sum(part.size for part in flat)
        flat.append(np.ascontiguousarray(value).reshape(-1))
        return {"array": value.dtype.name, "start": start, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if _is_record(type(value)):
        return {
            "record": type(value).__name__,
            "fields": {name: _tree(getattr(value, name), parts) for name in _fields(value)},
        }
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [_tree(item, parts) for item in value]}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"dict": {name: _tree(item, parts) for name, item in value.items()}}
    raise TypeError(f"{value!r} cannot be kept; a record holds arrays, numbers, texts and other records")


def _value(tree: Any, arrays: dict[str, np.ndarray], known: dict[str, type]) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        start, shape = int(tree["start"]), tuple(map(int, tree["shape"]))
        flat = arrays[tree["array"]][start : start + math.prod(shape)]
        return flat.reshape(shape).copy()
    if "float" in tree:
        return float(tree["float"])
    if "record" in tree:
        if tree["record"] not in known:
            raise ValueError(f"it holds a record {tree['record']!r}; expected one of {', '.join(known)}")
        cls = known[tree["record"]]
        unknown = set(tree["fields"]) - set(_fields(cls))
        if unknown:
            raise ValueError(
                f"a record {tree['record']} has no {sorted(unknown)[0]!r}; it has {', '.join(_fields(cls))}"
            )
        return cls(**{name: _value(item, arrays, known) for name, item in tree["fields"].items()})
    if "dict" in tree:
        return {name: _value(item, arrays, known) for name, item in tree["dict"].items()}
    kind = "tuple" if "tuple" in tree else "list"
    return (tuple if kind == "tuple" else list)(_value(item, arrays, known) for item in tree[kind])
