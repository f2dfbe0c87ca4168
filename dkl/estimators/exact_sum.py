"""What GMKL and its classifier share: f(x) = sum_j d_j k_j(x, X) a + b0 with exact kernels, d >= 0 learned."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_choice, check_positive, warn_user
from dkl.engine.apply import apply_rows
from dkl.engine.blocks import Rows as Aligned
from dkl.engine.embedded import Embedded
from dkl.engine.memory import available_bytes
from dkl.engine.memory import count as counted
from dkl.engine.progress import Progress
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.estimator import Parameters
from dkl.estimators.fitted import INPUTS
from dkl.estimators.input_info import set_or_delete
from dkl.estimators.inputs import read_inputs, read_targets, read_weight
from dkl.estimators.stored import Stored
from dkl.features.base_kernel import GramScores, SumScores
from dkl.learn.exact_problem import in_memory
from dkl.learn.history import history_dataset
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.kernel_machines import KernelLoss, SquareMachine, SupportMachine
from dkl.learn.kernel_weights import KernelSum, KernelWeights, LearnKernelWeights, largest_alpha
from dkl.learn.model import Column
from dkl.learn.run import STALLED, Limits, Run
from dkl.learn.weight_solvers import Certificate
from dkl.options.fields import check_parameters, parameter
from dkl.options.option import Option
from dkl.prepare.base_kernels import PRECOMPUTED, base_kernels, check_kernels
from dkl.prepare.grams import grams_of, side_by_side

SHARE = 0.01
"""Of the alpha that leaves no kernel: what alpha="auto" is."""
WORK = 4
"""n x n matrices of an evaluation, beside those of the kernels."""
EPSILON = 0.1
"""Of the epsilon-insensitive loss, if none is given."""

KERNELS = Option(
    "kernels", None, "Kernels of the sum, e.g. gaussian and laplacian.", takes='list or "precomputed"', optional=True,
    rule=check_kernels,
    doc="Names, or pairs of a name and sigma: [('gaussian', 0.5), ('laplacian', 'scale*2')]. Sigma is a number, one "
    "for each input of a channel, or 'scale' (from the data) and multiples of it. Each kernel is taken on each "
    'channel. None: gaussian at 1/4, 1/2, 1, 2 and 4 times the scale. "precomputed": X is a list of (n, n) gram '
    "matrices, or has them side by side; predict takes (rows, n) values between other rows and those of the fit.",
)  # fmt: skip
CHANNELS = Option(
    "channels", None, "Inputs that belong together.", takes="str, list of slices, of columns or of labels",
    optional=True,
    doc='Slices or lists of columns, which may overlap; a label per input; "each"; or the name of an xarray '
    "coordinate. None: one channel of all inputs.",
)  # fmt: skip
WEIGHTS = Option(
    "weights", "learned", "Weights of the kernels.", choices=("learned", "uniform"),
    doc='"learned": they minimise the sum of losses + alpha sum_j |w_j|, where w_j are the weights of the features of '
    'kernel j: a group lasso, which leaves kernels out. "uniform": the mean of the kernels, for comparison.',
)  # fmt: skip
ALPHA = Option(
    "alpha", "auto", "Penalty beside the sum of losses.", takes='float or "auto"',
    rule=lambda name, value: check_choice(name, value, ["auto"])
    if isinstance(value, str)
    else check_positive(name, value),
    doc='That of sum_j |w_j|; with weights="uniform", that of |w|^2 / 2, as in KernelRidge. "auto": a hundredth of the '
    'alpha from which on no kernel is left (of that of the constant, about, with support vectors); 1 with "uniform".',
)  # fmt: skip

FITTED: dict[str, Stored] = {
    **INPUTS,
    "X_fit_": Stored("Training rows; those of zero weight are left out. Not of precomputed kernels.", optional=True),
    "kernels_": Stored("Kernel, sigma and inputs of each kernel. Not of precomputed kernels.", optional=True),
    "kernel_weights_": Stored("Weight d_j of each kernel: |w_j| / sqrt(2) of the group lasso."),
    "dual_coef_": Stored("Weights a of the training rows: f(x) = sum_j d_j k_j(x, X_fit_) dual_coef_ + intercept_."),
    "intercept_": Stored("Intercepts."),
    "alpha_": Stored("The penalty used."),
    "certificate_": Stored(
        "How close the weights are to the optimum: the KKT residual, whether it met tol, and the relative duality "
        "gap. Not of uniform weights.",
        optional=True,
    ),
    "history_": Stored("What each iteration found, as an xarray Dataset. Not of uniform weights.", optional=True),
    "n_iter_": Stored("Iterations."),
}


def loss_of_numbers(name: str, value: Any) -> float | None:
    """Epsilon of the epsilon-insensitive loss, None of the square; anything else is refused."""
    kind, colon, rest = str(value).partition(":epsilon=")
    if check_choice(name, kind, ["square", "epsilon_insensitive"]) == "square":
        check_choice(name, value, ["square", "epsilon_insensitive"])
        return None
    if not colon:
        return EPSILON
    try:
        return check_positive("epsilon", float(rest))
    except ValueError:
        raise ValueError(f"{name}={value!r}: epsilon={rest!r} must be a number above 0") from None


@dataclass(eq=False, repr=False)
class ExactSum(Parameters):
    """What the regressor and the classifier share."""

    FITTED: ClassVar[dict[str, Stored]] = FITTED

    kernels: Any = parameter(KERNELS)
    _: KW_ONLY
    channels: Any = parameter(CHANNELS)
    weights: str = parameter(WEIGHTS)
    loss: str = parameter("loss", "square")
    alpha: Any = parameter(ALPHA)
    skew: float = parameter("skew")
    max_iter: int = parameter("max_iter", 500, about="Most iterations.", doc="An iteration is one accepted step.")
    tol: float = parameter(
        "tol",
        1e-4,
        about="KKT residual at which the weights are done.",
        doc="It has no unit; an error of the weights relative to their sum, about.",
    )
    max_time: float | None = parameter("max_time")
    fit_intercept: bool = parameter("fit_intercept", doc="Support vector machines always have one.")
    max_rows: int = parameter("max_rows", doc="A matrix of n x n for each kernel must fit in memory.")
    verbose: int = parameter("verbose")

    def _machine(self) -> KernelLoss:
        """The inner problem of the loss."""
        loss = str(self.loss)
        if loss == "square":
            return SquareMachine()
        if not self.fit_intercept:
            raise ValueError(f"loss={loss!r} always has an intercept; use fit_intercept=True, or loss='square'")
        return SupportMachine(None if loss == "hinge" else loss_of_numbers("loss", loss))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> bool:
        """Fit everything; returns whether y was one column."""
        check_parameters(self)
        machine, X = self._machine(), self._together(X)
        table = with_known_rows(read_inputs(self, X, reset=True))
        self._refuse_many(table.array.shape[0])
        y_table = with_known_rows(read_targets(X, y, type(self).__name__, table))
        weight = read_weight(sample_weight, table)
        Aligned([table, y_table, weight], ["X", "y", "sample_weight"])
        rows, y_rows, weight = in_memory(table), in_memory(y_table), None if weight is None else in_memory(weight)
        targets, Y, w = self._targets(y_rows, weight)
        kept = w > 0
        grams = self._grams(rows, weight, table, kept)
        problem = KernelSum(grams, Y[kept], w[kept], machine, 1.0, bool(self.fit_intercept))
        plain = np.ones(len(Y)) if weight is None else weight.array.astype(np.float64)
        self.alpha_ = self._penalty(replace(problem, weight=plain[kept]))
        found = self._weigh(problem, np.array([f"{j}" for j in range(len(grams))]))
        self.kernel_weights_, self.dual_coef_ = found.d, found.machine.coef
        self.intercept_ = found.machine.intercept
        if not targets.is_class:
            self.intercept_ = self.intercept_ + targets.shift
        if self._is_given:
            self.dual_coef_ = np.zeros(Y.shape)
            self.dual_coef_[kept] = found.machine.coef
        set_or_delete(self, "X_fit_", None if self._is_given else rows.array[kept])
        return y_rows.array.ndim == 1

    @property
    def _is_given(self) -> bool:
        """Whether X holds kernel values."""
        return isinstance(self.kernels, str) and self.kernels == PRECOMPUTED

    def _together(self, X: Any) -> Any:
        """X, with a list of gram matrices side by side."""
        if self._is_given and self.channels is not None:
            raise ValueError(f"channels={self.channels!r} does not go with kernels='precomputed'; use channels=None")
        return side_by_side(X) if self._is_given else X

    def _refuse_many(self, n: int) -> None:
        if n > self.max_rows:
            kind = "Classifier" if isinstance(self, ClassifierMixin) else "Regressor"
            raise ValueError(
                f"X has {n:,} rows, {type(self).__name__} takes {self.max_rows:,} (each kernel matrix would take "
                f"{8e-9 * n * n:,.1f} GB); use dkl.SingleKernel{kind}, or max_rows={n} if you have the memory"
            )

    def _refuse_large(self, n: int, r: int) -> None:
        need, free = 8 * (r + WORK) * n * n, available_bytes()
        if need > free:
            raise ValueError(
                f"{r} kernels of {n:,} rows need {need / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free; use fewer "
                "kernels, channels or rows"
            )

    def _grams(self, rows: Table, weight: Table | None, table: Table, kept: np.ndarray) -> tuple[np.ndarray, ...]:
        """The kernel matrices; sets kernels_."""
        set_or_delete(self, "kernels_", None)
        if self._is_given:
            return grams_of(rows.array.astype(np.float64, copy=False), kept)
        kernels = base_kernels(self.kernels, self.channels, float(self.skew), rows, weight, table.input_coords)
        self._refuse_large(int(kept.sum()), len(kernels))
        self.kernels_ = list(kernels)
        variables = (kernel.variables(rows.array)[kept] for kernel in kernels)
        return tuple(kernel.values(T, T) for kernel, T in zip(kernels, variables, strict=True))

    def _penalty(self, problem: KernelSum) -> float:
        """alpha as a number, whatever the weights of classes."""
        if not isinstance(self.alpha, str):
            return float(self.alpha)
        return 1.0 if self.weights == "uniform" else SHARE * largest_alpha(problem) or 1.0

    def _weigh(self, problem: KernelSum, names: np.ndarray) -> KernelWeights:
        """The weights and their machine; sets n_iter_, history_ and certificate_."""
        for attribute in ("history_", "certificate_"):
            set_or_delete(self, attribute, None)
        self.n_iter_ = 1
        if self.weights == "uniform":
            d, problem = np.full(len(names), 1 / len(names)), replace(problem, C=1 / self.alpha_)
            return KernelWeights(d, np.inf, np.inf, problem.machine(d))
        problem = replace(problem, C=float(np.sqrt(2.0)) / self.alpha_)
        limits = Limits(int(self.max_iter), float(self.tol), None if self.max_time is None else float(self.max_time))
        aligned = Aligned([Table("memory", problem.Y)], ["y"])
        done = iterate(Run(Embedded(), aligned, Progress(self.verbose), limits), LearnKernelWeights(problem))
        found = done.result
        certificate = Certificate("KKT residual", found.residual, float(self.tol))
        self.certificate_ = {**certificate.told(), "gap": found.gap}
        self.n_iter_ = max(1, len(done.history) - 1)
        self.history_ = history_dataset(done.history.about, done.history.arrays(), {"kernel": {"kernel": names}})
        if done.reason != "converged":
            warn_user(self._ended_early(done), ConvergenceWarning)
        return found

    def _ended_early(self, done: Iterated[KernelWeights]) -> str:
        """Why the weights are not optimal, and what to do."""
        reached = f"the KKT residual is {done.result.residual:.1e}, tol is {self.tol:g}"
        did = f"after {counted(self.n_iter_, 'iteration')}"
        if done.reason in Limits._fields:
            limit = f"{done.reason}={getattr(self, done.reason):g}"
            return f"learning stopped at {limit} before it converged, {did}: {reached}; raise {done.reason}, or tol"
        if done.reason == STALLED:
            return f"learning stalled {did}, as rounding leaves no step: {reached}; raise tol or alpha"
        return f"learning was interrupted {did}: {reached}"

    def _scores(self) -> Any:
        """The block function of the fitted scores."""
        intercept, d = np.atleast_1d(self.intercept_), self.kernel_weights_
        coef = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        if self._is_given:
            return GramScores(np.vstack([share * coef for share in d]), intercept)
        used = [(kernel, float(share)) for kernel, share in zip(self.kernels_, d, strict=True) if share > 0]
        T = tuple(kernel.variables(self.X_fit_) for kernel, _ in used)
        return SumScores(tuple(k for k, _ in used), tuple(share for _, share in used), T, coef, intercept)

    def _read_new(self, X: Any) -> Table:
        """Rows to predict."""
        check_is_fitted(self, "dual_coef_")
        return read_inputs(self, self._together(X), reset=False)

    def _apply(self, X: Any) -> Any:
        """Scores (n,) if there is one for each row, else (n, outputs): numpy, lazy Dask or labelled, like X."""
        table, scores = self._read_new(X), self._scores()
        if np.ndim(self.intercept_) == 0 or (hasattr(self, "classes_") and len(self.intercept_) == 1):
            return apply_rows("predict", Column(scores), table, None, np.float64)
        return apply_rows("predict", scores, table, len(scores.intercept), np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_given
        return tags
