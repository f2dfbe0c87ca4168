"""Lines of plain numbers, read by pyarrow, which needs half of pandas' time; everything else is left to pandas.

Both round to the nearest double and agree on what is missing, so it is no matter which of them reads a segment. Left to
pandas: text columns, quotes, bytes beyond ASCII, bare CR, the user's own marks of missing values, and whatever pyarrow
refuses, so that each refusal is worded in one place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""What pandas takes for a missing value."""


def is_plain(data: bytes) -> bool:
    """Whether lines hold nothing that the two readers could take differently."""
    return (
        data.isascii()
        and not any(mark in data for mark in (b'"', b"\0"))
        and (b"\r" not in data or data.count(b"\r") == data.count(b"\r\n"))
    )


def read_plain(data: bytes, delimiter: str, columns: int, kept: list[int]) -> list[np.ndarray] | None:
    """The kept columns as float64, NaN where a value is missing; None if pandas is to read the lines."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    if not is_plain(data):
        return None
    names = [str(i) for i in range(columns)]
    how: dict[str, Any] = {
        "read_options": csv.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
        "parse_options": csv.ParseOptions(delimiter=delimiter, quote_char=False),
        "convert_options": csv.ConvertOptions(
            column_types={names[i]: pa.float64() for i in kept},
            include_columns=[names[i] for i in kept],
            null_values=list(MISSING),
        ),
    }
    try:
        table = csv.read_csv(pa.BufferReader(data), **how)
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    return [table.column(names[i]).to_numpy() for i in kept]
