"""What a kernel model answers: scores of blocks, predictions in order, figures against y, its plan and its file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dkl.cost import Cost, Sizes
from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan, gib, make_plan
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine
from dkl.engine.reduce import engine_for
from dkl.engine.stream import ROWS, stream_rows
from dkl.engine.tables import Table, open_table, with_known_rows
from dkl.estimators.estimator import Estimator
from dkl.estimators.fitted import INPUTS, MAP, WEIGHTS, restored_weights
from dkl.estimators.inputs import compute_dtype, read_inputs, read_targets, targets_beside
from dkl.estimators.probabilities import probabilistic, why_not
from dkl.estimators.scoring import changes_numbers
from dkl.estimators.stored import Stored
from dkl.estimators.written import request_of, write_regions
from dkl.learn.evaluate import evaluate_classes, evaluate_numbers
from dkl.learn.model import Scores, ScoresAndProbabilities, chosen
from dkl.learn.plan import sizes_of
from dkl.learn.thresholds import offset_of
from dkl.losses import Loss, Probabilistic
from dkl.prepare.folds import Split
from dkl.store.answer_regions import Answered, AnswerParts, AnswerRegions
from dkl.store.checkpoint import progress_of
from dkl.store.folder import remove


class Predictor(Estimator):
    """A model with a map `features_` and weights `coef_`, `intercept_`."""

    family: ClassVar[str]
    """What `dkl fit --model` calls it."""
    FITTED: ClassVar[dict[str, Stored]] = {**INPUTS, **MAP, **WEIGHTS}
    features_: Any  # a feature map
    coef_: np.ndarray
    intercept_: np.ndarray | float
    dtype_: str
    n_features_in_: int

    def _restored(self) -> None:
        restored_weights(self)

    def _target_rows(self, y: Table) -> Table:
        """y as one fits it."""
        return y

    def _count_outputs(self, y: Table) -> int:
        """Columns of scores, or classes, of a y that has not been looked at."""
        return y.n_columns

    def _check_inputs(self, X: Table) -> None:
        """Refuse parameters of the map that do not suit the inputs, before any row is read."""

    def _costs(self, sizes: Sizes, split: Split) -> Sequence[Cost]:
        """What each pass of learning costs, that which the plan is named after first."""
        raise TypeError(f"{type(self).__name__} does not say what its passes cost")

    def _other_costs(self, sizes: Sizes) -> Sequence[Cost]:
        """What passes before and after learning cost."""
        return []

    def _plan_rows(
        self, engine: Engine, rows: Rows, dtype: np.dtype, split: Split, outputs: int, measure: bool = False
    ) -> Plan:  # fmt: skip
        """What a fit to these rows will need."""
        sizes = sizes_of(rows, self.n_features_in_, dtype, outputs, isinstance(self, ClassifierMixin))
        others, kept = self._other_costs(sizes), rows.matrix_bytes
        plan = make_plan(engine, sizes, [*self._costs(sizes, split), *others], measure, kept)
        plan = replace(plan, solver=self._solver_in_words(sizes, split))
        if plan.fits:
            return plan
        for words, costs in self._other_ways(sizes, split):
            other = make_plan(engine, sizes, [*costs, *others], kept=kept)
            if other.fits:
                return replace(plan, instead=f"{words} (needs {gib(max(other.worker_bytes, other.solve_bytes))})")
        return plan

    def _other_ways(self, sizes: Sizes, split: Split) -> Sequence[tuple[str, Sequence[Cost]]]:
        """What to type for a fit that may need less memory, and its passes."""
        return []

    def _solver_in_words(self, sizes: Sizes, split: Split) -> str:
        """How the weights will be found, and why so; "" if there is but one way."""
        return ""

    @property
    def _is_flat(self) -> bool:
        """Whether an answer is one number for each row."""
        return np.ndim(self.coef_) == 1

    def _scores(self) -> Scores:
        """The block function of the fitted scores."""
        blocks = self.features_.at(np.dtype(self.dtype_))
        coef = np.atleast_2d(self.coef_).T * self.features_.scale
        offset = offset_of(getattr(self, "thresholds_", None))
        return Scores(blocks, np.ascontiguousarray(coef, blocks.dtype), np.atleast_1d(self.intercept_), offset)

    def _loss_of_scores(self) -> Loss | None:
        """The loss that the scores were fitted with, if it says what they mean."""
        return None

    def _probabilistic(self) -> Probabilistic:
        """The loss that gives probabilities; refused, if it gives none."""
        loss = probabilistic(self)
        if loss is None:
            raise ValueError(why_not(self))
        return loss

    def _open(self, X: Any) -> Table:
        """Rows to predict for, of the inputs of the fit."""
        check_is_fitted(self, "coef_")
        if hasattr(X, "columns") and changes_numbers(getattr(self, "recipe_", None)):
            raise ValueError(
                f"X is a {type(X).__name__}, but this model was fitted to rows that ingest had scaled or encoded; "
                "prepare it alike with dkl.ingest(file, dest, like=model_path), or use `dkl predict`"
            )
        return read_inputs(self, X, reset=False)

    def predict_blocks(
        self, X: Any, scores: bool = False, proba: bool = False
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """(row numbers, predictions, columns or None) of one block after the other, in order, in bounded memory.

        Columns are the scores, then the probabilities of the classes, if they are asked for.
        """
        function, answered = self._answered(scores, proba)
        rows, start = Rows([with_known_rows(self._open(X))], ["X"]), 0
        engine = engine_for(rows.is_lazy, "client")
        for block in stream_rows(engine, function, rows, Progress(self.verbose).name("predicting")):
            yield np.arange(start, start + len(block)), *answered(block)
            start += len(block)

    def _answered(self, scores: bool, proba: bool) -> tuple[Any, Answered]:
        """Scores of a block, and what they become."""
        function: Any = self._scores()
        if proba:
            function = ScoresAndProbabilities(function, self._probabilistic())
        outputs, classes = (
            len(function.scores.intercept if proba else function.intercept),
            getattr(self, "classes_", None),
        )
        return function, Answered(outputs, self._is_flat and classes is None, classes, chosen, scores, proba)

    def predict_to(
        self, X: Any, path: str, names: dict[str, list[str]], overwrite: bool = False, numbers: str | None = None
    ) -> int | None:
        """Predictions for Zarr rows, written by the workers of a cluster; returns how many.

        To a Zarr group, or to a folder of Parquet parts. `names` are those of the columns `score` and `probability`,
        none if they are not wanted; `numbers` is a data set with the numbers of the rows in their source. None: there
        is no cluster, or rows or path are not for one.
        """
        table = with_known_rows(self._open(X))
        rows = Rows([table], ["X"])
        if engine_for(rows.is_lazy, "client").name != "cluster" or not rows.reads_zarr:
            return None
        kind: Any = {".zarr": AnswerRegions, ".parquet": AnswerParts}.get(os.path.splitext(path)[1])
        if kind is None:
            return None
        blocks = rows.blocks(ROWS)
        function, answered = self._answered(bool(names["score"]), bool(names["probability"]))
        block = blocks[0][1]
        name = request_of(table, (function, answered), names, block, numbers)
        regions = kind(path, name, rows.n_rows, block, numbers, names, answered)
        return write_regions(regions, function, rows, blocks, overwrite, Progress(self.verbose).name("predicting"))

    def evaluate(self, X: Any, y: Any = None) -> dict[str, Any]:
        """Figures of the predictions for X against y, block by block, as plain values. A data set brings its own y."""
        table = with_known_rows(self._open(X))
        y_table = self._target_rows(with_known_rows(read_targets(X, y, type(self).__name__, table)))
        progress, scores = Progress(self.verbose), self._scores()
        if isinstance(self, ClassifierMixin):
            return evaluate_classes(scores, self.classes_, table, y_table, progress, self._loss_of_scores())
        return evaluate_numbers(scores, table, y_table, progress)

    def report(
        self, X: Any = None, y: Any = None, *, train: Any = None, path: Any = None, title: str | None = None
    ) -> Any:
        """One HTML page about the fitted model: checks, scores with intervals, pictures; a notebook shows it.

        X, y : rows that it was not fitted to; a data set brings its own y, and its splits. train : the rows of the fit,
        as (X, y) or a path. path : where to write the page, which needs no network and no JavaScript.
        """
        import dkl

        made = dkl.report.make_report(self, X, y, train=train, title=title)
        if path is not None:
            made.save(path)
        return made

    def plan(self, X: Any, y: Any = None, calibrate: bool = True) -> Plan:
        """What fit(X, y) will need: bytes, flops, seconds. Without y one output is assumed; a data set brings its own.

        calibrate=False does not measure the speed of this machine, and says nothing of seconds.
        """
        self._check()
        fresh = copy(self)
        table = with_known_rows(read_inputs(fresh, X, reset=True))
        fresh._check_inputs(table)
        y_table = targets_beside(X) if y is None else open_table(y, "y")
        outputs, rows = 1 if y_table is None else fresh._count_outputs(y_table), Rows([table], ["X"])
        engine, dtype = engine_for(rows.is_lazy, self.place), compute_dtype(table, self.dtype)
        split = fresh._split(table, y_table)
        return fresh._plan_rows(engine, rows, dtype, split, outputs, calibrate)

    def save(self, path: Any, overwrite: bool = False) -> None:
        """Write the model to a Zarr group; `dkl.load(path)` reads it. overwrite=True replaces an older one."""
        super().save(path, overwrite)
        if self.checkpoint is not None and progress_of(os.fspath(self.checkpoint)) is not None:
            remove(os.fspath(self.checkpoint))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
