"""Parameters of convolutional networks: the images, and the layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_count, check_nonnegative
from dkl.options import rules
from dkl.options.option import Option

LAYERS = ("cosine", "relu", "none")
"""What stands between the dense layer and the scores."""


def _sizes(text: str) -> list[int]:
    """28x28 or 16x32: words with commas would be other parameters of --model."""
    return [int(word) for word in text.split("x")]


def _counts(name: str, value: Any) -> list[int]:
    """Several whole numbers of at least one."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or not len(value):
        raise ValueError(f"{name}={value!r} must be whole numbers in a tuple or list, e.g. {name}=(16, 32)")
    return [check_count(f"{name}[{i}]", one) for i, one in enumerate(value)]


def _image(name: str, value: Any) -> None:
    """(height, width) or (height, width, colours)."""
    if len(_counts(name, value)) not in (2, 3):
        raise ValueError(f"{name}={value!r} must be (height, width) or (height, width, colours), e.g. (28, 28)")


def _odd(name: str, value: Any) -> None:
    """An odd number of pixels, so that an image keeps its size."""
    if check_count(name, value) % 2 == 0:
        raise ValueError(f"{name}={value!r} must be odd, so that a filter has a middle; use {value - 1} or {value + 1}")


def _scale_or_number(name: str, value: Any) -> None:
    """One number >= 0, or "scale"."""
    rules.numbers_or("scale")(name, value)
    if not isinstance(value, str) and check_nonnegative(name, value).ndim:
        raise ValueError(f"{name}={np.asarray(value).tolist()!r} must be one number: all inputs of the layer share it")


CONVOLUTIONAL = (
    Option(
        "image_shape", None, "Height, width and colours of an image: 28x28 or 32x32x3.", takes="tuple of ints",
        parse=_sizes, optional=True, rule=_image, sample=[28, 28],
        doc="A row holds an image pixel by pixel, the colours of a pixel side by side. None: the shape that ingest "
        "has found in the source of the data set.",
    ),
    Option(
        "filters", (16, 32), "Filters of each convolution: 16x32.", takes="tuple of ints", parse=_sizes, rule=_counts,
        doc="Behind each convolution the largest of 2 x 2 pixels is taken.",
    ),
    Option("filter_size", 5, "Height and width of a filter, odd.", takes="int", parse=int, rule=_odd),
    Option("dense", 128, "Outputs of the dense layer.", takes="int", parse=int, rule=rules.count),
    Option(
        "layer", "cosine", "Layer before the scores: cosine, relu or none.", choices=LAYERS,
        doc='"cosine": n_components cosines of the outputs of the dense layer, whose frequencies are trained. "relu": '
        'as many linear units with a threshold, for comparison. "none": scores of the dense layer.',
    ),
)  # fmt: skip
"""They stand behind the name of the family: --model convolutional:image_shape=28x28,filters=16x32."""
OF_CONVOLUTIONAL = {option.name: option for option in CONVOLUTIONAL}
"""By name."""
LAYER_SIGMA = Option(
    "sigma", "scale", "Frequency scale at the start, e.g. 0.1.", takes='float or "scale"',
    parse=lambda text: text if text == "scale" else float(text), rule=_scale_or_number,
    doc='Of the cosines of the dense layer\'s outputs. "scale": one over the root of `dense`, which is about one over '
    "the length of those outputs at the start.",
)  # fmt: skip
"""In place of the sigma of a kernel of the inputs."""
