"""The path of a fitted model as labelled arrays, and the weights of any point of it.

    path_       alpha x group: norm |w_g|, error of each fold, gap (the certificate), active, objective, intercept
    path_coef_  weights of the features of the groups that are used, one alpha after the other
    kernel_weights_   d = |w_g| / sqrt 2, channel x kernel: the weights of the same model in GMKL

With by_output every output has a path of its own, and alpha is a coordinate of (output, step).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dkl.learn.group_path import AlphaPath, chosen_lams

NEAR = 1e-6
"""Relative difference of two numbers that are the same alpha."""
MEANINGS = {
    "norm": "|w_g| over the features of a group and all outputs",
    "gap": "duality gap (of other losses the KKT residual) over that of zero weights",
    "objective": "penalised loss over the weight of all rows",
    "active": "number of groups that are used",
    "intercept": "intercept",
    "error": "mean squared error (of other losses the mean loss) on each fold, by the weights of the others",
}


class GroupNames(NamedTuple):
    """Channels and kernels; group g is kernel g % K of channel g // K."""

    channels: tuple[str, ...]
    kernels: tuple[str, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """One name for each group, without what is the same for all."""
        if len(self.channels) == 1:
            return self.kernels
        if len(self.kernels) == 1:
            return self.channels
        return tuple(f"{channel} {kernel}" for channel, kernel in product(self.channels, self.kernels))


def path_dataset(paths: Sequence[AlphaPath], names: GroupNames, outputs: np.ndarray) -> Any:
    """path_ of one path, or of one for each output."""
    import xarray as xr

    own = len(paths) > 1
    at = ("output", "step") if own else ("alpha",)

    def together(values: list[np.ndarray]) -> np.ndarray:
        return np.stack(values) if own else values[0]

    def column(name: str, *dims: str) -> tuple[Any, ...]:
        field = {"norm": "norms", "error": "errors", "intercept": "intercepts"}.get(name, name)
        if name == "active":
            values = [np.array([len(groups) for groups in path.active]) for path in paths]
        else:
            values = [np.asarray(getattr(path, field)) for path in paths]
        found = together([v[:, 0] for v in values] if own and name == "intercept" else values)
        return (*at, *dims), found, {"long_name": MEANINGS[name]}

    columns = {"norm": column("norm", "group"), "gap": column("gap"), "active": column("active")}
    columns["objective"] = column("objective")
    columns["intercept"] = column("intercept") if own else column("intercept", "output")
    if paths[0].errors is not None:
        columns["error"] = column("error", "fold")
    pairs = list(product(names.channels, names.kernels))
    coords = {
        "alpha": (at, together([path.alphas for path in paths])),
        "group": np.array(names.groups, np.str_),
        "channel": ("group", np.array([channel for channel, _ in pairs], np.str_)),
        "kernel": ("group", np.array([kernel for _, kernel in pairs], np.str_)),
        "output": outputs,
    }
    return xr.Dataset(columns, coords=coords)


def packed(paths: Sequence[AlphaPath]) -> np.ndarray:
    """path_coef_: the weights of every path, alpha after alpha."""
    return np.concatenate([np.empty(0), *(weights.ravel() for path in paths for weights in path.weights)])


class PathPoints:
    """A path as it was kept, with one row for each path: (paths, alphas, ...)."""

    def __init__(self, path: Any, coef: np.ndarray, column_group: np.ndarray) -> None:
        self.own = "step" in path.dims
        self.alphas, self.norms, intercepts = (np.asarray(path[name]) for name in ("alpha", "norm", "intercept"))
        self.errors = np.asarray(path["error"]) if "error" in path else None
        self.outputs = int(path.sizes["output"])
        if not self.own:
            self.alphas, self.norms, intercepts = self.alphas[None], self.norms[None], intercepts[None]
            self.errors = None if self.errors is None else self.errors[None]
        self.intercepts = intercepts.reshape(*self.alphas.shape, -1)
        self.coef, self.column_group = coef, column_group
        wide = np.bincount(column_group, minlength=self.norms.shape[2])
        sizes = (self.norms > 0) @ wide * self.intercepts.shape[2]
        ends = np.cumsum(sizes)
        self.begins, self.total = (ends - sizes.ravel()).reshape(sizes.shape), int(ends[-1])
        self.sizes = sizes

    def step(self, alpha: Any) -> np.ndarray:
        """The place of an alpha, or of "best", "one_se" and "last", on each path."""
        if isinstance(alpha, str):
            return np.array([self._named(alpha, p) for p in range(len(self.alphas))])
        wanted = self._numbers(alpha)
        found = np.abs(np.log(self.alphas / wanted[:, None])).argmin(axis=1)
        near = self.alphas[np.arange(len(found)), found]
        if (np.abs(near - wanted) > NEAR * near).any():
            p = int(np.argmax(np.abs(near - wanted) > NEAR * near))
            raise ValueError(
                f"alpha={wanted[p]:g} is not on the path, whose nearest is {float(near[p])}; use one of path_.alpha, "
                "or fit with a list of alphas"
            )
        return np.asarray(found)

    def _numbers(self, alpha: Any) -> np.ndarray:
        """alpha as one number above 0 for each path."""
        try:
            wanted = np.broadcast_to(np.asarray(alpha, float), len(self.alphas))
        except (TypeError, ValueError):
            wanted = np.zeros(1)
        if not ((wanted > 0) & np.isfinite(wanted)).all():
            each = f", or {len(self.alphas)} of them, one for each output" if self.own else ""
            raise ValueError(
                f"alpha={alpha!r} is not a point of this path; use a number of path_.alpha{each}, or a rule, e.g. "
                "'best'"
            )
        return wanted

    def _named(self, rule: str, p: int) -> int:
        """The place that a rule has chosen on one path."""
        if rule == "last":
            return self.alphas.shape[1] - 1
        if rule not in ("best", "one_se") or self.errors is None:
            known = "'last' or an alpha of path_.alpha" if self.errors is None else "'best', 'one_se', 'last'"
            raise ValueError(f"alpha={rule!r} is not a point of this path; use {known}")
        return chosen_lams(self.errors[p])[rule == "one_se"]

    def weights(self, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """coef (d, outputs) and intercepts of a place on each path."""
        c = self.intercepts.shape[2]
        coef, intercept = np.zeros((len(self.column_group), self.outputs)), np.zeros(self.outputs)
        for p, i in enumerate(step.tolist()):
            outputs = slice(p, p + 1) if self.own else slice(0, c)
            on = np.isin(self.column_group, np.flatnonzero(self.norms[p, i]))
            begin = int(self.begins[p, i])
            coef[on, outputs] = self.coef[begin : begin + int(self.sizes[p, i])].reshape(-1, c)
            intercept[outputs] = self.intercepts[p, i]
        return coef, intercept


def kernel_weights(norms: np.ndarray, names: GroupNames, outputs: np.ndarray | None) -> Any:
    """kernel_weights_ of norms (paths, groups); outputs: of each path, None if there is one path."""
    import xarray as xr

    shape = (len(names.channels), len(names.kernels))
    d = norms / np.sqrt(2.0)
    coords: dict[str, Any] = {
        "channel": np.array(names.channels, np.str_), "kernel": np.array(names.kernels, np.str_)
    }  # fmt: skip
    if outputs is None:
        return xr.DataArray(d.reshape(shape), dims=("channel", "kernel"), coords=coords)
    return xr.DataArray(
        d.reshape(-1, *shape), dims=("output", "channel", "kernel"), coords={"output": outputs, **coords}
    )


def names_of(weights: Any) -> GroupNames:
    """The names of channels and kernels, from labelled weights."""
    return GroupNames(*(tuple(map(str, weights[dim].values.tolist())) for dim in ("channel", "kernel")))


def weights_in_words(weights: Any) -> dict[str, float]:
    """The kernels that are used, the largest weight first (of all outputs)."""
    names, largest = names_of(weights).groups, weights.values
    total = (largest if largest.ndim == 2 else largest.max(axis=0)).ravel()
    order = np.argsort(-total, kind="stable")
    return {names[g]: float(f"{total[g]:.4g}") for g in order.tolist() if total[g] > 0}
