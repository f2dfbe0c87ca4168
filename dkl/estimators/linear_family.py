"""The way of a fit, for every linear model of features: read, plan, targets, map, then what the family learns.

A family says which passes it makes (`_costs`), which rows they tell apart (`_split`), which map it starts from
(`_drawing`), and how weights come of prepared data (`_learn`). The engine, checkpoints, progress, plan, predictions,
evaluation and saving come with this class; estimators/family.py adds the map of one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.measured import measuring, promised
from dkl.engine.memory import Plan
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.advice import warn_of_early_end
from dkl.estimators.checkpoints import open_checkpoint
from dkl.estimators.fourier import draw_generator
from dkl.estimators.input_info import input_coords, set_or_delete
from dkl.estimators.inputs import compute_dtype, read_inputs, read_targets, read_weight, recipe_matrices
from dkl.estimators.predictor import Predictor
from dkl.learn.history import history_dataset
from dkl.learn.iterate import Iterated, Result, iterate
from dkl.learn.run import Limits, Method, Run
from dkl.options.fields import check_parameters, parameter, parameters_of
from dkl.prepare.folds import Split
from dkl.prepare.prepared import Prepared
from dkl.prepare.saved_map import Drawn, kept_map
from dkl.store.checkpoint import Checkpoint
from dkl.sums.targets import Targets


class Given(NamedTuple):
    """What a fit is given, as tables; `unlabelled` has rows of its own."""

    X: Table
    y: Table
    weight: Table | None
    unlabelled: Table | None
    targets: Targets | None = None  # if they were looked at before

    @property
    def is_lazy(self) -> bool:
        """Whether any rows are lazy."""
        return self.X.is_lazy or (self.unlabelled is not None and self.unlabelled.is_lazy)


class Linear(NamedTuple):
    """What a family learns: scores psi(x)' coef + intercept, of the map in `data`."""

    data: Prepared
    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)


@dataclass(eq=False, repr=False)
class LinearFamily(Predictor):
    """A linear model of some features."""

    _: KW_ONLY
    fit_intercept: bool = parameter("fit_intercept")
    random_state: Any = parameter("random_state")
    dtype: Any = parameter("dtype")
    place: str = parameter("place")
    checkpoint: Any = parameter("checkpoint")
    verbose: int = parameter("verbose")

    def _learn(self, run: Run, data: Prepared, given: Given) -> Linear:
        """The weights of prepared data, and the attributes that only this family has."""
        raise TypeError(f"{type(self).__name__} does not say how it learns")

    def _targets(self, y: Table, weight: Table | None, progress: Progress) -> Targets:
        """What y holds, from one pass over it."""
        raise TypeError(f"{type(self).__name__} does not say what y is")

    def _set_weights(self, linear: Linear, given: Given) -> None:
        """coef_, intercept_ and what follows from them."""
        raise TypeError(f"{type(self).__name__} does not say what its weights are")

    def _check(self) -> None:
        """Refuse what no rows could make right."""
        check_parameters(self)

    def _check_targets(self, targets: Targets) -> None:
        """Refuse what does not suit y, before the first pass over X."""

    def _split(self, X: Table, y: Table | None) -> Split:
        """The rows that the passes tell apart; all alike."""
        return Split()

    def _limits(self) -> Limits:
        """When learning has to stop."""
        return Limits()

    def _fit(self, X: Any, y: Any, sample_weight: Any, X_unlabelled: Any, resume: bool | str | None) -> None:
        """Fit everything and set the fitted attributes."""
        self._check()
        given = self._read(X, y, sample_weight, X_unlabelled)
        self._check_inputs(given.X)
        split = self._split(given.X, given.y)
        rows = Rows([given.X, given.y, given.weight, split.folds.labels], ["X", "y", "sample_weight", "cv"])
        split.check(rows.n_rows)
        dtype, rng, progress = compute_dtype(given.X, self.dtype), draw_generator(self.random_state), self._progress()
        engine = engine_for(given.is_lazy, self.place)
        self._promise(engine, given, rows, dtype, split, given.y.n_columns)
        recipe_matrices(given.X)  # a damaged one is refused now, not after the last pass
        targets = given.targets
        if targets is None:
            targets = self._targets(given.y, given.weight, progress)
        plan = self._promise(engine, given, rows, dtype, split, max(targets.n_targets, targets.n_outputs))
        self._check_targets(targets)
        kept = open_checkpoint(self, dtype, [*given[:3], split.folds.labels, *filter(None, [given.unlabelled])], resume)
        with measuring(engine) as took:
            data = self._prepare(given, rows, targets, split, dtype, rng, progress, kept)
            linear = self._learn(Run(engine, rows, progress, self._limits(), kept, resume == "finish"), data, given)
        self.fit_info_ = {**took.told(), "rows": int(rows.n_rows), **promised(plan)}
        self.features_, self.dtype_ = linear.data.features, dtype.name
        self._set_map(linear.data)
        set_or_delete(self, "recipe_", given.X.about.get("recipe"))
        set_or_delete(self, "recipe_matrices_", recipe_matrices(given.X))
        self._set_weights(linear, given)

    def _set_map(self, data: Prepared) -> None:
        """What is known of the map, beside features_."""

    def _drawn_params(self) -> dict[str, Any] | None:
        """The parameters of the map that learning starts from; None: the map itself says all."""
        return None

    def _progress(self) -> Progress:
        return Progress(self.verbose)

    def _read(self, X: Any, y: Any, sample_weight: Any, X_unlabelled: Any) -> Given:
        """The tables of a fit; sets n_features_in_ and the names of the inputs."""
        table = with_known_rows(read_inputs(self, X, reset=True))
        y_table = self._target_rows(with_known_rows(read_targets(X, y, type(self).__name__, table)))
        return Given(table, y_table, read_weight(sample_weight, table), self._read_unlabelled(X_unlabelled))

    def _read_unlabelled(self, X_unlabelled: Any) -> Table | None:
        """Rows without y, for a family that has a use for them."""
        if X_unlabelled is not None:
            raise ValueError(f"{type(self).__name__} has no use for X_unlabelled; leave it out")
        return None

    def _promise(
        self, engine: Engine, given: Given, rows: Rows, dtype: np.dtype, split: Split, outputs: int
    ) -> Plan:  # fmt: skip
        """Refuse a fit that cannot have the memory it needs."""
        plan = self._plan_rows(engine, rows, dtype, split, outputs)
        plan.check()
        if given.unlabelled is not None:
            self._plan_rows(engine, Rows([given.unlabelled], ["X_unlabelled"]), dtype, split, outputs).check()
        return plan

    def _prepare(
        self, given: Given, rows: Rows, targets: Targets, split: Split, dtype: np.dtype, rng: np.random.Generator,
        progress: Progress, kept: Checkpoint | None,
    ) -> Prepared:  # fmt: skip
        """The map, drawn or taken from the checkpoint, and all else that learning starts from."""
        make = self._drawing(given, dtype, rng, progress)
        features, groups, seed, squares, extent = kept_map(kept, self._drawn_params(), make)
        return Prepared(given.X, rows, targets, features, groups, seed, dtype, split, squares, extent)

    def _drawing(
        self, given: Given, dtype: np.dtype, rng: np.random.Generator, progress: Progress
    ) -> Callable[[], Drawn]:
        """How the map is drawn, the groups of the inputs, a seed, and what a pass over X has seen."""
        raise TypeError(f"{type(self).__name__} does not say what its features are")

    def _iterate(self, run: Run, method: Method[Any, Result], data: Prepared) -> Result:
        """What a method finds; sets history_ and n_iter_, and warns if it ended early."""
        done = iterate(run, method)
        warn_of_early_end(parameters_of(self), done, run.finish)
        self._set_history(done, data)
        return done.result

    def _set_history(self, done: Iterated[Any] | None, data: Prepared, leave_out: tuple[str, ...] = ()) -> None:
        """history_, as an xarray Dataset with the names of the inputs; n_iter_, its length."""
        self.n_iter_ = 1
        if done is None:
            set_or_delete(self, "history_", None)
            return
        columns = {name: column for name, column in done.history.arrays().items() if name not in leave_out}
        self.n_iter_ = len(done.history)
        about, names = done.history.about, getattr(self, "feature_names_in_", None)
        along = {"input": input_coords(data.X, names, data.groups, about)}
        coords = {dim: some for dim, some in along.items() if any(column.dim == dim for column in about.values())}
        self.history_ = history_dataset(about, columns, coords)
