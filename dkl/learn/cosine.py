"""Cosine networks from prepared data: where each candidate begins, and the linear model that it comes to.

    Gam ~ spectrum of the kernel at sigma,   b ~ U[0, 2 pi),   V ~ U[-0.1, 0.1],   c = log shares of classes, or 0

Training sees inputs over `size`, a power of two near their root mean square, and y over its own unit: one learning
rate then means the same whatever units the data have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.kept import shelves_that_fit
from dkl.engine.memory import Plan, gib
from dkl.engine.protocol import Engine
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.learn.batches import Batches, default_batch, shelf_rows
from dkl.learn.network import Train
from dkl.learn.network_steps import Rates
from dkl.losses import Logistic, Loss, Softmax, Square
from dkl.losses.over_units import OverUnits
from dkl.losses.residual import OfResidual
from dkl.prepare.prepared import Prepared
from dkl.sums.cosine_networks import CosineModel, CosineNetworks
from dkl.sums.kept_sets import KeptSets
from dkl.sums.networks import Parameters, taken
from dkl.sums.targets import power_of_two

WEIGHT = 0.1
"""Weights begin between minus and plus this."""


class Candidate(NamedTuple):
    """One network: its width, its spectrum at the start, and how it is trained."""

    width: int
    rate: float
    spread: float = 1.0  # factor of sigma at the start
    decay: float = 0.0
    cap: float = np.inf  # of the norm of a frequency, in radians per unit of X
    momentum: tuple[float, float] = (0.5, 0.99)
    ramp: float = 10.0


def trained_loss(data: Prepared, loss: Loss) -> Loss:
    """The loss of y over its unit; other losses of numbers than the square have parameters in the units of y."""
    if not isinstance(loss, OfResidual) or isinstance(loss, Square):
        return loss
    return OverUnits(loss, tuple(data.targets.unit.ravel().tolist()))


def unit_of_inputs(data: Prepared) -> float:
    """A power of two near the root mean square of the prepared inputs."""
    squares = data.input_squares / (data.targets.weight * data.targets.weight_unit)
    return float(power_of_two(np.sqrt(squares.mean())))


def model_of(data: Prepared, widths: Sequence[int], loss: Loss) -> CosineModel:
    """What does not change while networks of these widths are trained."""
    size = np.sqrt(data.input_squares / data.targets.weight_unit)
    features = data.features
    assert isinstance(features, FourierMap)
    sigma = np.full(len(features.sigma), 1.0 / unit_of_inputs(data))
    bare = replace(features, unit=features.unit[:, :1], phase=features.phase[:1], sigma=sigma)
    return CosineModel(bare, tuple(widths), data.targets, loss, data.rows.n_rows, data.dtype, size)


def drawn(data: Prepared, candidate: Candidate, scheme: str, rng: np.random.Generator) -> FourierMap:
    """The map that a candidate begins with: frequencies of the kernel at sigma times its spread, and phases."""
    features = data.features
    assert isinstance(features, FourierMap)
    unit = draw_unit(features.kernel, len(features.unit), candidate.width, scheme, rng)
    return replace(features, unit=candidate.spread * unit, phase=rng.random(candidate.width))


def start_of(data: Prepared, features: Any, intercept: np.ndarray, rng: np.random.Generator) -> Parameters:
    """Parameters of one candidate: its Fourier map, small weights, and the intercept."""
    D, c = features.unit.shape[1], data.targets.n_outputs
    return _parameters(data, features, rng.uniform(-WEIGHT, WEIGHT, (D, c)), intercept)


def continued(data: Prepared, features: Any, coef: np.ndarray, intercept: np.ndarray) -> Parameters:
    """Parameters of a network that goes on: what `found_map` and `linear_of` gave."""
    targets = data.targets
    if targets.is_class:
        return _parameters(data, features, coef, intercept)
    return _parameters(data, features, coef / targets.unit, (intercept - targets.shift) / targets.unit)


def _parameters(data: Prepared, features: Any, coef: np.ndarray, intercept: np.ndarray) -> Parameters:
    return {
        "frequencies": features.wide_sigma[:, None] * features.unit * unit_of_inputs(data),
        "phase": 2 * np.pi * features.phase,
        "coef": np.array(coef, np.float64),
        "intercept": np.array(intercept, np.float64).reshape(1, -1),
    }


def units_of(data: Prepared) -> dict[str, Any]:
    """Factors of the parameters in training: a velocity over them does not depend on the units of X and y."""
    over_y = 1.0 if data.targets.is_class else 1.0 / data.targets.unit
    return {"frequencies": unit_of_inputs(data), "phase": 1.0, "coef": over_y, "intercept": over_y}


def first_intercept(loss: Loss, shares: np.ndarray | None, outputs: int) -> np.ndarray:
    """Scores at which every class has its share of the weight, if scores mean that; else zero."""
    if shares is None or not isinstance(loss, (Softmax, Logistic)):
        return np.zeros(outputs)
    share = np.clip(shares / shares.sum(), 1e-12, 1 - 1e-12)
    if isinstance(loss, Softmax) and outputs > 1:
        return np.asarray(np.log(share) / loss.sharpness)
    odds = np.log(share) - np.log1p(-share)
    own = odds[1:] if outputs == 1 else odds
    return np.asarray(own / (2 * loss.sharpness) if isinstance(loss, Softmax) else own)


def bundle_of(
    data: Prepared, candidates: Sequence[Candidate], starts: Sequence[Parameters], loss: Loss, fit_intercept: bool
) -> CosineNetworks:
    """Candidates side by side; `starts` are those of each."""
    model = model_of(data, [one.width for one in candidates], loss)
    axis = {"frequencies": 1, "phase": 0, "coef": 0, "intercept": 0}
    start = {name: np.concatenate([one[name] for one in starts], axis=at) for name, at in axis.items()}
    decay, cap = (np.array([getattr(one, name) for one in candidates], float) for name in ("decay", "cap"))
    return CosineNetworks(model, start, decay, cap, fit_intercept)


def rates_of(candidates: Sequence[Candidate]) -> Rates:
    """Learning rates and momenta."""
    columns = [(one.rate, *one.momentum, one.ramp) for one in candidates]
    rate, low, high, ramp = np.array(columns, float).T
    return Rates(rate, low, high, ramp)


def training_of(
    engine: Engine, rows: Rows, data: Prepared, network: CosineNetworks, candidates: Sequence[Candidate],
    *, epochs: int, batch_size: int | None, patience: int | None, velocity: Parameters | None = None, before: int = 0,
) -> Train:  # fmt: skip
    """The method that trains them; patience=None: no rows are held out."""
    model, held = network.model, data.split.held
    gram = data.with_map(model.map).gram(data.split)
    columns, n = model.map.n_columns, rows.n_rows
    shelves = tuple(rows.even_blocks(shelf_rows(columns)))
    share = 1.0 if data.split.n_folds == 1 else 1 - (held[0] / held[1] if held else 0.2)
    batch = min(n, default_batch(n) if batch_size is None else batch_size)
    outputs = 1 if data.targets.is_class else data.targets.n_targets
    shelf_bytes = kept_bytes(shelves[-1][1] - shelves[-1][0], columns, data.dtype.itemsize, outputs)
    kept = engine.hold(rows, shelves, KeptSets(gram), shelf_bytes)
    batches = Batches(shelves, batch, data.seed, share)
    return Train(network, rates_of(candidates), batches, kept, epochs, patience, velocity, before)


def kept_bytes(rows: int, columns: int, item: int, outputs: int) -> int:
    """Bytes of prepared rows that are kept: inputs, targets and weights."""
    return rows * (columns * item + 8 * max(1, outputs) + 8)


def with_kept_rows(plan: Plan, engine: Engine, columns: int, copies: int = 1) -> Plan:
    """A plan that says whether rows stay in memory between epochs, and counts them; each fold has a copy."""
    sizes = plan.sizes
    count, outputs = max(1, -(-sizes.rows // shelf_rows(columns))), 1 if sizes.is_class else sizes.outputs
    shelf = copies * kept_bytes(-(-sizes.rows // count), columns, sizes.item, outputs)
    free = sum(max(0, one.limit - one.used) for one in engine.resources())
    stay = shelves_that_fit(count, shelf, free)
    said = f"{gib(count * shelf)}, {'kept in memory' if stay == count else 'read anew in every epoch'}"
    return replace(plan, worker_bytes=plan.worker_bytes + stay * shelf // max(1, plan.workers), kept_rows=said)


def found_map(data: Prepared, network: CosineNetworks, parameters: Parameters, candidate: int) -> FourierMap:
    """The learned map of one candidate: sigma is that of the start, frequencies are over it."""
    own, features = taken(parameters, network.owner, np.array([candidate])), data.features
    assert isinstance(features, FourierMap)
    unit = own["frequencies"] * (network.model.map.wide_sigma / features.wide_sigma)[:, None]
    return replace(features, unit=unit, phase=np.mod(own["phase"] / (2 * np.pi), 1.0))


def linear_of(
    data: Prepared, network: CosineNetworks, parameters: Parameters, candidate: int
) -> tuple[np.ndarray, np.ndarray]:
    """(coef, intercept) of one candidate, for y as it was given."""
    own, targets = taken(parameters, network.owner, np.array([candidate])), data.targets
    if targets.is_class:
        return own["coef"], own["intercept"][0]
    return own["coef"] * targets.unit, own["intercept"][0] * targets.unit + targets.shift
