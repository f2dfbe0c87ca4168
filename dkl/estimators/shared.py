"""What the estimators of one kernel share: parameters, the map, one pass, one solve, saving."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_choice
from dkl.engine.blocks import Rows
from dkl.engine.identity import identity
from dkl.engine.memory import Plan
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.stream import stream_rows
from dkl.engine.tables import Table, open_table, with_known_rows
from dkl.estimators.aim import Aim, read_aim
from dkl.estimators.estimator import Estimator
from dkl.estimators.fitted import INPUTS, MAP, RIDGE, WEIGHTS, restored_map, restored_ridge, restored_weights
from dkl.estimators.fourier import KernelMixin, draw_generator
from dkl.estimators.input_info import set_extent
from dkl.estimators.inputs import Folds, compute_dtype, read_inputs, read_targets, read_weight
from dkl.estimators.learning import check_learning, check_reduce, input_names, learn, set_history, starting_alpha
from dkl.estimators.scoring import changes_numbers, cv_results, plain
from dkl.estimators.stored import Stored
from dkl.estimators.unlabelled import read_unlabelled, unlabelled_sums
from dkl.kernels import is_for_histograms
from dkl.learn.evaluate import evaluate_classes, evaluate_numbers
from dkl.learn.model import Scores, chosen
from dkl.learn.plan import plan_sums
from dkl.learn.ridge import RidgeOptions, Weights, learn_weights
from dkl.learn.saved_map import kept_map
from dkl.learn.thresholds import offset_of
from dkl.learn.walk import INTERRUPTED, LIMITS
from dkl.options.fields import check_parameters, parameter
from dkl.prepare.draw import check_map, draw
from dkl.prepare.landmarks import draw_landmarks
from dkl.prepare.targets import sum_small
from dkl.sources.shown import refuse_secret
from dkl.store.checkpoint import Checkpoint, progress_of
from dkl.store.folder import remove
from dkl.sums.targets import Targets


@dataclass(eq=False, repr=False)
class SingleKernel(KernelMixin, Estimator):
    """What the regressor and the classifier share: the map, one pass, one solve."""

    FITTED: ClassVar[dict[str, Stored]] = {**INPUTS, **MAP, **WEIGHTS, **RIDGE}

    kernel: str = parameter("kernel")
    n_components: int = parameter("n_components")
    _: KW_ONLY
    sigma: Any = parameter("sigma")
    groups: Any = parameter("groups")
    frequencies: str = parameter("frequencies")
    form: str = parameter("form")
    skew: float = parameter("skew")
    n_terms: int = parameter("n_terms")
    landmarks: str | None = parameter("landmarks")
    alpha: Any = parameter("alpha")
    cv: Any = parameter("cv")
    learn: str | None = parameter("learn")
    validation: Any = parameter("validation")
    sigma_l1: float = parameter("sigma_l1")
    sigma_l2: float = parameter("sigma_l2")
    starts: int = parameter("starts")
    subsample: float | None = parameter("subsample")
    max_iter: int = parameter("max_iter")
    tol: float = parameter("tol")
    max_time: float | None = parameter("max_time")
    early_stopping: Any = parameter("early_stopping")
    reduce: float | str | None = parameter("reduce")
    fit_intercept: bool = parameter("fit_intercept")
    random_state: Any = parameter("random_state")
    dtype: Any = parameter("dtype")
    place: str = parameter("place")
    checkpoint: Any = parameter("checkpoint")
    verbose: int = parameter("verbose")

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, X_unlabelled: Any, resume: bool | str | None
    ) -> tuple[Weights, bool, tuple[Table, Table | None]]:
        """Fit everything and set what both kinds have; the weights, whether y was one column, X and sample_weight."""
        params = self.get_params(deep=False)
        self._check()
        table = with_known_rows(read_inputs(self, X, reset=True))
        y_table = self._target_rows(with_known_rows(read_targets(X, y, type(self).__name__, table)))
        weight = read_weight(sample_weight, table)
        more = read_unlabelled(self, X_unlabelled)
        check_map(params, self.n_features_in_, table.input_coords)
        aim = read_aim(params, table, y_table)
        folds = aim.folds
        rows = Rows([table, y_table, weight, folds.labels], ["X", "y", "sample_weight", "cv"])
        if folds.labels is None and aim.held is None and folds.count > rows.n_rows:
            raise ValueError(
                f"cv={folds.count} folds need at least {folds.count} rows, X has {rows.n_rows} sample(s); use fewer"
            )
        dtype, rng, progress = (
            compute_dtype(table, self.dtype),
            draw_generator(self.random_state),
            Progress(self.verbose),
        )
        is_lazy = rows.is_lazy or (more is not None and more.is_lazy)
        engine = engine_for(is_lazy, self.place)
        self._plan(engine, rows, dtype, aim, y_table.n_columns).check()
        targets = self._targets(y_table, weight, progress)
        self._plan(engine, rows, dtype, aim, targets.n_targets).check()
        if more is not None:
            self._plan(engine, Rows([more], ["X_unlabelled"]), dtype, aim, targets.n_targets).check()
        options = self._ridge_options(targets, aim.objective)
        given = [table, y_table, weight, folds.labels, *([] if more is None else [more])]
        kept = self._open_checkpoint(params, dtype, given, resume)

        def moments(program: Any) -> Any:
            return sum_small(program, [table, weight], ["X", "sample_weight"], progress)

        def make() -> tuple:
            if self.landmarks is not None:
                features, index = draw_landmarks(params, table, weight, dtype, rng, progress)
                return features, index, int(rng.integers(2**62)), np.empty(0), None
            return draw(params, self.n_features_in_, table.input_coords, rng, moments, aim.objective is not None)

        features, groups, seed, squares, extent = kept_map(kept, params, make)
        learned, last = None, aim
        if aim.objective is not None:
            features, learned, options = learn(
                params, aim, engine, rows, features, groups, squares, targets, dtype, seed, progress, kept,
                extent, resume == "finish",
            )  # fmt: skip
            last = aim if options.refine else Aim(None, Folds(1, None))
            kept = None if learned.reason == INTERRUPTED else kept  # no sums of a sigma that a later fit may leave
        fold = last.folds.count, seed, progress, kept, last.held
        with unlabelled_sums(more, is_lazy, self.place, features, dtype, progress) as shaping:
            weights = learn_weights(engine, rows, features, targets, dtype, options, *fold, unlabelled=shaping)
        if weights.warning:
            warnings.warn(weights.warning, UserWarning, stacklevel=4)
        self.features_, self.groups_, self.dtype_ = features, groups, dtype.name
        self.sigma_ = features.sigma
        set_extent(self, extent)
        set_history(self, learned, input_names(table, getattr(self, "feature_names_in_", None), groups))
        self.factorisation_ = {"method": weights.method, "jitter": weights.jitter}
        some = {
            "recipe_": table.about.get("recipe"),
            "reduced_": weights.reduced,
            "cv_results_": None if weights.scores is None else cv_results(weights.tried, weights.scores),
        }
        for name, value in some.items():
            if value is not None:
                setattr(self, name, value)
            elif hasattr(self, name):
                delattr(self, name)
        return weights, y_table.array.ndim == 1, (table, weight)

    def _check(self) -> None:
        """Refuse what no rows could make right."""
        check_parameters(self)
        check_learning(self.get_params(deep=False))
        check_reduce(self.reduce, self.n_components, self.fit_intercept)

    def _open_checkpoint(
        self, params: dict, dtype: np.dtype, tables: list[Table | None], resume: bool | str | None
    ) -> Checkpoint | None:
        """The folder that this fit goes on from."""
        if isinstance(resume, str):
            check_choice("resume", resume, ["finish"])
        if self.checkpoint is None:
            if resume:
                raise ValueError(f"fit(resume={resume!r}) goes on from a checkpoint; say which: checkpoint='folder'")
            return None
        path = os.fspath(self.checkpoint)
        refuse_secret("checkpoint", path)
        if resume and progress_of(path) is None:
            raise FileNotFoundError(f"there is no checkpoint at {path!r} to resume from; fit without resume={resume!r}")
        if resume is False and progress_of(path) is not None:
            remove(path)
        ignored = ("calibrate", "checkpoint", "place", "verbose")  # none of them changes the sums
        asked = {name: plain(value) for name, value in params.items() if name not in ignored}
        fit = {"estimator": type(self).__name__, **asked, "dtype": dtype.name, "rows": [identity(t) for t in tables]}
        return Checkpoint(path, json.loads(json.dumps(fit)), LIMITS)

    def _plan(self, engine: Any, rows: Rows, dtype: np.dtype, aim: Aim, outputs: int, calibrate: bool = False) -> Plan:
        params = self.get_params(deep=False)
        alphas = starting_alpha(params, aim.objective).size
        params |= {"cv": aim.fold_count, "alphas": alphas if aim.folds.count > 1 else 1, "objective": aim.objective}
        is_class = isinstance(self, ClassifierMixin)
        return plan_sums(engine, rows, self.n_features_in_, outputs, params, dtype, is_class, calibrate)

    def _ridge_options(self, targets: Targets, objective: str | None) -> RidgeOptions:
        alpha, outputs = starting_alpha(self.get_params(deep=False), objective), targets.n_outputs
        if alpha.ndim > 1 or (self.cv is None and alpha.ndim and alpha.shape != (outputs,)):
            raise ValueError(
                f"alpha has shape {alpha.shape} and y has {outputs} outputs; give one number or one for each output, "
                "or set cv=5 to choose one of a list"
            )
        choose = self.cv is not None and objective is None
        own = choose and isinstance(self.alpha, str)
        return RidgeOptions(alpha.reshape(-1), bool(self.fit_intercept), choose, reduce=self.reduce, own=own)

    def _scores(self) -> Scores:
        """The block function of the fitted scores."""
        blocks = self.features_.at(np.dtype(self.dtype_))
        coef = np.atleast_2d(self.coef_).T * self.features_.scale
        offset = offset_of(getattr(self, "thresholds_", None))
        return Scores(blocks, np.ascontiguousarray(coef, blocks.dtype), np.atleast_1d(self.intercept_), offset)

    def _open(self, X: Any) -> Table:
        check_is_fitted(self, "coef_")
        if hasattr(X, "columns") and changes_numbers(getattr(self, "recipe_", None)):
            raise ValueError(
                "X is a dataframe, but this model was fitted to rows that ingest had scaled or encoded; prepare it "
                "alike with dkl.ingest(file, dest, like=model_path), or use `dkl predict`"
            )
        return read_inputs(self, X, reset=False)

    def predict_blocks(
        self, X: Any, scores: bool = False
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """(row numbers, predictions, scores or None) of one block after the other, in order, in bounded memory."""
        table = with_known_rows(self._open(X))
        rows = Rows([table], ["X"])
        engine = engine_for(rows.is_lazy, "client")
        classes = getattr(self, "classes_", None)
        flat = np.ndim(self.coef_) == 1
        start = 0
        for block in stream_rows(engine, self._scores(), rows, Progress(self.verbose).name("predicting")):
            values = block[:, 0] if flat else block
            predicted = values if classes is None else classes[chosen(block)]
            yield np.arange(start, start + len(block)), predicted, block if scores else None
            start += len(block)

    def evaluate(self, X: Any, y: Any = None) -> dict:
        """Figures of the predictions for X against y, block by block, as plain values. A data set brings its own y."""
        table = with_known_rows(self._open(X))
        y_table = self._target_rows(with_known_rows(read_targets(X, y, type(self).__name__, table)))
        progress, scores = Progress(self.verbose), self._scores()
        if isinstance(self, ClassifierMixin):
            return evaluate_classes(scores, self.classes_, table, y_table, progress)
        return evaluate_numbers(scores, table, y_table, progress)

    def plan(self, X: Any, y: Any = None, calibrate: bool = True) -> Plan:
        """What fit(X, y) will need: bytes, flops, seconds. Without y one output is assumed."""
        self._check()
        fresh = type(self)(**self.get_params(deep=False))
        table = with_known_rows(read_inputs(fresh, X, reset=True))
        check_map(self.get_params(deep=False), table.n_columns, table.input_coords)
        y_table = None if y is None else open_table(y, "y")
        outputs = 1 if y_table is None else fresh._count_outputs(y_table)
        rows = Rows([table], ["X"])
        engine, dtype = engine_for(rows.is_lazy, self.place), compute_dtype(table, self.dtype)
        aim = read_aim(self.get_params(deep=False), table, y_table)
        return fresh._plan(engine, rows, dtype, aim, outputs, calibrate)

    def _restored(self) -> None:
        restored_map(self)
        restored_weights(self)
        restored_ridge(self)

    def save(self, path: Any, overwrite: bool = False) -> None:
        """Write the model to a Zarr group; `dkl.load(path)` reads it. overwrite=True replaces an older one."""
        super().save(path, overwrite)
        if self.checkpoint is not None and progress_of(os.fspath(self.checkpoint)) is not None:
            remove(os.fspath(self.checkpoint))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = is_for_histograms(self.kernel)
        return tags
