"""NystroemFeatures: phi(x) = k(x, L) K_LL^(-1/2) with landmarks L among the rows, where Nystroem would stand."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone

from dkl.checks import check_choice
from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan, make_plan
from dkl.engine.progress import Progress
from dkl.engine.reduce import PLACES, engine_for
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.fourier import MapFeatures, draw_generator
from dkl.estimators.inputs import compute_dtype, read_inputs, read_weight
from dkl.estimators.restore import all_or_nothing
from dkl.features.landmark_weights import LANDMARKS
from dkl.features.nystroem import NystroemMap
from dkl.learn.plan import landmark_costs, nystroem_map_cost, sizes_of
from dkl.prepare.draw import check_map
from dkl.prepare.landmarks import START_TERMS, draw_landmarks


class NystroemFeatures(MapFeatures):
    """Features of a kernel that are exact at some rows, the landmarks; any kernel of the library.

    Parameters
    ----------
    kernel : gaussian, laplacian, matern12 ... : the names that FourierFeatures takes; here they are the kernels
        themselves, without frequencies or terms.
    n_components : number of landmarks. There are fewer features if some add nothing but rounding (eigenvalues below
        1e-12 of the largest, 1e-6 for float32).
    landmarks : how rows are drawn: "uniform" (one pass over X); "kmeans++" (five passes, each drawing rows far from
        the landmarks before); "leverage" (three passes, rows by the ridge leverage that a uniform pilot estimates).
        A row's chance is multiplied by its sample_weight.
    sigma, groups, skew : the kernel, as in FourierFeatures.
    random_state : seed of the draw, which depends on row numbers alone if it is uniform, whatever the blocks are.
    dtype : "float32" or "float64"; None follows the input.
    place : where a cluster whitens, "scheduler" or "client".
    verbose : 0 for no progress line.

    Attributes
    ----------
    features_ : the map, with landmarks in the kernel's variables; landmark_rows_ : which rows of X they were.
    sigma_, groups_ : sigma and group of each input.
    """

    def __init__(
        self,
        kernel: str = "gaussian",
        n_components: int = 100,
        *,
        landmarks: str = "uniform",
        sigma: Any = "scale",
        groups: Any = None,
        skew: float = 1.0,
        random_state: Any = None,
        dtype: Any = None,
        place: str = "scheduler",
        verbose: int = 1,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.sigma = sigma
        self.groups = groups
        self.skew = skew
        self.random_state = random_state
        self.dtype = dtype
        self.place = place
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the landmarks and whiten them; another look at X if sigma="scale", two for an exponentiated kernel."""
        table = with_known_rows(read_inputs(self, X, reset=True))
        weight = read_weight(sample_weight, table)
        dtype, params = compute_dtype(table, self.dtype), {**self.get_params(deep=False), "n_terms": START_TERMS}
        self._plan(table, weight, dtype, params).check()
        rng = draw_generator(self.random_state)
        features, self.groups_ = draw_landmarks(params, table, weight, dtype, rng, Progress(self.verbose))
        self.set_map(features)
        return self

    def _plan(
        self, table: Table, weight: Table | None, dtype: np.dtype, params: dict, calibrate: bool = False
    ) -> Plan:  # fmt: skip
        """What the passes over these rows will need; what no rows could make right is refused."""
        check_choice("landmarks", self.landmarks, LANDMARKS)
        check_choice("place", self.place, PLACES)
        check_map(params, table.n_columns, table.input_coords)
        rows = Rows([table, weight], ["X", "sample_weight"])
        sizes, of = sizes_of(rows, table.n_columns, dtype), nystroem_map_cost(params, table.n_columns, dtype)
        passes = landmark_costs(sizes, of, compares=self.landmarks != "uniform", pilot=self.landmarks == "leverage")
        return make_plan(engine_for(rows.is_lazy, self.place), sizes, passes, calibrate)

    def plan(self, X: Any, calibrate: bool = True) -> Plan:
        """What fit(X) will need: bytes and flops of its passes, and of whitening."""
        table = with_known_rows(read_inputs(clone(self), X, reset=True))
        params = {**self.get_params(deep=False), "n_terms": START_TERMS}
        return self._plan(table, None, compute_dtype(table, self.dtype), params, calibrate)

    def set_map(self, features: NystroemMap) -> None:
        """Take a map as one's own."""
        self.features_, self.sigma_, self.landmark_rows_ = features, features.sigma, features.numbers
        self._n_features_out = features.n_features
