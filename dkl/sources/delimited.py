"""CSV and other delimited text, with or without a header, parsed by pandas segment by segment."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from dkl.sources.batch import Batch, Reading, Segment, SourceError, coded
from dkl.sources.columns import Columns
from dkl.sources.files import bare_name, one_line, stored_size
from dkl.sources.stretch import Stretch
from dkl.sources.text import (
    LONGEST_LINE,
    Lines,
    check_text,
    count_quotes,
    open_text,
    reading,
    segments,
    text_stretches,
)

DELIMITERS, QUOTE = ",;\t|", b'"'
SAMPLE, LEAST_LINES = 2**20, 4
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A", "<NA>")


class Delimited:
    """A delimited table. A column is text if most of its first values are."""

    def __init__(self, path: str, how: Reading) -> None:
        self.path, self.how, self.name, self.size = path, how, bare_name(path), stored_size(path)
        self.na = (*MISSING, *how.na)
        sample = self._sample()
        check_text(path, sample)
        self.delimiter = how.delimiter or _delimiter(sample)
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise SourceError(f"delimiter={self.delimiter!r} must be one ASCII character, such as ',' or ';'")
        records = self._records(Lines(sample, 1))
        self.header = how.header if how.header is not None else _looks_like_header([r for _, r in records[:100]])
        self.names = self._column_names(records[0][1])
        rows = records[self.header :]
        if not rows:
            raise SourceError(f"{path!r} has a header and no rows; use --no-header if its first line is data")
        self.is_text = [self._column_is_text([r[i] for _, r in rows if i < len(r)]) for i in range(len(self.names))]
        self.skip_lines = records[0][0] if self.header else 0
        self.chosen = Columns(
            path, self.names, self.is_text, how, named=self.header, target=how.target or "-1",
            empty=f"is {self.delimiter!r} its delimiter?",
        )  # fmt: skip
        self.target, self.wanted, self.columns = self.chosen.target, self.chosen.wanted, self.chosen.inputs
        self.has_target = self.target is not None
        self.target_name = None if self.target is None or not self.header else self.names[self.target]

    def _sample(self) -> bytes:
        """The first whole lines; more bytes if lines are long, so that some rows follow the header."""
        stream = open_text(self.path, self.how.encoding)
        try:
            with reading(self.path):
                data, ended = b"", False
                while not ended and (len(data) < SAMPLE or _too_few_lines(data)):
                    more = stream.read(SAMPLE)
                    data, ended = data + more, not more
        finally:
            stream.close()
        data = data.removeprefix(b"\xef\xbb\xbf")
        return data if ended else data[: data.rfind(b"\n") + 1] or data

    def _records(self, lines: Lines) -> list[tuple[int, list[str]]]:
        """(number of its last line, fields) of every record that is not blank; slow, for samples and error messages."""
        text = io.StringIO(lines.data.decode("utf-8", errors="replace"), newline="")
        reader = csv.reader(text, delimiter=self.delimiter, skipinitialspace=True)
        try:
            return [(lines.first - 1 + reader.line_num, record) for record in reader if record]
        except csv.Error as error:
            raise SourceError(f"{self.path!r} line {lines.first + reader.line_num}: {one_line(error)}") from None

    def _column_names(self, first: list[str]) -> list[str]:
        if not self.header:
            return [str(i) for i in range(len(first))]
        names = [name.strip() for name in first]
        if _counts(names):  # 0, 1, 2 ... and any name for the target
            names[-1] = "target"
        seen: dict[str, int] = {}
        for i, name in enumerate(names):
            if seen.setdefault(name, i) < i:
                raise SourceError(
                    f"{self.path!r} has two columns named {name!r} ({seen[name]} and {i}); rename one, "
                    "or use --no-header if the first line is data"
                )
        return names

    def _column_is_text(self, values: list[str]) -> bool:
        if _all_numbers(values):
            return False
        known = [v for v in values if v.strip() not in self.na]
        return sum(map(_is_number, known)) * 2 < len(known)

    def stretches(self) -> list[Stretch]:
        """Blocks of bytes."""
        return text_stretches(self.path, self.how.encoding)

    def segments(self, stretch: Stretch | None = None) -> Iterator[Segment]:
        """Whole lines, about 8 MiB at a time."""
        return segments(self.path, self.how.encoding, self.skip_lines, QUOTE, stretch=stretch)

    def quotes(self, stretch: Stretch) -> int:
        """Quotes in a stretch."""
        return count_quotes(self.path, self.how.encoding, QUOTE, stretch)

    def parse(self, segment: Segment) -> Batch:
        """Numbers and texts of the lines; a malformed line is refused with its number."""
        lines: Lines = segment.data
        self._check_fields(lines)
        frame = self._frame(lines)
        if self._keeps_all and frame[len(self.names) - 1].isna().any():
            self._check_records(lines)  # a short line lacks its last field
        X = self._numbers(frame)
        text = {self.names[i]: coded(frame[i].to_numpy(object)) for i in self.chosen.texts}
        y: Any = None
        if self.target is not None:
            column = frame[self.target]
            y = coded(column.to_numpy(object)) if self.is_text[self.target] else column.to_numpy(np.float64)
        batch = Batch(X, text, y)
        self.chosen.check(
            batch,
            lambda row: f"line {self._records(lines)[row][0]}",
            lambda row, column: _short(self._records(lines)[row][1][column]),
        )
        return batch

    def _numbers(self, frame: Any) -> np.ndarray:
        """The numeric inputs; a frame of numbers only is converted at once."""
        numbers = self.chosen.numbers
        if not any(self.is_text) and numbers == list(range(len(numbers))):
            return frame.to_numpy(np.float64)[:, : len(numbers)]
        return frame[numbers].to_numpy(np.float64) if numbers else np.empty((len(frame), 0))

    def _frame(self, lines: Lines) -> Any:
        """The columns that are kept; pandas is fastest if it infers numbers by itself."""
        import pandas as pd

        kept = self.chosen.kept
        kinds: dict[int, Any] = {i: str for i in kept if self.is_text[i]}
        spaces_matter = bool(kinds) or b'"' in lines.data  # not before numbers, and skipping them is slow
        for _ in range(2):
            try:
                frame = pd.read_csv(
                    io.BytesIO(lines.data), sep=self.delimiter, header=None, names=range(len(self.names)), dtype=kinds,
                    usecols=None if self._keeps_all else kept, na_values=list(self.how.na), keep_default_na=True,
                    skipinitialspace=spaces_matter, encoding="utf-8",
                )  # fmt: skip
            except UnicodeDecodeError:
                with reading(self.path):
                    lines.data.decode("utf-8")
                raise
            except (ValueError, OverflowError, pd.errors.DtypeWarning) as error:
                raise self._explain(lines, one_line(error)) from None
            doubtful = [i for i in kept if not self.is_text[i] and frame[i].dtype.kind not in "iuf"]
            if not doubtful:
                break
            kinds |= dict.fromkeys(doubtful, np.float64)  # refuses what is not a number
        return frame

    @property
    def _keeps_all(self) -> bool:
        return len(self.chosen.kept) == len(self.names)

    def _check_fields(self, lines: Lines) -> None:
        """Refuse long lines that pandas accepts: the first line, and all if columns are left out."""
        data, marks, mark = lines.data, len(self.names) - 1, self.delimiter.encode()
        first = data[: data.find(b"\n") + 1 or len(data)]
        doubtful = b'"' in data or first.count(mark) != marks
        if doubtful or (not self._keeps_all and not _all_have(data, mark, marks)):
            self._check_records(lines)

    def _check_records(self, lines: Lines) -> None:
        """Refuse a record whose number of fields is not the number of columns; slow."""
        for line, record in self._records(lines):
            self._check_record(line, record)

    def _check_record(self, line: int, record: list[str]) -> None:
        if len(record) != len(self.names):
            raise SourceError(
                f"{self.path!r} line {line} has {len(record)} fields, the first line has {len(self.names)}; correct or "
                "remove it"
            )

    def _explain(self, lines: Lines, message: str) -> SourceError:
        """The error that pandas hides: the first value that should be a number and is not."""
        self._check_records(lines)
        numbers = [i for i in self.chosen.kept if not self.is_text[i]]
        for line, record in self._records(lines):
            for i in numbers:
                if record[i] not in self.na and not _is_number(record[i]):
                    return SourceError(
                        f"{self.path!r} line {line}, column {self.names[i]!r} holds {_short(record[i])}, not a number; "
                        f"correct it, or use --na {_short(record[i])} if it marks a missing value"
                    )
        return SourceError(f"{self.path!r} cannot be parsed after line {lines.first}: {message}")


def _too_few_lines(data: bytes) -> bool:
    return len(data) < LONGEST_LINE and data.count(b"\n") < LEAST_LINES


def _all_have(data: bytes, mark: bytes, count: int) -> bool:
    """Whether every line holds `count` marks."""
    every = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(every == 10)
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    before = np.searchsorted(np.flatnonzero(every == mark[0]), ends)
    return bool((np.diff(before, prepend=0) == count).all())


def _short(text: str) -> str:
    return repr(text) if len(text) <= 40 else repr(text[:37] + "...")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()


def _all_numbers(texts: list[str]) -> bool:
    """Whether `_is_number` holds for all, at once."""
    together = "".join(texts)
    try:
        return "_" not in together and together.isascii() and len(list(map(float, texts))) == len(texts)
    except ValueError:
        return False


def _counts(names: list[str]) -> bool:
    """Whether all names but the last are 0, 1, 2 ... or 1, 2, 3 ..."""
    start = names[:-1]
    return len(start) > 2 and start in ([str(i) for i in range(len(start))], [str(i + 1) for i in range(len(start))])


def _looks_like_header(records: list[list[str]]) -> bool:
    """Whether the first record is a header: it counts 0, 1, 2 ..., is all text, or has text above numbers."""
    first, rest = records[0], records[1:]
    number = [_is_number(cell) for cell in first]
    if not any(number) or _counts([cell.strip() for cell in first]):
        return True
    return any(
        not number[i] and first[i].strip() and rest and all(_is_number(r[i]) for r in rest if i < len(r))
        for i in range(len(first))
    )


def _delimiter(sample: bytes) -> str:
    """The candidate that splits the first lines into the same, and the largest, number of fields."""
    lines = [line for line in sample.split(b"\n")[:50] if line.strip()][:20]
    counts = {d: [line.count(d.encode()) for line in lines] for d in DELIMITERS}
    even = {d: c[0] for d, c in counts.items() if c[0] and min(c) == max(c)}
    some = even or {d: c[0] for d, c in counts.items() if c[0]}
    return max(some, key=lambda d: some[d]) if some else ","
