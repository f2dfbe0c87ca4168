"""GaborFeatures: how strongly waves of many directions and lengths stand out in a patch of an image."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from dkl.cost import Cost, MapCost
from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan, make_plan
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.fourier import draw_generator
from dkl.estimators.inputs import compute_dtype, read_inputs, read_weight
from dkl.estimators.map_transformer import MapTransformer
from dkl.estimators.registry import register
from dkl.estimators.restore import all_or_nothing
from dkl.features.gabor import GaborMap, gabor_cost
from dkl.learn.plan import sizes_of
from dkl.options.docstrings import documented
from dkl.options.fields import check_parameters, parameter
from dkl.prepare.gabor import draw_filters, filter_count, gabor_map, grid_of_filters, shape_of
from dkl.prepare.targets import sum_small
from dkl.sums.row_norms import NormProgram, RowNorms
from dkl.sums.tiles import tile_rows


@register
@documented
@dataclass(eq=False, repr=False)
class GaborFeatures(MapTransformer):
    """Gabor features of the grey patches in the rows of X: the grid of 81 filters, or filters at random.

    A filter is a wave under a bell, less its mean, so a constant patch has no response. Its feature is the sum of its
    absolute responses at a grid of positions, in units in which the squares of all features add up to at most one for
    a typical patch, whatever the unit of the pixels.
    """

    image_shape: Any = parameter("image_shape")
    n_components: Any = parameter(
        "n_components",
        None,
        takes="int",
        optional=True,
        about="Number of random filters.",
        doc="None: the grid of 81, 9 orientations at frequencies 0.1, 0.2 and 0.4 cycles for each pixel and widths of "
        "1, 2 and 4 pixels. Random filters have any orientation, a frequency from one cycle of the longer side to 1/2, "
        "and widths along and across the wave from 1 pixel to half the shorter side; both are log-uniform.",
    )
    _: KW_ONLY
    stride: int = parameter("stride")
    random_state: Any = parameter("random_state", doc="The grid does not depend on it.")
    dtype: Any = parameter("dtype")
    place: str = parameter("place")
    verbose: int = parameter("verbose")

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the filters; one pass over X for the norms of its rows."""
        check_parameters(self)
        table = with_known_rows(read_inputs(self, X, reset=True))
        weight, shape = read_weight(sample_weight, table), shape_of(self.image_shape, self.n_features_in_)
        self._plan(table, weight, compute_dtype(table, self.dtype)).check()
        norms = sum_small(NormProgram(), [table, weight], ["X", "sample_weight"], Progress(self.verbose))
        self._set_map(gabor_map(shape, int(self.stride), self._filters(shape), norms))
        return self

    def _filters(self, shape: tuple[int, int]) -> Any:
        """Parameters of the grid, or drawn."""
        if self.n_components is None:
            return grid_of_filters()
        return draw_filters(shape, int(self.n_components), draw_generator(self.random_state))

    def cost(self, inputs: int, dtype: np.dtype) -> MapCost:
        """What the map will cost."""
        shape = shape_of(self.image_shape, inputs)
        return gabor_cost(shape, int(self.stride), filter_count(self.n_components), dtype)

    def _plan(self, table: Table, weight: Table | None, dtype: np.dtype, calibrate: bool = False) -> Plan:
        """What features of these rows will need."""
        rows = Rows([table, weight], ["X", "sample_weight"])
        sizes, of = sizes_of(rows, table.n_columns, dtype), self.cost(table.n_columns, dtype)
        tile = tile_rows(sizes.rows, of.features, dtype)
        cost = Cost(
            "features", rows_wanted=tile, features=of.features, columns=of.columns,
            row_bytes=of.features * sizes.item, thread_bytes=of.scratch_bytes, parameter_bytes=of.parameter_bytes,
            flops=of.flops,
        )  # fmt: skip
        return make_plan(engine_for(rows.is_lazy, self.place), sizes, [cost], calibrate)

    def plan(self, X: Any, y: Any = None, calibrate: bool = True) -> Plan:
        """What features of X will need: bytes of the filters at all positions, and flops of one product with them."""
        check_parameters(self)
        table = with_known_rows(read_inputs(clone(self), X, reset=True))
        return self._plan(table, None, compute_dtype(table, self.dtype), calibrate)

    def map_for(self, tables: list[Table], names: tuple[str, ...], progress: Progress) -> GaborMap:
        """The fitted map, for sums over the table it was fitted to and over others."""
        seen: list[RowNorms] = [
            sum_small(NormProgram(name), [table], [name], progress)
            for name, table in list(zip(names, tables, strict=False))[1:]
        ]
        return replace(self.features_, largest=max(self.features_.largest, *(one.largest for one in seen), 0.0))

    def _set_map(self, features: GaborMap) -> None:
        self.features_, self._n_features_out = features, features.n_features

    def _restored(self) -> None:
        self._set_map(self.features_)
        self.n_features_in_ = self.features_.n_inputs
