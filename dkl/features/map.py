"""What a feature map is to a pass: psi(x) = scale write(prepare(x)), and its pullback.

    |write| <= sqrt2                                           so sums of features have a bound
    pull(T, Psi, slope, Psi_bar) = (dPsi/dp)' Psi_bar          for every parameter p that is wanted

A map is a frozen record of parameters; `at(dtype)` gives the form in which blocks are computed. `pull` sees one tile of
rows. Constants that multiply the sum over all rows are left to `gradients`, which is called once, after the pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike

from dkl.cost import MapCost
from dkl.kernels import Kernel

Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]
"""Arrays by name, with the names of their dimensions."""


class FeatureMap(Protocol):
    """A frozen record of parameters."""

    kind: ClassVar[str]

    @property
    def n_inputs(self) -> int:
        """Columns of X that the map needs."""

    @property
    def n_columns(self) -> int:
        """Columns of prepared rows T; for several channels, of all of them together."""

    @property
    def n_features(self) -> int: ...

    @property
    def scale(self) -> float: ...

    def cost(self, dtype: Any) -> MapCost:
        """What the map costs in blocks of that dtype."""

    @property
    def column_group(self) -> np.ndarray:
        """(d,): the number of the kernel or channel that a feature belongs to."""

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """What a gradient may move, by name."""

    def with_parameters(self, **new: np.ndarray) -> Self:
        """The map with other values of the named parameters."""

    def gradients(self, pulled: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Gradients in the parameters, from sums over rows of what `Blocks.pull` gave."""

    def pull_bounds(
        self, input_size: np.ndarray, reach: np.ndarray, weight: float, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Bounds of |sum over rows of pull|, by name.

        input_size (columns of T,): root of sum w T_j^2; reach (d,): root of sum Psi_bar_k^2 / w; weight: sum w.
        """

    def at(self, dtype: DTypeLike) -> Blocks:
        """The map ready to be applied to blocks of that dtype."""

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and named arrays from which features/stored.py makes the map again."""


class KernelMap(FeatureMap, Protocol):
    """A map of one kernel, with a sigma for each input."""

    @property
    def kernel(self) -> Kernel: ...

    @property
    def sigma(self) -> np.ndarray: ...


class Blocks(Protocol):
    """The form of a map in which blocks are computed."""

    @property
    def map(self) -> FeatureMap: ...

    @property
    def dtype(self) -> np.dtype: ...

    @property
    def slope_columns(self) -> int:
        """Columns of scratch that `write` fills for `pull` beside the features."""

    def prepare(self, X: Any) -> Any:
        """Rows in the compute dtype, checked; they can be sliced."""

    def write(self, T: Any, out: np.ndarray, slope: np.ndarray | None = None) -> None:
        """Features of prepared rows, without their scale; what `pull` needs beside them into slope, if it is given."""

    def pull(
        self, T: Any, Psi: np.ndarray, slope: np.ndarray, Psi_bar: np.ndarray, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """What these rows add to the gradients of <Psi_bar, Psi>, in the shapes of the wanted parameters.

        Psi and slope are as `write` left them; Psi and Psi_bar are used up.
        """


class Parametrised(Protocol):
    """What has named parameters."""

    kind: ClassVar[str]

    @property
    def parameters(self) -> Mapping[str, np.ndarray]: ...


def check_parameters(features: Parametrised, names: tuple[str, ...]) -> None:
    """Refuse names that are not parameters of the map."""
    known = tuple(features.parameters)
    for name in names:
        if name not in known:
            choice = f"use {', '.join(map(repr, known))}" if known else "nothing of it can be learned"
            raise ValueError(f"a {features.kind} map has no parameter {name!r}; {choice}")


class Fixed:
    """The part of a map whose parameters no gradient moves."""

    kind: ClassVar[str]

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """Nothing."""
        return {}

    def with_parameters(self, **new: np.ndarray) -> Self:
        """The map itself; any name is refused."""
        check_parameters(self, tuple(new))
        return self

    def gradients(self, pulled: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def pull_bounds(
        self, input_size: np.ndarray, reach: np.ndarray, weight: float, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Nothing; any name is refused."""
        check_parameters(self, wanted)
        return {}


class FixedBlocks:
    """Blocks of a map without parameters."""

    slope_columns = 0
    map: Parametrised

    def pull(
        self, T: Any, Psi: np.ndarray, slope: np.ndarray, Psi_bar: np.ndarray, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Nothing; any name is refused."""
        check_parameters(self.map, wanted)
        return {}
