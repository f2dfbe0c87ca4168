"""svmlight / libsvm lines, `target index:value ...`, as sparse batches; parsed by scikit-learn segment by segment.

Columns keep their index as written. Whether the first is 0 or 1 is known at the end of the file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import numpy as np

from dkl.sources.batch import Batch, Reading, Segment, SourceError, refuse_missing
from dkl.sources.columns import refuse_unused
from dkl.sources.files import bare_name, one_line, stored_size
from dkl.sources.stretch import Stretch
from dkl.sources.text import Lines, check_text, read_text_head, segments, text_stretches

LINE = re.compile(rb"^[^\s#:,]+([ \t]+\S+:\S+)+\s*(#.*)?$")
TARGET = re.compile(rb"^[-+.0-9eE]+\s*(#.*)?$")
MOST_COLUMNS = 2**31 - 2


def looks_like_svmlight(head: bytes) -> bool:
    """Whether the first lines that are not comments are `target index:value ...`; a row may be empty."""
    lines = [line for line in head.split(b"\n")[:50] if line.strip() and not line.startswith(b"#")]
    full = next((i for i, line in enumerate(lines) if LINE.match(line)), None)
    return full is not None and all(TARGET.match(line) for line in lines[:full])


class Svmlight:
    """One file of sparse rows; the target is the first field of each line."""

    columns = None

    def __init__(self, path: str, how: Reading) -> None:
        refuse_unused(path, how, "whose columns have no names", "categorical", "drop")
        if how.target not in (None, "none") and how.inputs is None:
            raise SourceError(
                f"target={how.target!r}: the target of {path!r} is the first field of each line; leave --target out"
            )
        self.path, self.how, self.name, self.size = path, how, bare_name(path), stored_size(path)
        self.has_target = how.target != "none"
        check_text(path, read_text_head(path, how.encoding))

    def stretches(self) -> list[Stretch]:
        """Blocks of bytes."""
        return text_stretches(self.path, self.how.encoding)

    def segments(self, stretch: Stretch | None = None) -> Iterator[Segment]:
        """Whole lines, about 8 MiB at a time."""
        return segments(self.path, self.how.encoding, 0, stretch=stretch)

    def parse(self, segment: Segment) -> Batch:
        """A csr batch; a line that cannot be parsed is refused with its number."""
        from sklearn.datasets import load_svmlight_file

        lines: Lines = segment.data
        if not lines.data.strip():
            raise SourceError(f"{self.path!r} has only blank lines after line {lines.first}; remove them")
        try:
            X, y = load_svmlight_file(io.BytesIO(lines.data), dtype=np.float64, zero_based=True)
        except (ValueError, OverflowError, IndexError) as error:
            raise self._explain(lines, one_line(error)) from None
        if (X.has_sorted_indices and X.nnz and X.indices.max() > MOST_COLUMNS) or not np.isfinite(X.data).all():
            self._check_values(lines, X)
        if not np.isfinite(y).all():
            row = int(np.argmax(~np.isfinite(y)))
            raise SourceError(
                f"{self.path!r} line {self._line(lines, row)} has the target {y[row]}; correct or remove it"
            )
        return Batch(X, {}, None if self.how.target == "none" else y)

    def _check_values(self, lines: Lines, X: object) -> None:
        coo = X.tocoo()  # type: ignore[attr-defined]
        if coo.nnz and coo.col.max() > MOST_COLUMNS:
            raise self._explain(lines, f"index {coo.col.max()} is too large")
        infinite, missing = np.isinf(coo.data), np.isnan(coo.data)
        if infinite.any():
            i = int(np.argmax(infinite))
            raise SourceError(
                f"{self.path!r} line {self._line(lines, int(coo.row[i]))}, index {coo.col[i]} is {coo.data[i]}, which "
                "is not a finite number; correct or remove it"
            )
        if missing.any() and self.how.missing == "refuse":
            i = int(np.argmax(missing))
            raise refuse_missing(self.path, f"line {self._line(lines, int(coo.row[i]))}", str(coo.col[i]))

    def _rows(self, lines: Lines) -> list[tuple[int, bytes]]:
        numbered = enumerate(lines.data.split(b"\n"), lines.first)
        return [(number, line) for number, line in numbered if line.split(b"#")[0].strip()]

    def _line(self, lines: Lines, row: int) -> int:
        return self._rows(lines)[row][0]

    def _explain(self, lines: Lines, message: str) -> SourceError:
        """The error of the first line that is not `target index:value ...` with increasing indices."""
        for number, line in self._rows(lines):
            words = line.split(b"#")[0].split()
            last = -1
            for i, word in enumerate(words):
                index, colon, value = (b"0", b":", word) if not i else word.partition(b":")
                if i and index == b"qid":
                    continue
                try:
                    ok = colon == b":" and np.isreal(float(value)) and (not i or last < int(index) <= MOST_COLUMNS)
                except ValueError:
                    ok = False
                if not ok:
                    shown = word.decode(errors="replace")[:60]
                    if index.isdigit() and (len(index) > 20 or int(index) > MOST_COLUMNS):
                        return SourceError(
                            f"{self.path!r} line {number} has {shown!r}, whose index is larger than {MOST_COLUMNS}; "
                            "renumber the columns"
                        )
                    wanted = "index:value pairs with increasing indices" if i else "a number, the target, first"
                    return SourceError(f"{self.path!r} line {number} has {shown!r}; svmlight lines have {wanted}")
                last = int(index) if i else -1
        return SourceError(f"{self.path!r} cannot be parsed after line {lines.first}: {message}")
