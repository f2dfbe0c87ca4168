"""Before the pass: what y holds, where sigma starts, and the frequencies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.checks import check_choice, check_count, check_nonnegative, check_positive
from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.features.additive import AdditiveMap
from dkl.features.chance import LANDMARKS
from dkl.features.fourier import FORMS, FourierMap
from dkl.features.frequencies import SCHEMES, draw_unit
from dkl.kernels import Kernel, find_kernel
from dkl.learn.additive import check_additive, make_additive, method_of
from dkl.learn.extent import Extent, extent_of
from dkl.learn.spreads import refuse_lost, warn_hidden
from dkl.sums.histogram import HistogramProgram
from dkl.sums.moments import InputMoments, MomentProgram
from dkl.sums.targets import LabelProgram, LabelWeights, Targets, ValueMoments, ValueProgram, value_targets, weight_unit


def sum_small(
    program: Any, tables: list[Table | None], names: list[str], progress: Progress, doing: str | None = None
) -> Any:
    """The total of a tree program; a row it refused is raised."""
    rows = Rows(tables, names)
    engine = engine_for(rows.is_lazy, "client")
    total = engine.fetch(engine.sum(program, rows, progress.name(doing or f"looking at {names[0]}")))
    if total.refusal is not None:
        raise ValueError(total.refusal[1])
    return total.tree.total()


def label_targets(y: Table, weight: Table | None, class_weight: Any, progress: Progress) -> Targets:
    """Classes and their weights, from one pass over y."""
    found: LabelWeights = sum_small(LabelProgram(), [y, weight], ["y", "sample_weight"], progress)
    if len(found.labels) < 2:
        raise ValueError(f"y has one class, {found.labels.tolist()[0]!r}; a classifier needs at least two classes")
    if not found.weight.sum():
        raise ValueError("sample_weight is zero for every row; give at least two classes a positive weight")
    factor = _class_factor(found, class_weight)
    shares = found.weight if factor is None else found.weight * factor
    if (shares > 0).sum() < 2:
        left = found.labels[shares > 0].tolist()
        raise ValueError(f"of {len(shares)} classes only {left} have a positive weight; a classifier needs two classes")
    total, unit = float(shares.sum()), weight_unit(float(shares.sum()), found.rows)
    share = shares / shares.sum()
    variance = float(np.mean(4 * share * (1 - share)))
    return Targets(
        total / unit, len(shares), classes=found.labels, class_weight=factor, weight_unit=unit, variance=variance
    )  # fmt: skip


def _class_factor(found: LabelWeights, class_weight: Any) -> np.ndarray | None:
    """Weight of each class; scikit-learn's 'balanced' is n / (c n_class)."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ["balanced"])
        return found.weight.sum() / (len(found.labels) * np.where(found.weight > 0, found.weight, 1.0))
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight={class_weight!r} must be None, 'balanced' or a dict from class to weight")
    known = {label: i for i, label in enumerate(found.labels.tolist())}
    factor = np.ones(len(found.labels))
    for label, value in class_weight.items():
        if label not in known and set(known) <= set(class_weight):
            continue  # as scikit-learn: a fold may lack a class
        if label not in known:
            raise ValueError(f"class_weight names {label!r}, which is not a class; classes are {list(known)[:10]}")
        factor[known[label]] = check_nonnegative("class_weight", value)
    return factor


def number_targets(y: Table, weight: Table | None, centre: bool, progress: Progress) -> Targets:
    """Shift and bounds of the targets, from one pass over y."""
    if y.array.ndim > 1 and not y.array.shape[1]:
        raise ValueError(f"y has shape {y.array.shape}; give at least one output")
    moments: ValueMoments = sum_small(ValueProgram(), [y, weight], ["y", "sample_weight"], progress)
    if not moments.weight:
        raise ValueError("sample_weight is zero for every row; give some rows a positive weight")
    return value_targets(moments, centre)


def group_index(groups: Any, m: int, coords: Any, name: str = "groups") -> np.ndarray:
    """Group number of each input, for None (one group), 'each', labels, slices, or the name of a coordinate."""
    if groups is None:
        return np.zeros(m, int)
    if isinstance(groups, str):
        if groups == "each":
            return np.arange(m)
        if groups not in coords:
            raise ValueError(
                f"{name}={groups!r} is not a coordinate of the inputs; there are {sorted(coords)} and 'each'"
            )
        return np.unique(coords[groups], return_inverse=True)[1]
    if np.ndim(groups) == 0:
        raise ValueError(
            f"{name}={groups!r} must be None, 'each', a label for each input, slices, or a coordinate's name"
        )
    if any(isinstance(g, slice) for g in groups):
        index = np.full(m, -1)
        for i, g in enumerate(groups):
            if not index[g].size or (index[g] >= 0).any():
                raise ValueError(f"{name} has {g}, which is empty or overlaps another; let slices part the {m} inputs")
            index[g] = i
        if (index < 0).any():
            raise ValueError(
                f"{name} leaves input {int(np.argmax(index < 0))} out; let the slices cover all {m} inputs"
            )
        return index
    labels = np.asarray(groups)
    if labels.shape != (m,):
        raise ValueError(f"{name} has shape {labels.shape}, but X has {m} inputs; give one label for each")
    return np.unique(labels, return_inverse=True)[1]


def spread_sigma(sigma: Any, index: np.ndarray) -> np.ndarray:
    """sigma of each input from one shared value, one of each group, or one of each input."""
    values = check_nonnegative("sigma", sigma)
    m, r = len(index), int(index.max()) + 1
    if values.ndim == 0:
        return np.full(m, float(values))
    if values.shape == (r,):
        return values[index]
    if values.shape == (m,):
        return values
    raise ValueError(
        f"sigma has shape {values.shape}; give one value, {r} (one for each group) or {m} (one for each input)"
    )


def check_map(params: dict, m: int, coords: Any) -> None:
    """Refuse parameters of the map that no data could make right, before any row is read."""
    check_kernel(params)
    if "form" in params:
        check_choice("frequencies", params["frequencies"], SCHEMES)
        check_choice("form", params["form"], FORMS)
    if params.get("landmarks") is not None:
        check_choice("landmarks", params["landmarks"], LANDMARKS)
    check_count("n_components", params["n_components"])
    index = group_index(params["groups"], m, coords)
    if isinstance(params["sigma"], str):
        check_choice("sigma", params["sigma"], ["scale"])
    else:
        spread_sigma(params["sigma"], index)


class Scaled(NamedTuple):
    """Kernel, skew, additive map (of an exponentiated kernel), sigma and group of each input."""

    kernel: Kernel
    skew: float
    additive: AdditiveMap | None
    sigma: np.ndarray
    groups: np.ndarray


def find_sigma(params: dict, m: int, coords: Any, moments: Any, lifted: bool = True) -> Scaled:
    """The kernel of an estimator's parameters and sigma of each input.

    `moments(program)` sums over X: if sigma='scale', and for an exponentiated kernel.
    lifted: the additive map is needed too.
    """
    kernel, c = check_kernel(params)
    look = lifted or isinstance(params["sigma"], str)
    additive = additive_of(kernel, params["n_terms"], m, moments) if look else None
    terms = 1 if additive is None else additive.n_terms
    sigma, index = params["sigma"], group_index(params["groups"], m, coords)
    if isinstance(sigma, str):
        found: InputMoments = moments(MomentProgram(kernel, c, additive))
        if not found.weight:
            raise ValueError("sample_weight is zero for every row; give some rows a positive weight")
        if not np.isfinite(found.variance).all():
            raise ValueError(
                "X is so large that its variance is infinite in float64; rescale it or give sigma a number"
            )
        refuse_lost(found, index, m)
        warn_hidden(kernel, found, index, coords)
        variance = found.variance.reshape(terms, m).sum(axis=0)
        sigma = start_of_groups(kernel, variance, index)
    return Scaled(kernel, c, additive, spread_sigma(sigma, index), index)


def build_map(
    params: dict, m: int, coords: Any, rng: np.random.Generator, moments: Any
) -> tuple[FourierMap, np.ndarray]:  # fmt: skip
    """The Fourier features of an estimator's parameters, and their group index."""
    check_map(params, m, coords)
    kernel, c, additive, sigma, index = find_sigma(params, m, coords, moments)
    terms = 1 if additive is None else additive.n_terms
    d, form = int(params["n_components"]), params["form"]
    frequencies = (d + 1) // 2 if form == "paired" else d
    unit = draw_unit(kernel, terms * m, frequencies, params["frequencies"], rng)
    phase = rng.random(d if form == "phase" else d % 2)
    return FourierMap(kernel, unit, sigma, phase, c, form, additive), index


def additive_of(kernel: Kernel, n_terms: int, m: int, look: Any) -> AdditiveMap | None:
    """The additive map of an exponentiated kernel, from a histogram of the entries; None for the others."""
    if kernel.additive is None:
        return None
    program = HistogramProgram(f"kernel={kernel.name!r}")
    return make_additive(kernel.additive, method_of(kernel.additive), n_terms, "fitted", m, lambda: look(program))


def _start(kernel: Kernel, variance: np.ndarray) -> float:
    return kernel.start_sigma(variance, np.sqrt(variance))


def start_of_groups(kernel: Kernel, variance: np.ndarray, index: np.ndarray) -> np.ndarray:
    """sigma of each group at which all that vary have the same share in a mean exponent of about one."""
    total = np.bincount(index, np.sqrt(variance) if kernel.mean_absolute else variance)
    varies, power = total > 0, 1 if kernel.mean_absolute else 2
    own = (varies.sum() * np.where(varies, total, 1.0)) ** (-1 / power)
    return np.where(varies, own, _start(kernel, variance))


def draw(
    params: dict, m: int, coords: Any, rng: np.random.Generator, moments: Any, learning: bool
) -> tuple[FourierMap, np.ndarray, int, np.ndarray, Extent | None]:
    """Map, groups, the seed of the folds, for learning the weighted sum of T_j^2, and the extent of X if it was seen.

    One pass over X at most, and one before it for the nodes of an exponentiated kernel.
    """
    found: dict[type, Any] = {}

    def once(program: Any) -> Any:
        if type(program) not in found:
            found[type(program)] = moments(program)
        return found[type(program)]

    features, index = build_map(params, m, coords, rng, once)
    seed = int(rng.integers(2**62))
    if not learning:
        return features, index, seed, np.empty(0), extent_of(found.get(MomentProgram), m)
    seen: InputMoments = once(MomentProgram(features.kernel, features.skew, features.additive))
    w, mean, m2 = seen.spread
    return features, index, seed, m2 + w * mean * mean, extent_of(seen, m)


def check_kernel(params: dict) -> tuple[Kernel, float]:
    """The kernel and its skew constant."""
    kernel = find_kernel(params["kernel"])
    if kernel.additive is not None:
        check_additive(kernel.additive, method_of(kernel.additive), params["n_terms"], "fitted")
    check_count("n_terms", params["n_terms"])
    return kernel, check_positive("skew", params["skew"])
