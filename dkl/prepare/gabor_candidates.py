"""Gabor filters as candidates: orientation, frequency and widths drawn anew each time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dkl.features.gabor_groups import GaborGroups
from dkl.prepare.gabor import HIGHEST, draw_filters, lowest, widest


@dataclass(frozen=True)
class GaborSource:
    """Filters on patches; `like` has their shape, the positions, and the norms of the rows."""

    like: GaborGroups

    @property
    def families(self) -> int:
        """One."""
        return 1

    def draw(self, rng: np.random.Generator, count: int) -> GaborGroups:
        """So many filters at random."""
        orientation, frequency, along, across = draw_filters(self.like.shape, count, rng)
        return replace(self.like, orientation=orientation, frequency=frequency, along=along, across=across)

    def nearest(self, features: GaborGroups) -> GaborGroups:
        """Orientations within half a turn; frequencies and widths in the range from which they are drawn."""
        low, most = lowest(features.shape), widest(features.shape)
        return replace(
            features,
            orientation=features.orientation % np.pi,
            frequency=np.clip(features.frequency, low, HIGHEST),
            along=np.clip(features.along, 1.0, most),
            across=np.clip(features.across, 1.0, most),
        )
