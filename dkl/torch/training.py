"""A convolutional network from prepared data: where it begins, how it is trained, and the model that it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.protocol import Engine
from dkl.engine.tables import Table
from dkl.learn.batches import Batches, default_batch, shelf_rows
from dkl.learn.cosine import kept_bytes
from dkl.learn.network import Train
from dkl.learn.network_steps import Rates
from dkl.prepare.prepared import Prepared
from dkl.store.recipe import Recipe
from dkl.sums.input_moments import InputMoments
from dkl.sums.kept_sets import KeptSets
from dkl.torch.architecture import COEF, INTERCEPT, Architecture
from dkl.torch.block import IMAGES
from dkl.torch.feature_map import ConvolutionalMap
from dkl.torch.network import ConvolutionalNetwork, Parameters

MOST_BATCH = 256
"""Images of a step by default, at most: these networks want many steps."""


def shape_of_images(given: Any, table: Table) -> tuple[int, int, int]:
    """(height, width, colours) as given, or as ingest has found it; refused if the rows have another size."""
    inputs, recorded = table.n_columns, _recorded_shape(table.about.get("recipe"))
    shape = recorded if given is None else tuple(given)
    if shape is None:
        side = round(inputs**0.5)
        example = (side, side) if side * side == inputs else (32, 32, 3)
        raise ValueError(
            f"image_shape=None, and X does not say what shape its images of {inputs} inputs have; give "
            f"image_shape=(height, width) or (height, width, colours), e.g. image_shape={example}"
        )
    height, width, colours = (*map(int, shape), 1)[:3]
    if height * width * colours != inputs:
        raise ValueError(
            f"image_shape={tuple(shape)} is {height * width * colours} numbers, and X has {inputs} inputs; give the "
            "height, width and colours of its images"
        )
    return height, width, colours


def _recorded_shape(recipe: Mapping[str, Any] | None) -> tuple[int, ...] | None:
    """What ingest has found, of a data set of one channel."""
    if recipe is None:
        return None
    channels = Recipe.from_json(dict(recipe)).channels
    return channels[0].image_shape if len(channels) == 1 else None


def standardising(moments: InputMoments) -> tuple[float, float]:
    """Mean and standard deviation of all numbers of all images; one if they are all alike."""
    mean = moments.mean
    spread = float(np.sqrt((moments.variance + np.square(mean - mean.mean())).mean()))
    return float(mean.mean()), spread if spread > 1e-12 * max(1.0, abs(float(mean.mean()))) else 1.0


def layer_sigma(sigma: Any, dense: int) -> float:
    """sigma of the layer of cosines at the start."""
    return float(dense**-0.5 if isinstance(sigma, str) else sigma)


def first_parameters(
    features: ConvolutionalMap, intercept: np.ndarray, rng: np.random.Generator
) -> Parameters:  # fmt: skip
    """Drawn layers, small random weights of the scores, and the scores of all images at the start."""
    coef = rng.uniform(-0.1, 0.1, (features.n_features, len(intercept)))
    return {**features.arrays, COEF: coef, INTERCEPT: np.array(intercept, np.float64)}


def training_of(
    engine: Engine, rows: Rows, data: Prepared, network: ConvolutionalNetwork, rates: Rates, *, epochs: int,
    batch_size: int | None, patience: int | None,
) -> Train:  # fmt: skip
    """The method that trains it; patience=None: no rows are held out."""
    held, n = data.split.held, rows.n_rows
    shelves = tuple(rows.even_blocks(shelf_rows(network.of.inputs)))
    share = 1.0 if data.split.n_folds == 1 else 1 - (held[0] / held[1] if held else 0.2)
    batch = min(n, min(MOST_BATCH, default_batch(n)) if batch_size is None else batch_size)
    shelf_bytes = kept_bytes(shelves[-1][1] - shelves[-1][0], network.of.inputs, 4, 1)
    kept = engine.hold(rows, shelves, KeptSets(data.gram(data.split)), shelf_bytes)
    return Train(network, rates, Batches(shelves, batch, data.seed, share, IMAGES), kept, epochs, patience)


def drawn_map(
    of: Architecture, kernel: str, sigma: Any, frequencies: str, moments: InputMoments, rng: np.random.Generator
) -> ConvolutionalMap:
    """The layers at the start, for images of these moments."""
    shift, unit = standardising(moments)
    return ConvolutionalMap(of, of.draw(kernel, layer_sigma(sigma, of.dense), frequencies, rng), shift, unit)


def trained_map(features: ConvolutionalMap, parameters: Parameters) -> ConvolutionalMap:
    """The same layers with trained parameters."""
    arrays = {name: parameters[name] for name in features.of.shapes}
    return ConvolutionalMap(features.of, arrays, features.shift, features.unit)
