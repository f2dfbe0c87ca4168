"""FeaturePCA: (psi(x) - mean) U, the principal axes of a feature map from a pass or two that store no features."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from dkl.engine.apply import apply_rows
from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, put_together, with_known_rows
from dkl.estimators.estimator import Estimator
from dkl.estimators.fitted import INPUTS, restored_map
from dkl.estimators.fourier import FourierFeatures
from dkl.estimators.inputs import compute_dtype, read_inputs
from dkl.estimators.registry import register
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.stored import Array, Map, Stored, count_labels, range_of
from dkl.estimators.transformers import NAMES, channels_of, check_transformer, cost_of, draw_channels, map_of, width_of
from dkl.estimators.written import write_features
from dkl.features.projected import ProjectedMap, projected_cost
from dkl.features.side_by_side import side_by_side_cost
from dkl.learn.channels import learn_channel_axes
from dkl.learn.model import Transform
from dkl.learn.pca import Principal, learn_axes
from dkl.learn.plan import plan_axes
from dkl.options import rules
from dkl.options.docstrings import documented
from dkl.options.fields import check_parameters, parameter
from dkl.prepare.scales import group_index


def _refuse_more(name: str, wanted: Any, most: int, of: str) -> None:
    """Refuse more axes than there are."""
    if wanted is not None and not isinstance(wanted, str) and wanted > most:
        raise ValueError(f"{name}={wanted} axes of {of}; keep fewer, or make more features")


class _Sizes(NamedTuple):
    """The channel of each input, inputs and width of each channel, and the axes wanted and (if known) kept of them."""

    index: Any
    inputs: tuple[int, ...]
    widths: tuple[int, ...]
    wanted: Any
    kept: int | None


@register
@documented
@dataclass(eq=False, repr=False)
class FeaturePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Principal axes of a feature map, from a pass or two that store no features."""

    FITTED: ClassVar[dict[str, Stored]] = {
        **INPUTS,
        "channels_": Array(
            "Channel of each input, if there are several.", ("input",), optional=True, tells=count_labels
        ),
        "features_": Map("The feature map; features of all channels stand side by side."),
        "sigma_": Stored("Sigma of each input, if the features have one.", tells=range_of),
        "groups_": Array("Group of each input, likewise.", ("input",), optional=True, tells=count_labels),
        "components_": Array(
            "Principal axes (axes, features), as in PCA up to sign.", ("axis", "component"), told=False
        ),
        "mean_": Array("Mean of the features.", ("component",), told=False),
        "explained_variance_": Array("Variance along each axis.", ("axis",), name="variance", told=False),
        "explained_variance_ratio_": Array(
            "Its share of the total variance.",
            ("axis",),
            name="variance_ratio",
            tells=lambda share: float(np.sum(share)),
        ),
        "n_components_": Stored("Number of axes."),
    }

    features: Any = parameter("features")
    n_components: float | str = parameter(
        "n_components",
        0.9,
        takes='int, float or "mle"',
        rule=rules.axes,
        about="Number of principal axes.",
        doc='A number of axes, the share of variance they must explain (below 1), or "mle": Minka\'s evidence '
        "decides, as in scikit-learn's PCA; for n <= d rows it considers the n - 1 axes that they have. Axes that are "
        "rounding (below 1e-12 of the first one's variance, 1e-6 for float32) are never kept.",
    )
    _: KW_ONLY
    channels: Any = parameter("channels")
    per_channel: float | str | None = parameter("per_channel")
    place: str = parameter("place")
    verbose: int = parameter("verbose")

    @property
    def _inner(self) -> Any:
        """The transformer whose features they are."""
        return FourierFeatures() if self.features is None else self.features

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, *, X_unlabelled: Any = None) -> Self:
        """Find the axes in one pass over X, and one before it if the map needs one; X_unlabelled helps to find them."""
        self._check()
        given = {"X": X} if X_unlabelled is None else {"X": X, "X_unlabelled": X_unlabelled}
        tables = [with_known_rows(read_inputs(self, given[n], reset=n == "X", name=n)) for n in NAMES if n in given]
        rows = self._rows(tables)
        dtype, progress = compute_dtype(tables[0], self._inner.dtype), Progress(self.verbose)
        engine = engine_for(any(table.is_lazy for table in tables), self.place)
        learn = self._learn_map if self.channels is None else self._learn_channels
        found = learn(engine, put_together(X, tables[0]), tables, rows, dtype, progress)
        self.mean_, self.components_ = found.mean, np.ascontiguousarray(found.axes.T)
        self.explained_variance_ = found.variances
        self.explained_variance_ratio_ = found.variances / found.total if found.total > 0 else found.variances
        self.n_components_ = self._n_features_out = len(found.variances)
        return self

    def _check(self) -> None:
        """Refuse parameters before any row is read."""
        check_parameters(self)
        check_transformer(self._inner)

    def _learn_map(
        self, engine: Engine, X: Any, tables: list[Table], rows: dict[str, Rows], dtype: np.dtype, progress: Progress
    ) -> Principal:
        """One map of all inputs, one pass."""
        for plan in self._plans(engine, rows, self._sizes(tables[0]), dtype):
            plan.check()
        drawn = clone(self._inner).set_params(verbose=self.verbose).fit(X)
        self._set_map(map_of(drawn, tables, progress), drawn)
        return learn_axes(engine, rows, self.features_, dtype, self.n_components, progress)

    def _learn_channels(
        self, engine: Engine, X: Any, tables: list[Table], rows: dict[str, Rows], dtype: np.dtype, progress: Progress
    ) -> Principal:
        """A map for each channel, two passes."""
        sizes = self._sizes(tables[0])
        for plan in self._plans(engine, rows, sizes, dtype):
            plan.check()
        fresh = clone(self._inner).set_params(verbose=self.verbose)
        self._set_map(draw_channels(fresh, tables, sizes.index, progress))
        self.channels_ = sizes.index

        def promise(kept: int) -> None:
            self._second_plan(engine, rows, sizes, dtype, kept).check()

        return learn_channel_axes(
            engine, rows, self.features_, dtype, self.n_components, sizes.wanted, progress, promise
        )

    def _sizes(self, table: Table) -> _Sizes:
        """How wide the features of each channel are; more axes than there are features are refused."""
        m = self.n_features_in_
        if self.channels is None:
            if self.per_channel is not None:
                raise ValueError(
                    f"per_channel={self.per_channel!r} needs channels; say which inputs belong together: "
                    "channels=[0, 0, 1]"
                )
            d = width_of(self._inner, m)
            _refuse_more("n_components", self.n_components, d, f"{d} features")
            return _Sizes(None, (m,), (d,), None, None)
        index = group_index(self.channels, m, table.input_coords, "channels")
        inputs = tuple(len(channel) for channel in channels_of(index))
        widths = tuple(width_of(self._inner, count) for count in inputs)
        wanted = self.n_components if self.per_channel is None else self.per_channel
        _refuse_more("per_channel", self.per_channel, max(widths), f"at most {max(widths)} features of a channel")
        counted = not isinstance(wanted, str) and wanted >= 1
        most = sum(min(width, int(wanted)) if counted else width for width in widths)
        _refuse_more("n_components", self.n_components, most, f"{most} of all channels")
        return _Sizes(index, inputs, widths, wanted, most if counted else None)

    def _plans(
        self, engine: Engine, rows: dict[str, Rows], sizes: _Sizes, dtype: np.dtype, calibrate: bool = False
    ) -> list[Plan]:  # fmt: skip
        """What each pass of known size will need."""
        maps = [cost_of(self._inner, inputs, dtype) for inputs in sizes.inputs]
        first = plan_axes(engine, rows.values(), self.n_features_in_, dtype, maps, calibrate)
        if sizes.kept is None:
            return [first]
        return [first, self._second_plan(engine, rows, sizes, dtype, sizes.kept, calibrate)]

    def _second_plan(
        self, engine: Engine, rows: dict[str, Rows], sizes: _Sizes, dtype: np.dtype, kept: int, calibrate: bool = False
    ) -> Plan:  # fmt: skip
        """What the pass along the axes of all channels will need."""
        shares = np.diff(np.arange(len(sizes.inputs) + 1) * kept // len(sizes.inputs)).tolist()
        maps = zip(sizes.inputs, shares, strict=True)
        own = [projected_cost(cost_of(self._inner, inputs, dtype), share, dtype) for inputs, share in maps]
        return plan_axes(engine, rows.values(), self.n_features_in_, dtype, [side_by_side_cost(own)], calibrate)

    def plan(self, X: Any, y: Any = None, calibrate: bool = True) -> Plan:
        """What the largest pass of fit(X) will need; with channels and an unknown number of axes, the first pass."""
        self._check()
        fresh = clone(self)
        table = with_known_rows(read_inputs(fresh, X, reset=True))
        engine, dtype = engine_for(table.is_lazy, self.place), compute_dtype(table, self._inner.dtype)
        plans = fresh._plans(engine, fresh._rows([table]), fresh._sizes(table), dtype, calibrate)
        return max(plans, key=lambda plan: plan.tightness)

    def _rows(self, tables: list[Table]) -> dict[str, Rows]:
        """Rows of the passes, by name."""
        found = {name: Rows([table], [name]) for name, table in zip(NAMES, tables, strict=False)}
        n = sum(rows.n_rows for rows in found.values())
        if n < 2:
            raise ValueError(f"X has {n} row(s) (n_samples={n}); axes need at least two")
        return found

    def _set_map(self, features: Any, drawn: Any = None) -> None:
        """Set features_, and the sigma and groups of a transformer of all inputs."""
        self.features_ = features
        for name in ("sigma_", "groups_", "channels_"):
            if hasattr(drawn, name):
                setattr(self, name, getattr(drawn, name))
            elif hasattr(self, name):
                delattr(self, name)

    def transform(self, X: Any) -> Any:
        """Features along the axes (n, n_components_): numpy for numpy, lazy for Dask, labelled for xarray."""
        table, function = self._transforming(X)
        return apply_rows("transform", function, table, self.n_components_, function.features.dtype)

    def _transforming(self, X: Any) -> tuple[Table, Transform]:
        """The rows, and the block function."""
        check_is_fitted(self, "components_")
        table = read_inputs(self, X, reset=False)
        projected = ProjectedMap(self.features_, self.mean_, self.components_.T)
        return table, Transform(projected.at(compute_dtype(table, self._inner.dtype)))

    def transform_to(self, X: Any, path: Any, overwrite: bool = False) -> int:
        """Features along the axes to the Zarr group `path`, as `dkl.FourierFeatures.transform_to` writes them."""
        table, function = self._transforming(X)
        args = (self.n_components_, function.features.dtype, os.fspath(path), overwrite)
        return write_features(table, function, *args, Progress(self.verbose).name("transforming"))

    def _map_params(self, stored: dict[str, Any]) -> dict[str, Any]:
        return self._inner.get_params(deep=False)

    def _restored(self) -> None:
        if hasattr(self, "channels_"):
            self.n_features_in_ = len(self.channels_)
        elif hasattr(self, "groups_"):
            restored_map(self)
        else:
            self.n_features_in_ = self.features_.n_inputs
        axes, mean, variance, ratio, d = (
            self.components_, self.mean_, self.explained_variance_, self.explained_variance_ratio_,
            self.features_.n_features,
        )  # fmt: skip
        if axes.shape != (len(variance), d) or mean.shape != (d,) or ratio.shape != variance.shape:
            raise ValueError(f"components has shape {axes.shape} for {d} features")
        self.n_components_ = self._n_features_out = len(axes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self._inner.__sklearn_tags__().input_tags.positive_only
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
