"""What sums are sums of: a digest of everything that the pass depends on beside the rows."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import numpy as np

from dkl.features.stored import store_map
from dkl.sums.gram import GramProgram


def program_digest(program: GramProgram, task: str = GramProgram.task) -> str:
    """The sha256 of a gram program, or of another pass of the same: map, targets, folds, seed and precision."""
    seen = hashlib.sha256()
    if task != GramProgram.task:
        _add(seen, task)
    about, arrays = store_map(program.features.map)
    _add(seen, [about, {name: values for name, (_, values) in arrays.items()}, str(program.features.dtype)])
    targets = {field.name: getattr(program.targets, field.name) for field in dataclasses.fields(program.targets)}
    _add(seen, [targets, program.n_rows, program.folds, program.seed, program.held])
    return seen.hexdigest()


def _add(seen: Any, value: Any) -> None:
    """Plain values by their JSON, arrays by dtype, shape and bytes; lists and dictionaries by what they hold."""
    if isinstance(value, dict):
        for name in sorted(value):
            seen.update(f"{name}:".encode())
            _add(seen, value[name])
    elif isinstance(value, (list, tuple)):
        seen.update(f"[{len(value)}]".encode())
        for item in value:
            _add(seen, item)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        seen.update(f"{value.dtype.str}{value.shape}".encode())
        seen.update(np.ascontiguousarray(value).tobytes())
    else:
        plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        seen.update(json.dumps(plain, default=repr).encode())
