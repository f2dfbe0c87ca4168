"""Cosine networks side by side: one product and one cosine for all, then scores, losses and gradients of each.

    A_s = sqrt(2 / D_s) cos(T Gam_s + b_s),   Z_s = A_s V_s + c_s,   dZ_s = w l'(Z_s)
    dV_s = A_s' dZ_s,   dc_s = dZ_s' 1,   P_s = -sqrt(2 / D_s) sin(T Gam_s + b_s) * (dZ_s V_s'),   dGam_s = T' P_s,
    db_s = P_s' 1

T are prepared rows of a Fourier map (features/fourier.py), l one of the losses. Every sum has a bound that the
parameters give before the pass, one for each candidate, so sums are exact and a candidate that grows without limit
does not coarsen the sums of the others.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.features.fourier import FourierMap
from dkl.losses import Loss, ScoreSizes, is_wrong
from dkl.sums.gram import SLACK
from dkl.sums.networks import ExactSums, Parameters, taken
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.targets import Targets

TILE_BYTES, LEAST_ROWS, MOST_ROWS = 2**20, 64, 512
"""Cosines that exist at the same time take about so much, and are of so many rows."""
MOST_SEEN = 16
"""Sets of rounders that a model remembers."""
NAMES = ("frequencies", "phase", "coef", "intercept")
"""Parameters: Gam / sigma (M, sum D), b (sum D,) in radians, V (sum D, c), c (S, c)."""


def tile_of(width: int, item: int) -> int:
    """Rows of a tile of so many cosines."""
    return int(max(LEAST_ROWS, min(MOST_ROWS, TILE_BYTES // (width * item))))


def network_cost(sizes: Sizes, of: MapCost, outputs: int, candidates: int = 1, gradient: bool = True) -> Cost:
    """What a pass costs: tiles of cosines, sines and their cotangents, and the gradients of all parameters."""
    d, c, item = of.features, max(1, outputs), sizes.item
    tile, numbers = tile_of(d, item), (of.columns + 1 + c) * d + c * candidates
    arrays = 3 if gradient else 1
    return Cost(
        "network",
        rows_wanted=tile,
        features=d,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=tile * (arrays * d * item + candidates * c * (item + 64)) + of.scratch_bytes
        + (item + 16) * numbers * gradient,
        sparse_bytes=tile * of.sparse_row_bytes,
        sums_bytes=8 * (numbers * gradient + 2 * candidates + 1),
        parameter_bytes=(16 + 2 * item) * numbers,
        flops=(of.flops + of.pull_flops if gradient else of.flops) + (6.0 if gradient else 2.0) * d * c,
        cosines=(2 if gradient else 1) * of.cosines,
    )  # fmt: skip


@dataclass(frozen=True)
class CosineModel:
    """What does not change while a bundle is trained: how rows are prepared, what the loss is, and the widths."""

    map: FourierMap  # in phase form; its frequencies are sigma times those of the parameters
    widths: tuple[int, ...]
    targets: Targets
    loss: Loss
    n_rows: int
    dtype: np.dtype
    input_size: np.ndarray  # (M,), root of the weighted sum of T_j^2
    seen: dict[Any, dict[str, np.ndarray]] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Only what cannot be made again travels."""
        own = self.map, self.widths, self.targets, self.loss, self.n_rows, self.dtype, self.input_size
        return CosineModel, own

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the cosines of each candidate begin, and the end."""
        return np.cumsum((0, *self.widths))

    @cached_property
    def column_owner(self) -> np.ndarray:
        """(sum D,): the candidate of each cosine."""
        return np.repeat(np.arange(len(self.widths)), self.widths)

    def map_of(self, parameters: Parameters) -> FourierMap:
        """The map with the frequencies and phases of all candidates."""
        at, turns = self.map, parameters["phase"] / (2 * np.pi)
        return FourierMap(at.kernel, parameters["frequencies"], at.sigma, turns, at.skew, at.form, at.additive)

    @cached_property
    def scales(self) -> np.ndarray:
        """(sum D, 1): sqrt(2 / D) of each cosine."""
        return np.asarray(np.sqrt(2.0 / np.repeat(self.widths, self.widths))[:, None])

    def rounders(self, scaled: np.ndarray, intercept: np.ndarray) -> dict[str, np.ndarray]:
        """Rounders of every sum at these weights; sizes go up to powers of two, so that few steps have others."""
        begin = self.starts[:-1]
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(scaled)
            scores = np.frexp(np.add.reduceat(size, begin).max(axis=1) + np.abs(intercept).max(axis=1))[1]
            across = np.frexp(np.maximum.reduceat(size.sum(axis=1), begin))[1]
        key = scores.tobytes(), across.tobytes()
        if key not in self.seen:
            if len(self.seen) >= MOST_SEEN:
                self.seen.clear()
            self.seen[key] = self._bounds(np.ldexp(1.0, scores), np.ldexp(1.0, across))
        return self.seen[key]

    def _bounds(self, scores: np.ndarray, across: np.ndarray) -> dict[str, np.ndarray]:
        """By candidate, from bounds of |z| and of |V_k|: |cos| <= 1, and sum w l'^2 <= 2 sup l'' sum w l."""
        targets, loss, c = self.targets, self.loss, self.targets.n_outputs
        w, owner, scale = targets.weight, self.column_owner, np.sqrt(2.0 / np.array(self.widths))
        sizes = [ScoreSizes(float(top), w, c, targets.absolute, targets.square) for top in scores]
        value = np.array([loss.most_value(one) for one in sizes])
        slope = np.array([np.broadcast_to(loss.most_slope(one), (c,)) for one in sizes])
        steep = loss.steepest(c)
        squares = np.minimum(w * c * steep**2 if np.isfinite(steep) else np.inf, 2 * loss.most_curved(c) * value)
        reach = np.sqrt(squares) * across
        # a product of bounds is below 2^a 2^b, so one outer product makes the grid of all frequencies
        grid = np.ldexp(1.0, np.frexp(np.where(self.input_size > 0, self.input_size, 1.0))[1])
        return {
            "loss": rounder(SLACK * value),
            "weight": rounder(SLACK * w),
            "intercept": rounder(SLACK * slope),
            "coef": rounder(SLACK * slope * scale[:, None])[owner],
            "phase": rounder(SLACK * np.sqrt(w) * reach)[owner],
            "frequencies": grid[:, None] * rounder(SLACK * reach)[owner if len(reach) > 1 else [0]],
        }


Workspace = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class CosineProgram:
    """The pass: a model and the parameters of its candidates in, ExactSums out."""

    model: CosineModel
    parameters: Parameters
    gradient: bool = True
    task = "network"
    blocks: Any = field(init=False, repr=False, compare=False)
    narrow: np.ndarray = field(init=False, repr=False, compare=False)  # scaled coef in the compute dtype
    bounds: dict[str, np.ndarray] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        model = self.model
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = self.parameters["coef"] * model.scales
            object.__setattr__(self, "narrow", np.ascontiguousarray(scaled, model.dtype))
            object.__setattr__(self, "bounds", model.rounders(scaled, self.parameters["intercept"]))
            object.__setattr__(self, "blocks", model.map_of(self.parameters).at(model.dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        """Only what cannot be made again travels."""
        return CosineProgram, (self.model, self.parameters, self.gradient)

    @property
    def outputs(self) -> int:
        return self.model.targets.n_outputs

    @property
    def rows_wanted(self) -> int:
        """Rows of a tile."""
        return tile_of(len(self.narrow), self.model.dtype.itemsize)

    def cost(self) -> Cost:
        """What the pass costs."""
        model = self.model
        sizes = Sizes(model.n_rows, model.map.n_inputs, model.dtype, self.outputs, model.targets.is_class)
        of = self.blocks.map.cost(model.dtype)
        return network_cost(sizes, of, self.outputs, len(model.widths), self.gradient)

    def start(self) -> ExactSums:
        """Zero."""
        S = len(self.model.widths)
        gradients = {name: np.zeros_like(self.parameters[name]) for name in NAMES} if self.gradient else {}
        return ExactSums(np.zeros(S), np.zeros(S), np.zeros(1), gradients)

    def workspace(self) -> Workspace:
        """Tiles of cosines, of sines, and of their cotangents."""
        d, dtype, tile = len(self.narrow), self.model.dtype, self.rows_wanted
        some = tile if self.gradient else 0
        return np.empty((tile, d), dtype), np.empty((some, d), dtype), np.empty((some, d), dtype)

    def add(self, sums: ExactSums, workspace: Workspace, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += prepared rows (T, y, weight)."""
        T, y, weight = data
        n = T.shape[0]
        parts = -(-n // self.rows_wanted)
        with np.errstate(over="ignore", invalid="ignore"):  # of a candidate that diverges, which the method sees
            for i in range(parts):
                rows = slice(i * n // parts, (i + 1) * n // parts)
                self._add_tile(sums, workspace, T[rows], y[rows], None if weight is None else weight[rows])

    def _add_tile(self, sums: ExactSums, space: Workspace, T: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        n, S, c = len(y), len(self.model.widths), self.outputs
        Psi, slope, Psi_bar = (array[:n] for array in space)
        self.blocks.write(T, Psi, slope if self.gradient else None)
        z = self._scores(Psi)
        codes = y if S == 1 else np.concatenate([y] * S)
        value = self.model.loss.value(z, codes)
        wrong = is_wrong(z, codes) if self.model.targets.is_class else np.zeros(n * S)
        ones = np.ones(n) if weight is None else weight
        add_exactly(sums.loss, value.reshape(S, n) @ ones, self.bounds["loss"])
        add_exactly(sums.wrong, wrong.reshape(S, n) @ ones, self.bounds["weight"])
        add_exactly(sums.weight, ones.sum(keepdims=True), self.bounds["weight"])
        if not self.gradient:
            return
        left = self.model.loss.slope(z, codes).reshape(S, n, c)
        if weight is not None:
            left = left * weight[:, None]
        add_exactly(sums.gradients["intercept"], left.sum(axis=1), self.bounds["intercept"])
        self._pull(sums, T, Psi, slope, Psi_bar, left.astype(Psi.dtype))

    def _scores(self, Psi: np.ndarray) -> np.ndarray:
        """Scores (S n, c) in float64, candidate by candidate."""
        starts, intercept = self.model.starts, self.parameters["intercept"]
        if len(intercept) == 1:
            return np.asarray(np.matmul(Psi, self.narrow).astype(np.float64) + intercept[0])
        z = np.empty((len(intercept), len(Psi), self.outputs))
        for s, (low, high) in enumerate(itertools.pairwise(starts)):
            np.add(Psi[:, low:high] @ self.narrow[low:high], intercept[s], out=z[s])
        return z.reshape(-1, self.outputs)

    def _pull(
        self, sums: ExactSums, T: Any, Psi: np.ndarray, slope: np.ndarray, Psi_bar: np.ndarray, left: np.ndarray
    ) -> None:
        """Gradients of coef, frequencies and phases; Psi and Psi_bar are used up."""
        starts, gradients, bounds = self.model.starts, sums.gradients, self.bounds
        coef_bar = np.empty(self.narrow.shape, Psi.dtype)
        for s, (low, high) in enumerate(itertools.pairwise(starts)):
            scale = Psi.dtype.type(np.sqrt(2.0 / (high - low)))
            np.matmul(Psi[:, low:high].T, left[s] * scale, out=coef_bar[low:high])
            np.matmul(left[s], self.narrow[low:high].T, out=Psi_bar[:, low:high])
        add_exactly(gradients["coef"], coef_bar, bounds["coef"])
        pulled = self.blocks.pull(T, Psi, slope, Psi_bar, ("unit", "phase"))
        add_exactly(gradients["frequencies"], pulled["unit"], bounds["frequencies"])
        add_exactly(gradients["phase"], pulled["phase"], bounds["phase"])


@dataclass(frozen=True)
class CosineNetworks:
    """Candidates of one model with what each may do: decay of the frequencies, and a cap on their norms."""

    model: CosineModel
    start: Parameters
    decay: np.ndarray  # (S,)
    cap: np.ndarray  # (S,), the largest norm of a frequency; inf: none
    fit_intercept: bool = True

    @property
    def count(self) -> int:
        """Candidates."""
        return len(self.model.widths)

    @cached_property
    def owner(self) -> Parameters:
        """Whose each number is."""
        column, each = self.model.column_owner, np.arange(self.count)[:, None]
        return {"frequencies": column[None, :], "phase": column, "coef": column[:, None], "intercept": each}

    def program(self, parameters: Parameters, gradient: bool = True) -> CosineProgram:
        """The pass at these parameters."""
        return CosineProgram(self.model, parameters, gradient)

    def bent(self, parameters: Parameters, gradients: Parameters) -> Parameters:
        """sigma dGam + decay Gam; an intercept that is not fitted stays."""
        gradients["frequencies"] *= self.model.map.wide_sigma[:, None]
        if self.decay.any():
            gradients["frequencies"] += self.decay[self.model.column_owner] * parameters["frequencies"]
        if not self.fit_intercept:
            gradients["intercept"][...] = 0.0
        return gradients

    def allowed(self, parameters: Parameters) -> Parameters:
        """Frequencies no longer than the cap of their candidate."""
        if np.isinf(self.cap).all():
            return parameters
        frequencies, squares = parameters["frequencies"], self.model.map.wide_sigma**2
        norm = np.sqrt(np.einsum("jk,jk,j->k", frequencies, frequencies, squares))
        most = self.cap[self.model.column_owner]
        far = norm > most
        if far.any():
            frequencies[:, far] *= most[far] / norm[far]
        return parameters

    def taken(self, candidates: np.ndarray) -> CosineNetworks:
        """These candidates alone."""
        model = replace(self.model, widths=tuple(self.model.widths[s] for s in candidates), seen={})
        start = taken(self.start, self.owner, candidates)
        return CosineNetworks(model, start, self.decay[candidates], self.cap[candidates], self.fit_intercept)
