"""Chi2Features: Phi(x) with Phi(x)'Phi(y) ~ sum_j 2 x_j y_j / (x_j + y_j); drop-in for AdditiveChi2Sampler."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_count
from dkl.engine.apply import apply_rows
from dkl.engine.progress import Progress
from dkl.estimators.estimator import Estimator
from dkl.estimators.fitted import INPUTS
from dkl.estimators.inputs import compute_dtype, read_inputs
from dkl.estimators.registry import register
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.stored import Stored, Value
from dkl.estimators.written import write_features
from dkl.features.additive import AdditiveMap, as_plain, check_histograms, from_plain, lift
from dkl.features.rows import dense
from dkl.kernels.additive import ADDITIVE, additive_kernel
from dkl.options.docstrings import documented
from dkl.options.fields import check_parameters, parameter
from dkl.prepare.additive import check_additive, make_additive
from dkl.prepare.targets import sum_small
from dkl.sums.histogram import HistogramProgram, LogHistogram

WHO = "Chi2Features"


@dataclass(frozen=True)
class Lifted:
    """The block function of a fitted map."""

    to: AdditiveMap
    dtype: np.dtype

    def __call__(self, X: Any) -> Any:
        return lift(check_histograms(X, WHO, self.dtype), self.to)


@register
@documented
@dataclass(eq=False, repr=False)
class Chi2Features(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Features of an additive kernel of histograms, n_terms per input; drop-in for AdditiveChi2Sampler.

    Zeros of X stay zeros.
    """

    FITTED: ClassVar[dict[str, Stored]] = {
        **INPUTS,
        "additive_": Value("The additive map of one input.", from_plain, plain=as_plain, told=False),
        "n_features_in_": Value(INPUTS["n_features_in_"].about, partial(check_count, "n_features_in"), told=False),
    }

    method: str = parameter("method")
    n_terms: int = parameter(
        "n_terms", about="Number of features per input.", doc='It must be odd if method="homogeneous".'
    )
    _: KW_ONLY
    kernel: str = parameter(
        "kernel",
        "chi2",
        choices=tuple(ADDITIVE),
        takes="",
        doc='"intersection" and "jensen_shannon" need method="homogeneous".',
        about="Name of the additive kernel.",
    )
    window: str = parameter("window")
    dtype: Any = parameter("dtype")
    verbose: int = parameter("verbose")

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the nodes; one pass over X unless the method needs none."""
        check_parameters(self)
        check_additive(self.kernel, self.method, self.n_terms, self.window)
        table = read_inputs(self, X, reset=True)
        compute_dtype(table, self.dtype)

        seen: list[LogHistogram] = []

        def look() -> LogHistogram:
            seen.append(sum_small(HistogramProgram(WHO), [table], ["X"], Progress(self.verbose)))
            return seen[0]

        self.additive_ = make_additive(self.kernel, self.method, self.n_terms, self.window, self.n_features_in_, look)
        self._largest = seen[0].largest if seen else None
        self._n_features_out = self.n_terms * self.n_features_in_
        return self

    def transform(self, X: Any) -> Any:
        """Features (n, n_terms m), term by term: numpy for numpy, csr for csr, lazy for Dask, labelled for xarray."""
        check_is_fitted(self, "additive_")
        table = read_inputs(self, X, reset=False)
        dtype = compute_dtype(table, self.dtype)
        return apply_rows(
            "transform", Lifted(self.additive_, dtype), table, self._n_features_out, dtype, keeps_zeros=True
        )

    def transform_to(self, X: Any, path: Any, overwrite: bool = False) -> int:
        """Features to the Zarr group `path`, as `dkl.FourierFeatures.transform_to` writes them; X is dense."""
        check_is_fitted(self, "additive_")
        table = read_inputs(self, X, reset=False)
        if table.is_sparse:
            raise ValueError(f"X is sparse, {table.array.shape}, and transform_to writes every zero; use transform(X)")
        dtype = compute_dtype(table, self.dtype)
        args = (self._n_features_out, dtype, os.fspath(path), overwrite)
        return write_features(table, Lifted(self.additive_, dtype), *args, Progress(self.verbose).name("transforming"))

    def kernel_matrix(self, X: Any, Y: Any = None, exact: bool = False) -> np.ndarray:
        """Kernel values (n, n') between rows of X and of Y (X itself if None), approximate or exact."""
        check_is_fitted(self, "additive_")
        tables = [read_inputs(self, rows, reset=False) for rows in ((X,) if Y is None else (X, Y))]
        arrays = [t.array.compute() if t.kind == "dask" else t.array[:] for t in tables]
        rows = [dense(check_histograms(a, WHO, np.dtype(np.float64))) for a in arrays]
        if exact:
            return additive_kernel(ADDITIVE[self.kernel], rows[0], rows[-1])
        lifted = [lift(a, self.additive_) for a in rows]
        return lifted[0] @ lifted[-1].T

    def _restored(self) -> None:
        if self.additive_ is None or self.additive_.n_terms != self.n_terms:
            raise ValueError(f"n_terms={self.n_terms} is not that of its map")
        self._n_features_out = self.n_terms * self.n_features_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
