"""Which columns of a table are inputs, which one is the target, and which hold text: decided once, before any row.

The user must ask for text columns and allow missing values. Infinities are always refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dkl.checks import first_where
from dkl.sources.batch import Batch, Column, Reading, SourceError, column_number, refuse_missing

MOST_COLUMNS = 2**22


class Columns:
    """The columns of one table. `named`: columns have real names, not positions only."""

    def __init__(
        self, path: str, names: list[str], is_text: list[bool], how: Reading, *, named: bool, target: str,
        empty: str = "drop fewer",
    ) -> None:  # fmt: skip
        self.path, self.names, self.is_text, self.how, self.named = path, names, is_text, how, named
        self.target = self._find_target(target)
        self.wanted = self._match(how.inputs) if how.inputs is not None else self._choose(empty)
        self.inputs = [Column(names[i], is_text[i]) for i in self.wanted]
        self.kept = [*self.wanted, *([] if self.target is None else [self.target])]

    @property
    def numbers(self) -> list[int]:
        return [i for i in self.wanted if not self.is_text[i]]

    @property
    def texts(self) -> list[int]:
        return [i for i in self.wanted if self.is_text[i]]

    def _dropped(self) -> set[int]:
        return {column_number(name, self.names, "--drop", self.path) for name in self.how.drop}

    def _find_target(self, target: str) -> int | None:
        inputs = self.how.inputs
        if target == "none":
            return None
        if inputs is None:
            return column_number(target, self.names, "the target", self.path)
        if self.named:
            return self.names.index(target) if target in self.names else None
        if len(self.names) - len(self._dropped()) == len(inputs):
            return None
        return column_number(target, self.names, "target", self.path)

    def _choose(self, empty: str) -> list[int]:
        """Positions of the inputs; a text column that is not in `categorical` is refused."""
        dropped = self._dropped()
        every = "auto" in self.how.categorical
        asked = {column_number(c, self.names, "--categorical", self.path) for c in self.how.categorical if c != "auto"}
        for i in asked:
            self.is_text[i] = True
        wanted = [i for i in range(len(self.names)) if i != self.target and i not in dropped]
        for i in wanted:
            if self.is_text[i] and i not in asked and not every:
                raise SourceError(
                    f"column {self.names[i]!r} of {self.path!r} holds text; use --categorical {self.names[i]!r} (or "
                    f"auto for all such columns), or --drop {self.names[i]!r}"
                )
        if not wanted:
            raise SourceError(f"{self.path!r} has no column left for the inputs; {empty}")
        return wanted

    def _match(self, inputs: tuple[Column, ...]) -> list[int]:
        """The columns of a recipe, in its order; by position if columns have no names."""
        names = [column.name for column in inputs]
        if not self.named:
            dropped = self._dropped()
            rest = [i for i in range(len(self.names)) if i != self.target and i not in dropped]
            if len(rest) == len(names) + 1 and (self.how.left_out or "-1").lstrip("-").isdigit():
                rest.remove(range(len(self.names))[int(self.how.left_out or "-1")])
            wanted = rest if len(rest) == len(names) else []
        else:
            positions = {name: i for i, name in enumerate(self.names)}
            missing = [name for name in names if name not in positions]
            if missing:
                raise SourceError(
                    f"{self.path!r} has no column {missing[0]!r}, which the data set was made from; add it"
                )
            wanted = [positions[name] for name in names]
        if not wanted:
            raise SourceError(
                f"{self.path!r} has {len(self.names)} columns; the data set was made from {len(names)}, so give as many"
            )
        for i, column in zip(wanted, inputs, strict=True):
            self.is_text[i] = column.is_text
        return wanted

    def check(self, batch: Batch, where: Callable[[int], str], shown: Callable[[int, int], str]) -> None:
        """Refuse infinities, and missing values if missing='refuse'; `where` names a row, `shown` the value there."""
        check_finite(self.path, self._suspects(batch, np.isinf), self.names, where, shown)
        gaps = self._suspects(batch, np.isnan)
        gaps += [(int(np.argmax(batch.text[self.names[i]].codes < 0)), i) for i in self.texts if self._gap(batch, i)]
        y = batch.y
        if y is not None and self.target is not None and not isinstance(y, np.ndarray) and (y.codes < 0).any():
            gaps.append((int(np.argmax(y.codes < 0)), self.target))
        for row, column in gaps:
            check_missing(self.path, where(row), self.names[column], self.how, column == self.target)

    def _gap(self, batch: Batch, column: int) -> bool:
        return bool((batch.text[self.names[column]].codes < 0).any())

    def _suspects(self, batch: Batch, test: Callable[[np.ndarray], np.ndarray]) -> list[tuple[int, int]]:
        """(row, column) of the first number of X, then of y, that passes the test."""
        found = []
        if not all_finite(batch.X) and (first := first_where(batch.X, test)):
            found.append((first[0], self.numbers[first[1]]))
        if self.target is not None and isinstance(batch.y, np.ndarray) and test(batch.y).any():
            found.append((int(np.argmax(test(batch.y))), self.target))
        return found


def all_finite(X: Any) -> bool:
    """Whether nothing in X, dense or csr, is missing or infinite; a sum first, for speed."""
    values = X.data if hasattr(X, "tocsr") else X
    if values.dtype.kind != "f" or not values.size:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum())) or bool(np.isfinite(values).all())


def check_finite(
    path: str, found: list[tuple[int, int]], names: list[str], where: Callable[[int], str],
    shown: Callable[[int, int], str],
) -> None:  # fmt: skip
    """Refuse the first of the infinities found, as (row, column)."""
    for row, column in found:
        raise SourceError(
            f"{path!r} {where(row)}, column {names[column]!r} holds {shown(row, column)}, which is not a finite "
            "number; correct or remove it"
        )


def check_missing(path: str, where: str, column: str, how: Reading, is_target: bool) -> None:
    """Refuse a missing value unless `how` drops or fills it; a missing target can only be dropped."""
    if how.missing == "refuse" or (is_target and how.missing != "drop"):
        raise refuse_missing(path, where, column)


def refuse_unused(path: str, how: Reading, kind: str, *options: str) -> None:
    """Refuse options that do not apply to this kind of source."""
    for option in options:
        if value := getattr(how, option):
            shown = ", ".join(value) if isinstance(value, tuple) else str(value)
            raise SourceError(f"--{option} {shown} does not apply to {path!r}, {kind}; leave it out")


def check_many(path: str, count: int) -> None:
    """Refuse more columns than a model can have as inputs, before each of them gets a name."""
    if count > MOST_COLUMNS:
        raise SourceError(
            f"{path!r} has {count:,} columns; dense rows may have at most {MOST_COLUMNS:,}, so reduce them or save "
            "sparse "
            "rows"
        )


def numbered(count: int, what: str = "") -> list[str]:
    """Names of columns that have none: their positions, after a prefix."""
    return [f"{what} {i}" if what else str(i) for i in range(count)]


def check_width(path: str, width: int, how: Reading) -> None:
    """Refuse rows whose width is not that of the data set's sources."""
    if how.inputs is not None and len(how.inputs) != width:
        raise SourceError(
            f"{path!r} has {width} columns; the data set was made from {len(how.inputs)}, so give as many"
        )
