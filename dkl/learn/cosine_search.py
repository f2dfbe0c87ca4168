"""A search over cosine networks: candidates drawn, put into bundles, and the best one's networks made one model.

With K folds the best candidate has K networks, each stopped by the rows it has not seen. Their mean is the model,

    1/K sum_k sqrt(2/D) cos(X Gam_k + b_k) V_k = sqrt(2/(K D)) cos(X [Gam_1 .. Gam_K] + b) [V_1; ..; V_K] / sqrt(K),

a network of K D cosines. With one set of rows held out it is the network at its best epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dkl.features.fourier import FourierMap
from dkl.learn.batches import Batches, default_batch, shelf_rows
from dkl.learn.cosine import (
    Candidate,
    bundle_of,
    drawn,
    found_map,
    kept_bytes,
    linear_of,
    rates_of,
    start_of,
)
from dkl.learn.halving import rungs_of
from dkl.learn.network import Train
from dkl.learn.network_search import Search, Searched
from dkl.learn.run import Run
from dkl.losses import Loss
from dkl.prepare.prepared import Prepared
from dkl.sums.cosine_networks import CosineNetworks
from dkl.sums.kept_sets import FoldSets, KeptSets

NUMBERS = 2**19
"""Parameters of a bundle, at most, unless one candidate has more: a bound that memory does not change."""


class Asked(NamedTuple):
    """What a search is asked for, beside the candidates."""

    loss: Loss
    fit_intercept: bool
    frequencies: str  # how they are drawn
    intercept: np.ndarray  # at the start
    epochs: int
    patience: int
    batch_size: int | None
    eta: float | None
    folds: int = 1  # 1: rows are held out by a share or a mask


class Best(NamedTuple):
    """The model of the best candidate: its map at the start, its map, and weights."""

    first: FourierMap
    features: FourierMap
    coef: np.ndarray
    intercept: np.ndarray


def candidates_of(fixed: Candidate, columns: Mapping[str, np.ndarray]) -> list[Candidate]:
    """Candidates with the values drawn; what is not drawn is fixed. Without columns there is one."""
    if not columns:
        return [fixed]
    found = []
    for i in range(len(next(iter(columns.values())))):
        row = {name: float(values[i]) for name, values in columns.items()}
        found.append(
            fixed._replace(
                width=int(row.get("n_components", fixed.width)),
                spread=float(np.sqrt(row["variance"])) if "variance" in row else fixed.spread,
                rate=row.get("learning_rate", fixed.rate),
                decay=row.get("decay", fixed.decay),
                cap=row.get("max_norm", fixed.cap),
            )
        )
    return found


def columns_of_bundle(inputs: int, outputs: int) -> int:
    """Cosines that a bundle may have, at most, unless one candidate has more."""
    return NUMBERS // (inputs + 1 + outputs)


def bundles(widths: Sequence[int], most: int) -> list[np.ndarray]:
    """Numbers of the candidates of each bundle, in order: as many as have so many cosines together."""
    found: list[list[int]] = []
    for number, width in enumerate(widths):
        if not found or sum(widths[s] for s in found[-1]) + width > most:
            found.append([])
        found[-1].append(number)
    return [np.array(some) for some in found]


@dataclass(frozen=True)
class CosineSearch:
    """A search of prepared data: the method, and what it takes to read its end."""

    data: Prepared
    candidates: Sequence[Candidate]
    method: Search
    starts: Mapping[tuple[int, int], FourierMap]  # by candidate and fold

    def best(self, searched: Searched) -> Best:
        """The model of the best candidate."""
        places, number = self.method.of(searched.best)
        networks = [(self.method.trains[i].network, searched.trained[i].parameters) for i in places]
        assert all(isinstance(network, CosineNetworks) for network, _ in networks)
        maps = [found_map(self.data, network, values, number) for network, values in networks]  # type: ignore[arg-type]
        linear = [linear_of(self.data, network, values, number) for network, values in networks]  # type: ignore[arg-type]
        K = len(maps)
        coef = np.concatenate([coef for coef, _ in linear]) / np.sqrt(K)
        first = [self.starts[searched.best, k] for k in range(K)]
        return Best(
            side_by_side(first), side_by_side(maps), coef, np.mean([intercept for _, intercept in linear], axis=0)
        )


def side_by_side(maps: Sequence[FourierMap]) -> FourierMap:
    """One map of all their cosines."""
    unit = np.concatenate([each.unit for each in maps], axis=1)
    return replace(maps[0], unit=unit, phase=np.concatenate([each.phase for each in maps]))


def search_of(run: Run, data: Prepared, candidates: Sequence[Candidate], asked: Asked) -> CosineSearch:
    """Every candidate on every fold of the data's split, or on the rows that are not held out."""
    folds = asked.folds
    members = bundles(
        [one.width for one in candidates], columns_of_bundle(len(data.features.unit), data.targets.n_outputs)  # type: ignore[attr-defined]
    )  # fmt: skip
    starts: dict[tuple[int, int], FourierMap] = {}
    networks: dict[tuple[int, int], CosineNetworks] = {}
    for b, own in enumerate(members):
        for k in range(folds):
            rngs = {s: np.random.default_rng([data.seed, 2, s, k]) for s in own}
            maps = {s: drawn(data, candidates[s], asked.frequencies, rngs[s]) for s in own}
            parts = [start_of(data, maps[s], asked.intercept, rngs[s]) for s in own]
            networks[b, k] = bundle_of(data, [candidates[s] for s in own], parts, asked.loss, asked.fit_intercept)
            starts |= {(int(s), k): maps[s] for s in own}
    kept, batches = _kept(run, data, networks[0, 0].model.map, asked)
    trains = [
        Train(networks[b, k], rates_of([candidates[s] for s in own]), batches, kept[k], asked.epochs, asked.patience)
        for b, own in enumerate(members)
        for k in range(folds)
    ]
    rungs = rungs_of(len(candidates), asked.eta, batches.steps, asked.epochs)
    method = Search(trains, members, folds, rungs, asked.eta or 1.0, asked.epochs)
    return CosineSearch(data, candidates, method, starts)


def _kept(run: Run, data: Prepared, inputs: FourierMap, asked: Asked) -> tuple[list[Any], Batches]:
    """The rows of each fold, or those that train and those held out, and the steps of an epoch."""
    gram, rows, folds = data.with_map(inputs).gram(data.split), run.rows, asked.folds
    shelves = tuple(rows.even_blocks(shelf_rows(inputs.n_columns)))
    held, n = data.split.held, rows.n_rows
    share = 1 - 1 / folds if folds > 1 else 1 - (held[0] / held[1] if held else 0.2)
    batch = min(n, default_batch(n) if asked.batch_size is None else asked.batch_size)
    outputs = 1 if data.targets.is_class else data.targets.n_targets
    size = folds * kept_bytes(shelves[-1][1] - shelves[-1][0], inputs.n_columns, data.dtype.itemsize, outputs)
    sets = [FoldSets(gram, k) for k in range(folds)] if folds > 1 else [KeptSets(gram)]
    kept = [run.engine.hold(rows, shelves, one, size) for one in sets]
    return kept, Batches(shelves, batch, data.seed, share)
