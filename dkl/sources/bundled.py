"""Data sets of scikit-learn, bundled or fetched: `sklearn:iris`, `sklearn:california_housing` ..."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dkl.sources.batch import Batch, Coded, Reading, Segment, SourceError
from dkl.sources.columns import Columns, check_width, numbered, refuse_unused
from dkl.sources.dense import check_labels, dense_batch
from dkl.sources.files import one_line
from dkl.sources.raw import kept_dtype, rows_per_segment
from dkl.sources.sparse import row_cuts, sparse_batch

PREFIX = "sklearn:"
NOT_ROWS = {"openml", "20newsgroups"}


def available() -> dict[str, Callable]:
    """Loaders by name: every load_ and fetch_ that gives one table."""
    import sklearn.datasets

    found = {}
    for verb in ("fetch_", "load_"):
        for name in filter(lambda name: name.startswith(verb), dir(sklearn.datasets)):
            loader = getattr(sklearn.datasets, name)
            if name.removeprefix(verb) not in NOT_ROWS and "return_X_y" in inspect.signature(loader).parameters:
                found[name.removeprefix(verb)] = loader
    return found


class Bundled:
    """One of scikit-learn's data sets, in memory; classes keep their names if they have any."""

    size: int | None = None

    def __init__(self, path: str, how: Reading) -> None:
        refuse_unused(path, how, "which holds numbers only", "categorical")
        self.path, self.how, self.name = path, how, path.removeprefix(PREFIX)
        bunch = self._load()
        self.X, self.y, self.classes = bunch.data, np.asarray(bunch.target), None
        self._check_kinds()
        self.size = int(self.X.data.nbytes)
        self.is_sparse = hasattr(self.X, "tocsr")
        width = self.X.shape[1]
        names = bunch.get("feature_names")
        names = numbered(width) if names is None or len(names) != width else list(map(str, names))
        column = how.target if how.target is not None else "none"
        self.is_own = how.target is None
        self.dtype = kept_dtype(self.X.dtype, path)
        if self.is_sparse:
            refuse_unused(path, how, "a sparse matrix", "drop")
            check_width(path, width, how)
            column, self.X = "none", self.X.tocsr()
            self.X.sum_duplicates()
        self.chosen = Columns(path, names, [False] * width, how, named=not self.is_sparse, target=column)
        self.columns = self.chosen.inputs
        self.has_target = self.is_own or self.chosen.target is not None
        self.classes = _class_names(self.y, bunch.get("target_names"))

    def _load(self) -> Any:
        loaders = available()
        if self.name not in loaders:
            near = difflib.get_close_matches(self.name, loaders, n=1)
            hint = f"did you mean {PREFIX + near[0]!r}?" if near else f"there are {', '.join(sorted(loaders))}"
            raise SourceError(f"scikit-learn has no data set {self.name!r} of rows and one target; {hint}")
        try:
            return loaders[self.name]()
        except Exception as error:  # downloads fail in many ways
            raise SourceError(
                f"{self.path!r} cannot be loaded: {one_line(error)}; check the network and try again"
            ) from None

    def _check_kinds(self) -> None:
        if self.y.ndim != 1:
            shape = self.y.shape or self.y.item().shape  # numpy wraps a sparse target as a single object
            raise SourceError(f"{self.path!r} has several targets (shape {shape}); choose a data set with one")
        kept_dtype(self.X.dtype, self.path)

    def segments(self) -> Iterator[Segment]:
        """Row ranges of about 8 MiB."""
        rows, width = self.X.shape
        if self.is_sparse:
            ranges = row_cuts(self.X.indptr, self.X.data.itemsize + self.X.indices.itemsize)
        else:
            step = rows_per_segment(width * self.X.dtype.itemsize)
            ranges = [(first, min(first + step, rows)) for first in range(0, rows, step)]
        for number, (first, last) in enumerate(ranges):
            yield Segment(number, (first, last), int((self.size or 0) * (last - first) / rows))

    def parse(self, segment: Segment) -> Batch:
        """The rows of a range."""
        first, last = segment.data
        part = self.X[first:last]
        if self.is_sparse:
            parts = (part.data, part.indices, part.indptr.astype(np.int64))
            batch = sparse_batch(self.path, parts, part.shape[1], None, first, self.how)
        else:
            batch = dense_batch(self.chosen, part, None, self.dtype, first)
        if not self.is_own:
            return batch
        return Batch(batch.X, {}, self._labels(first, last))

    def _labels(self, first: int, last: int) -> np.ndarray | Coded:
        values = self.y[first:last]
        if self.classes is not None:
            return Coded(values.astype(np.int32), self.classes)
        y = values.astype(np.float64)
        check_labels(self.path, y, first, self.how)
        return y


def _class_names(y: np.ndarray, names: Any) -> list[str] | None:
    """The names of the classes, if the target counts them."""
    if names is None or y.dtype.kind not in "iu" or not all(isinstance(name, str) for name in names):
        return None
    return list(map(str, names)) if len(names) > 1 and y.min() >= 0 and y.max() < len(names) else None
