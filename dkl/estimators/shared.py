"""What the estimators of one kernel share: parameters, the map, one pass, one solve, saving."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_choice, check_nonnegative
from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan
from dkl.engine.progress import Progress
from dkl.engine.reduce import PLACES, engine_for
from dkl.engine.stream import stream_rows
from dkl.engine.tables import Table, identity, open_table, with_known_rows
from dkl.estimators.features import KernelMixin, draw_generator
from dkl.estimators.inputs import compute_dtype, read_folds, read_inputs, read_targets, read_weight
from dkl.learn.evaluate import evaluate_classes, evaluate_numbers
from dkl.learn.keep import kept_map
from dkl.learn.model import Scores, chosen
from dkl.learn.plan import plan_sums
from dkl.learn.prepare import build_map, check_map, sum_small
from dkl.learn.weights import RidgeOptions, Weights, learn_weights
from dkl.store.checkpoint import Checkpoint, progress_of
from dkl.store.folder import remove
from dkl.sums.targets import Targets

LEARN = ("none",)

PARAMETERS = """
    Parameters
    ----------
    kernel, n_components, sigma, groups, frequencies, form, skew : the map, as in FourierFeatures.
    alpha : ridge penalty with the meaning of sklearn.linear_model.Ridge(alpha): a number, one for each output, or
        with cv the list to choose from.
    cv : how one alpha is chosen, from the same single pass. A number of folds, the fold of each row, or a scikit-learn
        splitter. Scores of all folds are in cv_results_: minus the mean squared error (of targets -1 and +1 for
        classes). None takes alpha as it is.
    learn : "none" keeps sigma as it is.
    fit_intercept : an intercept that is not penalised.
    random_state : seed of the frequencies and folds.
    dtype : "float32" or "float64"; None follows the input. Sums over blocks are float64 always.
    place : "scheduler" or "client": where the small solve runs when there is a cluster.
    checkpoint : a folder (path or URL, seen by all workers) that keeps what has been summed; a fit of the same
        parameters and rows goes on from it, with the same bits. `save` removes it.
    verbose : 0 for no progress line.

    Attributes
    ----------
    coef_, intercept_ : the weights of the features, as in sklearn.linear_model.
    alpha_ : the penalty used; cv_results_ : scores of every fold and alpha, if cv is given.
    sigma_ : sigma of each input; groups_ : the group of each input.
    features_ : the feature map; dtype_ : the precision of its blocks.
    factorisation_ : how the system was solved, and the jitter it needed.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> import numpy as np, dkl
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = dkl.SingleKernelRegressor(n_components=50, sigma=1.0, alpha=1e-3, random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.999)
    True
"""


class SingleKernel(KernelMixin, BaseEstimator):
    """What the regressor and the classifier share: the map, one pass, one solve."""

    def __init__(
        self,
        kernel: str = "gaussian",
        n_components: int = 1000,
        *,
        sigma: Any = "scale",
        groups: Any = None,
        frequencies: str = "orthogonal",
        form: str = "paired",
        skew: float = 1.0,
        alpha: Any = 1.0,
        cv: Any = None,
        learn: str = "none",
        fit_intercept: bool = True,
        random_state: Any = None,
        dtype: Any = None,
        place: str = "scheduler",
        checkpoint: Any = None,
        verbose: int = 1,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.sigma = sigma
        self.groups = groups
        self.frequencies = frequencies
        self.form = form
        self.skew = skew
        self.alpha = alpha
        self.cv = cv
        self.learn = learn
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.dtype = dtype
        self.place = place
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Weights, bool]:
        """Fit everything and set what both kinds have; returns the weights and whether y was one column."""
        params = self.get_params(deep=False)
        self._check()
        table = with_known_rows(read_inputs(self, X, reset=True))
        y_table = self._target_rows(with_known_rows(read_targets(X, y, type(self).__name__)))
        weight = read_weight(sample_weight)
        check_map(params, self.n_features_in_, table.input_coords)
        folds = read_folds(self.cv, table, y_table)
        rows = Rows([table, y_table, weight, folds.labels], ["X", "y", "sample_weight", "cv"])
        if folds.labels is None and folds.count > rows.n_rows:
            raise ValueError(f"cv={self.cv} folds need at least {self.cv} rows, X has {rows.n_rows}; use a smaller cv")
        dtype, rng, progress = (
            compute_dtype(table, self.dtype),
            draw_generator(self.random_state),
            Progress(self.verbose),
        )
        engine = engine_for(rows.is_lazy, self.place)
        self._plan(engine, rows, dtype, folds.count, y_table.n_columns).check()
        targets = self._targets(y_table, weight, progress)
        self._plan(engine, rows, dtype, folds.count, targets.n_targets).check()
        options = self._ridge_options(targets)

        def moments(program: Any) -> Any:
            return sum_small(program, [table, weight], ["X", "sample_weight"], progress)

        kept = self._open_checkpoint(params, dtype, [table, y_table, weight, folds.labels])

        def make() -> tuple:
            return *build_map(params, self.n_features_in_, table.input_coords, rng, moments), int(rng.integers(2**62))

        features, groups, seed = kept_map(kept, params, make)
        weights = learn_weights(engine, rows, features, targets, dtype, options, folds.count, seed, progress, kept)
        if weights.warning:
            warnings.warn(weights.warning, UserWarning, stacklevel=3)
        self.features_, self.groups_, self.dtype_ = features, groups, dtype.name
        self.sigma_ = features.sigma
        if "recipe" in table.about:
            self.recipe_ = table.about["recipe"]
        elif hasattr(self, "recipe_"):
            del self.recipe_
        self.factorisation_ = {"method": weights.method, "jitter": weights.jitter}
        if weights.scores is not None:
            self.cv_results_ = _cv_results(options.alpha, weights.scores)
        elif hasattr(self, "cv_results_"):
            del self.cv_results_
        return weights, y_table.array.ndim == 1

    def _check(self) -> None:
        """Refuse what no rows could make right."""
        check_choice("learn", self.learn, LEARN)
        check_choice("place", self.place, PLACES)
        check_nonnegative("alpha", self.alpha)

    def _open_checkpoint(self, params: dict, dtype: np.dtype, tables: list[Table | None]) -> Checkpoint | None:
        """The folder that this fit goes on from."""
        if self.checkpoint is None:
            return None
        ignored = ("checkpoint", "place", "verbose")
        asked = {name: plain(value) for name, value in params.items() if name not in ignored}
        fit = {"estimator": type(self).__name__, **asked, "dtype": dtype.name, "rows": [identity(t) for t in tables]}
        return Checkpoint(os.fspath(self.checkpoint), json.loads(json.dumps(fit)))

    def _plan(
        self, engine: Any, rows: Rows, dtype: np.dtype, folds: int, outputs: int, calibrate: bool = False
    ) -> Plan:
        params = self.get_params(deep=False) | {"cv": folds, "alphas": np.size(self.alpha) if folds > 1 else 1}
        is_class = isinstance(self, ClassifierMixin)
        return plan_sums(engine, rows, self.n_features_in_, outputs, params, dtype, is_class, calibrate)

    def _ridge_options(self, targets: Targets) -> RidgeOptions:
        alpha = check_nonnegative("alpha", self.alpha)
        outputs = 1 if targets.is_class and targets.n_targets == 2 else targets.n_targets
        if alpha.ndim > 1 or (self.cv is None and alpha.ndim and alpha.shape != (outputs,)):
            raise ValueError(
                f"alpha has shape {alpha.shape} and y has {outputs} outputs; give one number or one for each output, "
                "or set cv=5 to choose one of a list"
            )
        return RidgeOptions(alpha.reshape(-1), bool(self.fit_intercept), choose=self.cv is not None)

    def _scores(self) -> Scores:
        """The block function of the fitted scores."""
        blocks = self.features_.at(np.dtype(self.dtype_))
        coef = np.atleast_2d(self.coef_).T * self.features_.scale
        return Scores(blocks, np.ascontiguousarray(coef, blocks.dtype), np.atleast_1d(self.intercept_))

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
        y_table = self._target_rows(with_known_rows(read_targets(X, y, type(self).__name__)))
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
        return fresh._plan(engine, rows, dtype, read_folds(self.cv, table, y_table).count, outputs, calibrate)

    def save(self, path: Any) -> None:
        """Write the model to a Zarr group; `dkl.load(path)` reads it."""
        from dkl.estimators.persist import save

        save(self, path)
        if self.checkpoint is not None and progress_of(os.fspath(self.checkpoint)) is not None:
            remove(os.fspath(self.checkpoint))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = "skewed" in str(self.kernel)
        return tags


def _cv_results(alpha: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
    """The table of all folds and alphas, with GridSearchCV's names."""
    mean = scores.mean(axis=1)
    return {
        "param_alpha": alpha,
        **{f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": (-mean).argsort(kind="stable").argsort(kind="stable") + 1,
    }


def plain(value: Any) -> str:
    """A parameter as text that differs when it does; a generator, which no text tells apart, by its kind."""
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.tolist()))
    return type(value).__name__ if isinstance(value, (np.random.Generator, np.random.RandomState)) else repr(value)


def changes_numbers(recipe: dict | None) -> bool:
    """Whether a recipe does more than to copy columns."""
    channels = (recipe or {}).get("channels", [])
    return any(c["scale"] != "none" or c["categories"] or c["fill"] is not None for c in channels)


def own_targets(X: Any, y: Any) -> Any:
    """y, or the y of the data set that X is."""
    if y is not None:
        return y
    if hasattr(X, "data_vars") or isinstance(X, (str, os.PathLike)):
        return X["y"] if hasattr(X, "data_vars") else X
    raise ValueError("score requires y; only a data set (a path, an xarray Dataset) brings its own")


def as_numpy(y: Any) -> Any:
    """A column of any kind, here."""
    if y is None:
        return None
    table = open_table(y, "y")
    values = np.asarray(table.array.compute() if hasattr(table.array, "compute") else table.array[:])
    return values if table.names is None else table.names[values]
