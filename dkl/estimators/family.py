"""A linear model of the features of one kernel: the map of an estimator's parameters, drawn or of landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.estimators.fitted import KERNEL, restored_map
from dkl.estimators.fourier import KernelMixin
from dkl.estimators.input_info import set_extent
from dkl.estimators.linear_family import Given, Linear, LinearFamily
from dkl.estimators.stored import Stored
from dkl.kernels import is_for_histograms
from dkl.learn.plan import fourier_map_cost, landmark_costs, nystroem_map_cost
from dkl.learn.run import Limits
from dkl.options.fields import parameter, parameters_of
from dkl.prepare.draw import check_map, draw
from dkl.prepare.landmarks import draw_landmarks
from dkl.prepare.prepared import Prepared
from dkl.prepare.saved_map import Drawn
from dkl.prepare.targets import sum_small
from dkl.sums.tree import TreeProgram

__all__ = ["Given", "KernelFamily", "Linear"]


@dataclass(eq=False, repr=False)
class KernelFamily(KernelMixin, LinearFamily):
    """A linear model of the features of a kernel."""

    FITTED: ClassVar[dict[str, Stored]] = KERNEL

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
    max_iter: int = parameter("max_iter")
    tol: float = parameter("tol")
    max_time: float | None = parameter("max_time")

    def _restored(self) -> None:
        super()._restored()
        restored_map(self)

    @property
    def _needs_squares(self) -> bool:
        """Whether a gradient in sigma is wanted, whose bounds need the squares of the inputs."""
        return False

    def _check_inputs(self, X: Table) -> None:
        super()._check_inputs(X)
        check_map(parameters_of(self), X.n_columns, X.input_coords)

    def _limits(self) -> Limits:
        return Limits(int(self.max_iter), float(self.tol), None if self.max_time is None else float(self.max_time))

    def _map_cost(self, sizes: Sizes) -> MapCost:
        """What the map will cost, before it is drawn."""
        cost = fourier_map_cost if self.landmarks is None else nystroem_map_cost
        return cost(parameters_of(self), sizes.inputs, sizes.dtype)

    def _other_costs(self, sizes: Sizes) -> list[Cost]:
        """What the passes that draw landmarks cost, beside others; frequencies need none."""
        others = [*super()._other_costs(sizes)]
        if self.landmarks is None:
            return others
        compares, pilot = self.landmarks != "uniform", self.landmarks == "leverage"
        return others + landmark_costs(sizes, self._map_cost(sizes), compares=compares, pilot=pilot)

    def _drawn_params(self) -> dict[str, Any]:
        return parameters_of(self)

    def _drawing(
        self, given: Given, dtype: np.dtype, rng: np.random.Generator, progress: Progress
    ) -> Callable[[], Drawn]:  # fmt: skip
        params = self._drawn_params()

        def moments(program: TreeProgram) -> Any:
            return sum_small(program, [given.X, given.weight], ["X", "sample_weight"], progress)

        def make() -> Drawn:
            if params["landmarks"] is not None:
                features, index = draw_landmarks(params, given.X, given.weight, dtype, rng, progress)
                return features, index, int(rng.integers(2**62)), np.empty(0), None
            return draw(params, self.n_features_in_, given.X.input_coords, rng, moments, self._needs_squares)

        return make

    def _set_map(self, data: Prepared) -> None:
        self.groups_, self.sigma_ = data.groups, data.features.sigma
        set_extent(self, data.extent)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = is_for_histograms(self.kernel)
        return tags
