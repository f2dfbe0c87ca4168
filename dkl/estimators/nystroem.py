"""NystroemFeatures: phi(x) = k(x, L) K_LL^(-1/2) with landmarks L among the rows; drop-in for Nystroem."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan, make_plan
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.fourier import MapFeatures, draw_generator
from dkl.estimators.inputs import compute_dtype, read_inputs, read_weight
from dkl.estimators.registry import register
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.stored import Stored
from dkl.features.nystroem import NystroemMap
from dkl.learn.plan import landmark_costs, nystroem_map_cost, sizes_of
from dkl.options.docstrings import documented
from dkl.options.fields import check_parameters, parameter, parameters_of
from dkl.prepare.draw import check_map
from dkl.prepare.landmarks import START_TERMS, draw_landmarks


@register
@documented
@dataclass(eq=False, repr=False)
class NystroemFeatures(MapFeatures):
    """Nystroem features: exact at some rows, the landmarks, for any kernel of the library; drop-in for Nystroem."""

    FITTED: ClassVar[dict[str, Stored]] = {"landmark_rows_": Stored("Rows of X that are the landmarks.")}

    kernel: str = parameter("kernel", doc="The names of FourierFeatures; here the kernel is used itself.")
    n_components: int = parameter(
        "n_components",
        100,
        about="Number of landmarks.",
        doc="Landmarks that add nothing but rounding (eigenvalues below 1e-12 of the largest, 1e-6 for float32) give "
        "no feature.",
    )
    _: KW_ONLY
    landmarks: str = parameter(
        "landmarks",
        "uniform",
        optional=False,
        about="How landmarks are drawn from the rows.",
        doc='"uniform": one pass over X. "kmeans++": five passes, each drawing rows far from the landmarks so far. '
        '"leverage": three passes, rows by the ridge leverage that a uniform pilot estimates. The probability of a row '
        "is multiplied by its sample_weight.",
    )
    sigma: Any = parameter("sigma")
    groups: Any = parameter("groups")
    skew: float = parameter("skew")
    random_state: Any = parameter("random_state", doc="Uniform landmarks do not depend on the blocks.")
    dtype: Any = parameter("dtype")
    place: str = parameter("place")
    verbose: int = parameter("verbose")

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the landmarks and whiten them; one more pass if sigma="scale", two for an exponentiated kernel."""
        check_parameters(self)
        table = with_known_rows(read_inputs(self, X, reset=True))
        weight = read_weight(sample_weight, table)
        dtype, params = compute_dtype(table, self.dtype), {**parameters_of(self), "n_terms": START_TERMS}
        self._plan(table, weight, dtype, params).check()
        rng = draw_generator(self.random_state)
        features, self.groups_ = draw_landmarks(params, table, weight, dtype, rng, Progress(self.verbose))
        self.set_map(features)
        return self

    def _plan(
        self, table: Table, weight: Table | None, dtype: np.dtype, params: dict, calibrate: bool = False
    ) -> Plan:  # fmt: skip
        """What the passes over these rows will need; parameters that do not fit are refused."""
        check_map(params, table.n_columns, table.input_coords)
        rows = Rows([table, weight], ["X", "sample_weight"])
        sizes, of = sizes_of(rows, table.n_columns, dtype), nystroem_map_cost(params, table.n_columns, dtype)
        passes = landmark_costs(sizes, of, compares=self.landmarks != "uniform", pilot=self.landmarks == "leverage")
        return make_plan(engine_for(rows.is_lazy, self.place), sizes, passes, calibrate)

    def plan(self, X: Any, y: Any = None, calibrate: bool = True) -> Plan:
        """What fit(X) will need: bytes and flops of its passes, and of whitening."""
        check_parameters(self)
        table = with_known_rows(read_inputs(clone(self), X, reset=True))
        params = {**parameters_of(self), "n_terms": START_TERMS}
        return self._plan(table, None, compute_dtype(table, self.dtype), params, calibrate)

    def set_map(self, features: NystroemMap) -> None:
        """Set the map and what follows from it."""
        self.features_, self.sigma_, self.landmark_rows_ = features, features.sigma, features.numbers
        self._n_features_out = features.n_features

    def _restored(self) -> None:
        super()._restored()
        self.set_map(self.features_)
