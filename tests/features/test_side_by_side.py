"""Channels side by side against the features of each alone."""

import numpy as np
import pytest

from dkl.features.side_by_side import SideBySide
from tests.features.test_fourier import draw_rows, make_map


@pytest.mark.parametrize("sizes", [(8, 50), (50, 8), (20, 8, 50)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_channel_keeps_its_scale(sizes, dtype):
    """Few features are long ones; in whichever order, each channel's columns are what its own map gives."""
    maps = tuple(make_map(d=d, seed=d) for d in sizes)
    X, joined = draw_rows("gaussian", 30), SideBySide(maps)
    blocks = joined.at(dtype)
    out = np.empty((30, joined.n_features), dtype)
    blocks.write(blocks.prepare(X), out)
    expected = np.hstack([one.at(dtype).transform(X) for one in maps])
    np.testing.assert_allclose(out * joined.scale, expected, rtol=1e-5 if dtype == np.float32 else 1e-13)
