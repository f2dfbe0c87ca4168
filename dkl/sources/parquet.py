"""Parquet: typed columns, read by pyarrow a few thousand rows at a time."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from dkl.sources.batch import Batch, Reading, Segment, SourceError, coded
from dkl.sources.columns import Columns
from dkl.sources.files import bare_name, one_line, open_stream, stored_size
from dkl.sources.raw import SEGMENT
from dkl.sources.stretch import SEGMENTS, Stretch

UNNAMED = re.compile(r"__index_level_\d+__|__null_dask_index__")
"""Names that pandas and Dask give to an unnamed index."""
MOST_ROWS = 2**17


class Parquet:
    """One Parquet file. Numbers are float32 if every column fits it exactly, else float64; null is a missing value."""

    def __init__(self, path: str, how: Reading) -> None:
        self.path, self.how, self.name, self.size = path, how, bare_name(path), stored_size(path)
        file = self._open()
        schema, self.rows = file.schema_arrow, file.metadata.num_rows
        self.groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        file.close()
        index = _index_columns(schema)
        fields = [field for field in schema if field.name not in index or field.name in _asked(how)]
        self.index = [name for name in index if name not in _asked(how) and not UNNAMED.fullmatch(name)]
        names = [field.name for field in fields]
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise SourceError(f"{path!r} has two columns named {name!r}; rename one")
            seen.add(name)
        if not names or not self.rows:
            raise SourceError(f"{path!r} has {self.rows} rows of {len(names)} columns; give at least one of each")
        self.kinds = [_kind(field.type) for field in fields]
        self.is_text = [kind == "text" for kind in self.kinds]
        self.chosen = Columns(path, names, self.is_text, how, named=True, target=how.target or "-1")
        for i in self.chosen.kept:
            if self.kinds[i] == "other":
                raise SourceError(
                    f"column {names[i]!r} of {path!r} holds {fields[i].type}, neither numbers nor text; use --drop "
                    f"{names[i]!r}, or save it as numbers"
                )
        if self.index and how.inputs is None:
            warnings.warn(
                f"{path!r}: {', '.join(map(repr, self.index))} is the index of the saved frame and is not used as an "
                "input; "
                "save frame.reset_index() to use it",
                UserWarning,
                stacklevel=2,
            )
        self.names, self.columns, self.target = names, self.chosen.inputs, self.chosen.target
        self.has_target = self.target is not None
        self.target_name = None if self.target is None else names[self.target]
        small = all(self.kinds[i] == "small" for i in self.chosen.numbers)
        self.dtype = np.dtype(np.float32 if small else np.float64)
        self.step = max(1, min(MOST_ROWS, SEGMENT // (8 * len(self.chosen.kept))))

    def _open(self) -> Any:
        try:
            import pyarrow.parquet
        except ImportError:
            raise SourceError(f"{self.path!r} is Parquet, which needs pyarrow; pip install 'dkl[parquet]'") from None
        stream = open_stream(self.path)
        try:
            return pyarrow.parquet.ParquetFile(stream, buffer_size=2**20, pre_buffer=False)
        except (ValueError, OSError) as error:
            stream.close()
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> SourceError:
        return SourceError(f"{self.path!r} is not a Parquet file, or is damaged: {one_line(error)}")

    def stretches(self) -> list[Stretch]:
        """Row groups."""
        found, rows = [Stretch()], 0
        for group, count in enumerate(self.groups):
            if rows >= SEGMENTS * self.step:
                found[-1].last, rows = group, 0
                found.append(Stretch(group))
            rows += count
        return found

    def segments(self, stretch: Stretch | None = None) -> Iterator[Segment]:
        """Record batches, about 8 MiB of numbers at a time; none has rows of two stretches."""
        number = 0
        for part in self.stretches() if stretch is None else [stretch]:
            for data in self._batches(part):
                yield Segment(number, data, int((self.size or 0) / self.rows * data[0].num_rows))
                number += 1

    def _batches(self, stretch: Stretch) -> Iterator[tuple[Any, int]]:
        """Record batches of a stretch, each with the number of its first row."""
        file, last = self._open(), len(self.groups) if stretch.last is None else stretch.last
        names, first = [self.names[i] for i in self.chosen.kept], sum(self.groups[: stretch.first])
        groups, stop = list(range(stretch.first, last)), sum(self.groups[:last])
        batches = file.iter_batches(batch_size=self.step, columns=names, row_groups=groups, use_threads=True)
        try:
            while first < stop:
                try:
                    batch = next(batches, None)
                except (ValueError, OSError) as error:
                    raise self._damaged(error) from None
                if batch is None:
                    break
                yield batch, first
                first += batch.num_rows
        finally:
            file.close(force=True)
        if first != stop:
            raise SourceError(f"{self.path!r} is damaged: it holds {first} of its {stop} rows; copy it again")

    def parse(self, segment: Segment) -> Batch:
        """Numbers and texts of a record batch."""
        table, first = segment.data
        X = np.empty((table.num_rows, len(self.chosen.numbers)), self.dtype)
        for j, i in enumerate(self.chosen.numbers):
            X[:, j] = self._numbers(table, i, first)
        text = {self.names[i]: coded(self._texts(table, i)) for i in self.chosen.texts}
        y: Any = None
        if self.target is not None:
            is_text = self.is_text[self.target]
            y = coded(self._texts(table, self.target)) if is_text else self._numbers(table, self.target, first)
        batch = Batch(X, text, y)
        self.chosen.check(
            batch, lambda row: f"row {first + row}", lambda row, i: str(table.column(self.names[i])[row].as_py())
        )
        return batch

    def _numbers(self, table: Any, i: int, first: int) -> np.ndarray:
        """A column as float64, NaN where it is null."""
        import pyarrow as pa

        column = _plain(table.column(self.names[i]))
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        try:
            return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid as error:
            raise SourceError(
                f"{self.path!r} column {self.names[i]!r} holds text where numbers should be, after row {first}: "
                f"{one_line(error)}"
            ) from None

    def _texts(self, table: Any, i: int) -> np.ndarray:
        """A column as text, None where it is null or a missing-value mark."""
        import pyarrow as pa

        column = _plain(table.column(self.names[i]))
        values = column.cast(pa.string()).to_numpy(zero_copy_only=False)
        if self.how.na:
            values = np.where(np.isin(values.astype(str), list(self.how.na)), None, values)
        return values


def _index_columns(schema: Any) -> list[str]:
    """Index columns of a frame, as the file's metadata mark them; they are not inputs."""
    marked: list[str] = []
    try:
        about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        marked = [name for name in about["index_columns"] if isinstance(name, str)] if "index_columns" in about else []
    except (ValueError, TypeError):  # metadata of another program, or damaged: ignored
        marked = []
    return [name for name in schema.names if name in marked or UNNAMED.fullmatch(name)]


def _asked(how: Reading) -> set[str]:
    """Columns that the user or the recipe names; an index column among them is an ordinary column."""
    asked = {*how.categorical, *how.drop, *([] if how.target is None else [how.target])}
    return asked | {column.name for column in how.inputs or ()}


def _plain(column: Any) -> Any:
    """The column, dictionary-decoded."""
    import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _kind(type_: Any) -> str:
    """'small' (exact in float32), 'number', 'text' or 'other'."""
    from pyarrow import types

    if types.is_dictionary(type_):
        type_ = type_.value_type
    if types.is_boolean(type_) or types.is_null(type_):
        return "small"
    if types.is_integer(type_) or types.is_floating(type_):
        return "small" if type_.bit_width <= (32 if types.is_floating(type_) else 16) else "number"
    if types.is_decimal(type_):
        return "number"
    is_text = types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    return "text" if is_text else "other"
