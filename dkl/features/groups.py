"""Maps that are made of groups of features, and grow and shrink by groups.

Every parameter that a gradient may move has the group as its last axis. So maps of one kind are joined, and groups are
taken from them, by their parameters alone; what they share (the kernel, sigma of the inputs) is that of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np

from dkl.features.map import FeatureMap

Described = dict[str, tuple[tuple[str, ...], np.ndarray]]


class GroupMap(FeatureMap, Protocol):
    """A map whose features come in groups; maps of one source prepare rows alike."""

    @property
    def n_groups(self) -> int: ...

    @property
    def is_even(self) -> bool:
        """Whether the squares of a group add up to one at every x: its length is known then."""

    @property
    def lengths(self) -> Mapping[str, np.ndarray]:
        """(groups,) of every parameter: what is far for it."""

    @property
    def described(self) -> Described:
        """What is told of the groups, by name: dimensions, of which the last is "feature", and values."""


G = TypeVar("G", bound=GroupMap)


def join(one: G, other: G) -> G:
    """The groups of both, in order."""
    both = {name: np.concatenate([own, other.parameters[name]], axis=-1) for name, own in one.parameters.items()}
    return one.with_parameters(**both)


def take(features: G, keep: np.ndarray) -> G:
    """Some groups, by their numbers."""
    return features.with_parameters(
        **{name: np.ascontiguousarray(own[..., keep]) for name, own in features.parameters.items()}
    )


def rows_of(features: GroupMap) -> np.ndarray:
    """Features in the order of their groups."""
    return np.argsort(features.column_group, kind="stable")


def places_of(features: GroupMap) -> np.ndarray:
    """(d,): the place of each feature in its group, 0, 1 ..."""
    place = np.empty(features.n_features, int)
    place[rows_of(features)] = np.tile(np.arange(features.n_features // features.n_groups), features.n_groups)
    return place


def carried(weights: np.ndarray, before: GroupMap | None, after: GroupMap, origin: np.ndarray) -> np.ndarray:
    """Weights (d + 1, c) for another map: its group j was number origin[j], or is new if that is -1.

    before: None, if there was an intercept alone.
    """
    c, new = weights.shape[1], np.zeros((after.n_features + 1, weights.shape[1]))
    size = after.n_features // after.n_groups
    own = np.zeros((1, size, c)) if before is None else weights[:-1][rows_of(before)].reshape(before.n_groups, size, c)
    moved = np.where((origin >= 0)[:, None, None], own[origin], 0.0)
    new[:-1][rows_of(after)] = moved.reshape(-1, c)
    new[-1] = weights[-1]
    return new
