"""FourierFeatures: psi(x) with psi(x)'psi(y) ~ k(x, y); drop-in for RBFSampler."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from dkl.engine.progress import Progress
from dkl.estimators.fitted import KERNEL, restored_map
from dkl.estimators.input_info import set_extent
from dkl.estimators.inputs import compute_dtype, read_inputs, read_weight
from dkl.estimators.map_transformer import MapTransformer
from dkl.estimators.registry import register
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.stored import Stored
from dkl.features.kernel_inputs import kernel_inputs
from dkl.features.rows import dense
from dkl.kernels import exact_kernel, is_for_histograms
from dkl.learn.learners import learner_of
from dkl.options.docstrings import documented
from dkl.options.fields import check_parameters, parameter, parameters_of
from dkl.prepare.draw import build_map
from dkl.prepare.input_ranges import extent_of
from dkl.prepare.targets import sum_small
from dkl.sums.input_moments import MomentProgram
from dkl.sums.tree import TreeProgram


def draw_generator(random_state: Any) -> np.random.Generator:
    """A Generator from whatever scikit-learn takes as random_state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    try:
        state = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(f"random_state={random_state!r} is not possible: {error}") from None
    return np.random.default_rng(state.randint(0, 2**31 - 1, size=4))


class KernelMixin:
    """The kernel of an estimator with a feature map `features_`."""

    features_: Any  # a FourierMap, or a NystroemMap

    @property
    def _moves_frequencies(self) -> bool:
        """Whether every frequency is learned on its own, so that the kernel is that of the features alone."""
        return learner_of(getattr(self, "learn", None)).moves_frequencies

    def kernel_matrix(self, X: Any, Y: Any = None, exact: bool = False) -> np.ndarray:
        """Kernel values (n, n') between rows of X and of Y (X itself if None), approximate or exact."""
        check_is_fitted(self, "features_")
        if exact and self._moves_frequencies:
            raise ValueError("the kernel of learned frequencies has no exact form, got exact=True; use exact=False")
        dtype = np.dtype(np.float64)
        blocks = self.features_.at(dtype)
        tables = [read_inputs(self, rows, reset=False) for rows in ((X,) if Y is None else (X, Y))]
        arrays = [t.array.compute() if t.kind == "dask" else t.array[:] for t in tables]
        if exact:
            kernel, c = self.features_.kernel, self.features_.skew
            seen = [kernel_inputs(a, kernel, c, dtype) for a in arrays]
            return exact_kernel(kernel, self.features_.sigma, dense(seen[0]), dense(seen[-1]))
        Psi = [blocks.transform(a) for a in arrays]
        return Psi[0] @ Psi[-1].T


class MapFeatures(KernelMixin, MapTransformer):
    """A transformer whose features are those of a map of some kernel."""

    FITTED: ClassVar[dict[str, Stored]] = KERNEL

    kernel: str

    def _restored(self) -> None:
        restored_map(self)
        self._n_features_out = self.features_.n_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = is_for_histograms(self.kernel)
        return tags


@register
@documented
@dataclass(eq=False, repr=False)
class FourierFeatures(MapFeatures):
    """Random Fourier features of a shift-invariant kernel, or of a kernel of histograms; drop-in for RBFSampler."""

    kernel: str = parameter("kernel")
    n_components: int = parameter("n_components", 100)
    _: KW_ONLY
    sigma: Any = parameter("sigma")
    groups: Any = parameter("groups")
    frequencies: str = parameter("frequencies")
    form: str = parameter("form")
    skew: float = parameter("skew")
    n_terms: int = parameter("n_terms")
    random_state: Any = parameter("random_state")
    dtype: Any = parameter("dtype")
    verbose: int = parameter("verbose")

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the frequencies; one pass over X if sigma="scale"."""
        check_parameters(self)
        table = read_inputs(self, X, reset=True)
        weight = read_weight(sample_weight, table)
        compute_dtype(table, self.dtype)
        progress = Progress(self.verbose)

        seen: dict[type, Any] = {}

        def moments(program: TreeProgram) -> Any:
            seen[type(program)] = sum_small(program, [table, weight], ["X", "sample_weight"], progress)
            return seen[type(program)]

        rng = draw_generator(self.random_state)
        features, groups = build_map(parameters_of(self), self.n_features_in_, table.input_coords, rng, moments)
        self.features_, self.groups_ = features, groups
        self.sigma_ = features.sigma
        set_extent(self, extent_of(seen.get(MomentProgram), self.n_features_in_))
        self._n_features_out = features.n_features
        return self
