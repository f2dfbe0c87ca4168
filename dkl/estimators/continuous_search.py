"""The search of a network of cosines: what it costs, what it asks for, and its table of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkl.checks import warn_user
from dkl.cost import Cost, Sizes, SolveCost
from dkl.estimators.advice import warn_of_early_end
from dkl.estimators.family import Linear
from dkl.estimators.input_info import set_or_delete
from dkl.estimators.labelled import Labelled
from dkl.estimators.spectrum import spectrum_of
from dkl.estimators.stored import Stored, Value
from dkl.features.fourier import fourier_cost
from dkl.learn.batches import default_batch
from dkl.learn.cosine_search import Asked, CosineSearch, candidates_of, columns_of_bundle, search_of
from dkl.learn.distributions import distributions, draws
from dkl.learn.halving import epochs_trained
from dkl.learn.iterate import iterate
from dkl.learn.network_search import Searched
from dkl.learn.run import INTERRUPTED, Run
from dkl.losses import Loss
from dkl.options.fields import parameter, parameters_of
from dkl.prepare.prepared import Prepared
from dkl.sums.cosine_networks import network_cost

COPIES = 8
"""Arrays of all parameters where the solve runs: parameters and velocity at the start of an epoch, now, and in the
making; the gradient and the best."""


@dataclass(eq=False, repr=False)
class Searches:
    """Parameters of a search, and what it leaves."""

    FITTED: ClassVar[dict[str, Stored]] = {
        "search_results_": Labelled(
            "With search: the candidates as an xarray Dataset: parameters, least held-out loss, epochs, when it was "
            "dropped, rank.",
            optional=True,
            told=False,
        ),
        "best_params_": Value("With search: the parameters of the best candidate.", dict, optional=True),
    }

    _: KW_ONLY
    search: Any = parameter("search")
    halving: float | None = parameter("halving")
    cv: Any = parameter(
        "cv", about="Number of folds, e.g. 5.",
        doc="A network (of a search, every candidate) is trained on each fold, and the model is the mean of the K "
        "networks, as one of K times as many cosines. Give a number of folds, the fold of each row, or a scikit-learn "
        "splitter. None: rows are held out by validation.",
    )  # fmt: skip


def searches(params: Mapping[str, Any]) -> bool:
    """Whether there are candidates, or one on several folds."""
    return params["search"] is not None or params["cv"] is not None


def check_search(params: Mapping[str, Any]) -> None:
    """Refuse a search without held-out rows, and one that begins where another fit ended."""
    if params["warm_start"] and searches(params):
        name = "cv" if params["search"] is None else "search"
        value = params[name] if np.isscalar(params[name]) else type(params[name]).__name__
        raise ValueError(
            f"{name}={value!s} begins anew; warm_start=True and partial_fit go on: use {name}=None with them"
        )
    held = params["validation"]
    none = held is None or (np.ndim(held) == 0 and not held)
    if params["search"] is not None and params["cv"] is None and none:
        raise ValueError(
            f"search={params['search']!r} compares candidates on held-out rows, and validation={held!r} holds none "
            "out; use cv=5, or validation=0.2"
        )


def solve_cost(numbers: int) -> SolveCost:
    """What the steps of networks with so many parameters in all take where the solve runs."""
    return SolveCost(8 * COPIES * numbers, 20.0 * numbers)


def search_costs(params: Mapping[str, Any], sizes: Sizes, outputs: int, terms: int, folds: int) -> list[Cost]:
    """The passes of a search: bundles as wide as they may be, as often as rungs and max_iter allow."""
    count, found = distributions(params["search"])
    width = found.get("n_components")
    most = int(params["n_components"] if width is None else np.rint(width.most))
    mean = params["n_components"] if width is None else width.mean
    widest = min(count * most, max(most, columns_of_bundle(terms * sizes.inputs, outputs)))
    of, side = fourier_cost(sizes.inputs, widest, "phase", terms, sizes.dtype), -(-widest // max(1, most))
    steps = -(-sizes.rows // min(sizes.rows, params["batch_size"] or default_batch(sizes.rows)))
    epochs = epochs_trained(count, params["halving"], steps, int(params["max_iter"]))
    passes = max(1.0, folds * epochs * mean / widest)
    numbers = count * folds * most * (terms * sizes.inputs + 1 + outputs)
    training = network_cost(sizes, of, outputs, side).then(solve_cost(numbers)).made(passes)
    return [training, network_cost(sizes, of, outputs, side, gradient=False).made(passes)]


def learn_by_search(model: Any, run: Run, data: Prepared, intercept: np.ndarray, loss: Loss) -> Linear:
    """The best candidate's model; sets what a fit sets, search_results_ and best_params_."""
    asked = Asked(
        loss, bool(model.fit_intercept), model.frequencies, intercept, int(model.max_iter), int(model.patience),
        model.batch_size, model.halving, 1 if model.cv is None else data.split.n_folds,
    )  # fmt: skip
    columns = draws(model.search, data.seed)
    search = search_of(run, data, candidates_of(model._candidate, columns), asked)
    done = iterate(run, search.method)
    found = done.result
    _refuse_nothing(found)
    model.search_results_ = table_of(search, found, columns)
    model.best_params_ = {name: _plain(values[found.best]) for name, values in columns.items()}
    if done.reason in (INTERRUPTED, "max_time"):
        warn_of_early_end(parameters_of(model), done, run.finish)
    model._set_history(done, data)
    model.epochs_ = int(found.epoch[found.best].max())
    set_or_delete(model, "_velocity", None)
    best = search.best(found)
    model.spectrum_ = spectrum_of(model, data.with_map(best.first), best.features)
    return Linear(data.with_map(best.features), best.coef, best.intercept)


def _refuse_nothing(found: Searched) -> None:
    """Refuse, or warn, if the best candidate is not better than it began."""
    if found.epoch[found.best].any():
        return
    S, lower = len(found.score), "lower learning_rate"
    if S > 1:
        lower = 'draw lower learning rates, e.g. search={"learning_rate": (1e-5, 0.01, "log")}'
    whose = f"all {S} candidates" if S > 1 else "the network"
    if found.diverged.all():
        raise ValueError(f"{whose} diverged before an epoch had a lower held-out loss than the start; {lower}")
    warn_user(
        f"no epoch of {whose} had a lower held-out loss than the start, which the model is; y may be noise: raise "
        f"max_iter, or {lower}",
        ConvergenceWarning,
    )


def _plain(value: float) -> int | float:
    """A whole number as one."""
    return int(value) if float(value).is_integer() else float(value)


def table_of(search: CosineSearch, found: Searched, columns: Mapping[str, np.ndarray]) -> Any:
    """One row for each candidate, as an xarray Dataset: parameters, losses, epochs, when it was dropped, its rank."""
    import xarray as xr

    score, left = found.score, found.dropped == 0
    rank = np.empty(len(score), int)
    rank[np.lexsort((score, ~left))] = np.arange(1, len(score) + 1)
    about: dict[str, tuple[str, Sequence[Any] | np.ndarray]] = {
        "validation_loss": ("least held-out loss, mean over the folds", score),
        "epochs": ("epoch of that loss, mean over the folds; 0: the start", found.epoch.mean(axis=1)),
        "dropped_at": ("epoch at which it was dropped; 0: it was not", found.dropped),
        "diverged": ("whether its training diverged, on any fold", found.diverged),
        "rank": ("1 is the best; those that were dropped come last", rank),
    }
    said = {
        "n_components": "cosines", "variance": "variance of the frequencies at the start, over that of sigma",
        "learning_rate": "learning rate", "decay": "decay of the frequencies", "max_norm": "cap on their norms",
    }  # fmt: skip
    variables = {
        name: (("candidate",), values.astype(int) if name == "n_components" else values, {"long_name": said[name]})
        for name, values in columns.items()
    }
    variables |= {name: (("candidate",), np.asarray(v), {"long_name": meaning}) for name, (meaning, v) in about.items()}
    return xr.Dataset(variables, coords={"candidate": np.arange(len(score))})
