"""Several tasks in one model: a score for each task, of features that all of them may share.

    least over W, b of sum_i w_i l(W_t(i)' psi(x_i) + b_t(i), y_i) + alpha penalty(W),   t(i): the task of row i

The task of a row comes from a list of data sets, from labels beside X, or from an input of X. A prediction needs it
too. The model answers with the score of each row's own task.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from dkl.cost import Sizes
from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.input_info import set_or_delete
from dkl.estimators.inputs import compute_dtype
from dkl.estimators.linear_family import Given, LinearFamily
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.scoring import as_numpy, values_beside
from dkl.estimators.stored import Stored, Value
from dkl.estimators.task_sets import all_values, place_of, put_together
from dkl.features.task_column import numbers_of
from dkl.learn.task_scores import TaskScores
from dkl.losses import Loss, find_loss, loss_of_scores
from dkl.prepare.data_sets import are_sets
from dkl.prepare.tasks import Beside, beside, column_of, labels_beside, labels_of, with_tasks, without
from dkl.sums.task_targets import task_targets

FITTED: dict[str, Stored] = {
    "tasks_": Value("The tasks, in the order of coef_.", np.array, plain=lambda values: values.tolist(), optional=True),
    "task_input_": Value("The input of X that says the task of a row; -1: labels beside X.", int, optional=True),
}


class TaskModel(LinearFamily):
    """A model that may have several tasks; `tasks` is the name or number of the input that says which."""

    FITTED: ClassVar[dict[str, Stored]] = FITTED

    tasks: Any
    tasks_: np.ndarray
    task_input_: int

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, tasks: Any = None, X_unlabelled: Any = None,
        resume: bool | str | None = None,
    ) -> Self:  # fmt: skip
        """Fit to the rows of X: numpy, pandas, Dask, xarray, scipy.sparse, or the path of a Zarr data set.

        Several tasks: lists of data sets, fit([X1, X2], [y1, y2]), which must have the same inputs; or tasks, a label
        for each row; or the parameter tasks, the input that says it. Labels of data sets are 0, 1 ..., or those of
        tasks. resume=True resumes from the checkpoint, which must exist; "finish" takes the best point it has; False
        begins anew; None resumes if there is a checkpoint.
        """
        rows, y, sample_weight = put_together(X, y, sample_weight, tasks)
        return super().fit(rows, y, sample_weight, X_unlabelled=X_unlabelled, resume=resume)

    @property
    def _has_tasks(self) -> bool:
        return hasattr(self, "tasks_")

    @property
    def _is_flat(self) -> bool:
        return self._has_tasks or super()._is_flat

    def _read(self, X: Any, y: Any, sample_weight: Any, X_unlabelled: Any) -> Given:
        own = X if isinstance(X, Beside) else None
        given = super()._read(X if own is None else own.X, y, sample_weight, X_unlabelled)
        for name in FITTED:
            set_or_delete(self, name, None)
        if own is None and self.tasks is None:
            return given
        if own is not None and self.tasks is not None:
            raise ValueError(
                f"tasks={self.tasks!r} names an input, and the fit has labels beside X too; give one of them"
            )
        if getattr(self, "calibrate", None) is not None:
            raise ValueError(f"calibrate={self.calibrate!r} is for classes without tasks; leave it out")
        place = -1 if own is None else None
        if own is None:
            place = place_of(self.tasks, given.X, getattr(self, "feature_names_in_", None))
            tasks, rows = column_of(given.X, place), without(given.X, place)
        else:
            tasks, rows = labels_beside(given.X, own.tasks), replace(given.X, about=own.about or given.X.about)
        return self._with_tasks(given, rows, tasks, -1 if place is None else place)

    def _with_tasks(self, given: Given, rows: Table, tasks: Table, place: int) -> Given:
        """The rows, targets of two columns, and what is known of these."""
        progress = self._progress()
        labels = labels_of(tasks, given.weight, progress)
        targets = self._targets(given.y, given.weight, progress)
        if targets.n_outputs > 1:
            has = f"{targets.n_targets} {'classes' if targets.is_class else 'columns'}"
            raise ValueError(
                f"y has {has}; tasks take one column of numbers, or two classes: fit one class against the rest"
            )
        pairs = with_tasks(given.y, tasks, targets.classes, labels)
        self.tasks_, self.task_input_ = labels, place
        return Given(rows, pairs, given.weight, given.unlabelled, task_targets(targets, len(labels)))

    def _task_loss(self) -> Loss:
        """The loss of the one score of a row."""
        return loss_of_scores(find_loss(self.loss), 1)

    def _loss_of_scores(self) -> Loss | None:
        return self._task_loss() if self._has_tasks else super()._loss_of_scores()

    def _scores(self) -> Any:
        scores = super()._scores()
        if not self._has_tasks:
            return scores
        if self.task_input_ < 0:
            return TaskScores(scores, self.n_features_in_, np.arange(len(self.tasks_)))
        return TaskScores(scores, self.task_input_, self.tasks_)

    def _open(self, X: Any) -> Table:
        check_is_fitted(self, "coef_")
        own = X if isinstance(X, Beside) else None
        if own is not None and (not self._has_tasks or self.task_input_ >= 0):
            why = f"input {self.task_input_} of X says the task" if self._has_tasks else "the model has no tasks"
            raise ValueError(f"{why}; leave tasks out")
        if own is None and self._has_tasks and self.task_input_ < 0:
            few = self.tasks_[:10].tolist()
            raise ValueError(f"a prediction needs the task of each row: predict(X, tasks=...), labels among {few}")
        table = super()._open(X if own is None else own.X)
        return table if own is None else beside(with_known_rows(table), own.tasks, self.tasks_)

    def _each(self, X: Any, tasks: Any, answer: Any) -> Any:
        """The answer for rows; of a list of data sets a list, one for each task."""
        rows, *_ = put_together(X, None, None, tasks, join=False)
        if isinstance(rows, list):
            names = self._names_of_sets() if tasks is None else list(tasks)
            if len(names) != len(rows):
                raise ValueError(
                    f"X has {len(rows)} data sets, the model has the tasks {names[:10]}; give one for each"
                )
            return [answer(Beside(own, name)) for own, name in zip(rows, names, strict=True)]
        return answer(rows)

    def _names_of_sets(self) -> list:
        """The tasks of a list of data sets that come without: those of the fit, if they are no names but its order."""
        known = self.tasks_.tolist() if self._has_tasks else []
        if known != list(range(len(known))):
            raise ValueError(f"which data set is which of the tasks {known[:10]}? give tasks=, a label for each")
        return known

    def predict(self, X: Any, tasks: Any = None) -> Any:
        """Predictions (n,); tasks beside X: the task of each row, or one for all. Of a list of data sets a list."""
        return self._each(X, tasks, super().predict)

    def evaluate(self, X: Any, y: Any = None, tasks: Any = None) -> dict[str, Any]:
        """Figures of the predictions for X against y, block by block, as plain values. A data set brings its own y."""
        rows, own, _ = put_together(X, y, None, tasks)
        return super().evaluate(rows, X if own is None and isinstance(rows, Beside) else own)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, tasks: Any = None) -> float:
        """R^2, or accuracy, of the predictions for rows of all tasks together. A data set brings its own y."""
        if tasks is None and not isinstance(X, list):
            return float(super().score(X, y, sample_weight))
        found = self._found(X, y, sample_weight, tasks)
        return self._measure(*found[:3])

    def task_scores(self, X: Any, y: Any = None, sample_weight: Any = None, tasks: Any = None) -> dict[Any, float]:
        """R^2, or accuracy, of the rows of each task that X has."""
        true, guess, weight, numbers = self._found(X, y, sample_weight, tasks)
        found = {}
        for t in np.unique(numbers).tolist():
            some = numbers == t
            own = None if weight is None else weight[some]
            found[self.tasks_[t].item()] = self._measure(true[some], guess[some], own)
        return found

    def _found(self, X: Any, y: Any, sample_weight: Any, tasks: Any) -> tuple[Any, Any, Any, np.ndarray]:
        """y, predictions, weights and task numbers, here."""
        check_is_fitted(self, "coef_")
        if not self._has_tasks:
            raise ValueError(f"this {type(self).__name__} has no tasks; use score")
        if are_sets(X) and tasks is None:
            tasks = self._names_of_sets()
        rows, own, weight = put_together(X, y, sample_weight, tasks)
        table = self._open(rows)
        place = self.task_input_ if self.task_input_ >= 0 else table.n_columns - 1
        values = self.tasks_ if self.task_input_ >= 0 else np.arange(len(self.tasks_))
        numbers = numbers_of(all_values(column_of(table, place)), values)
        X = rows.X if isinstance(rows, Beside) else rows
        true, weight = values_beside(X, X if own is None else own, "y"), values_beside(X, weight, "sample_weight")
        return true, as_numpy(super().predict(rows)), weight, numbers

    def _measure(self, true: Any, guess: Any, weight: Any) -> float:
        score = accuracy_score if isinstance(self, ClassifierMixin) else r2_score
        return float(score(true, guess, sample_weight=weight))

    def plan(self, X: Any, y: Any = None, calibrate: bool = True, tasks: Any = None) -> Plan:
        """What fit(X, y) will need: bytes, flops, seconds. With tasks it looks at y and the tasks.

        calibrate=False does not measure the speed of this machine, and says nothing of seconds.
        """
        rows, y, _ = put_together(X, y, None, tasks)
        if not isinstance(rows, Beside) and self.tasks is None:
            return super().plan(X, y, calibrate)
        self._check()
        fresh = copy(self)
        given = fresh._read(rows, y, None, None)
        fresh._check_inputs(given.X)
        blocks = Rows([given.X], ["X"])
        engine, dtype = engine_for(blocks.is_lazy, self.place), compute_dtype(given.X, self.dtype)
        split = fresh._split(given.X, given.y)
        return fresh._plan_rows(engine, blocks, dtype, split, len(fresh.tasks_), calibrate)

    def _task_sizes(self, sizes: Sizes) -> Sizes:
        """Two tasks have two scores, also of classes."""
        return replace(sizes, is_class=False) if self._has_tasks else sizes

    def _of_task(self, task: Any) -> Any:
        """The model of one task, without the others."""
        t = int(numbers_of(np.array([task]), self.tasks_)[0])
        one, place, constants = copy(self), self.task_input_, np.atleast_1d(self.intercept_)
        is_class = isinstance(self, ClassifierMixin)
        one.coef_ = self.coef_[[t]] if is_class else self.coef_[t]
        one.intercept_ = constants[[t]] if is_class else float(constants[t])
        for name in FITTED:
            set_or_delete(one, name, None)
        if place >= 0 and hasattr(one, "feature_names_in_"):
            one.feature_names_in_ = np.delete(one.feature_names_in_, place)
        return one
