"""What candidates are drawn from, against scipy's distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dkl.learn.distributions import as_text, distribution, distributions, draws

MANY = 4000


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("variance", stats.loguniform(2.0**-6, 1)),
        ("learning_rate", stats.loguniform(1e-5, 0.2)),
        ("decay", stats.loguniform(1e-6, 1e-2)),
    ],
)
def test_published_ranges(name: str, of: Any) -> None:
    """search=100 draws them log-uniformly, each from a stream of its own."""
    values = draws(MANY, 0)
    assert stats.kstest(values[name], of.cdf).pvalue > 1e-3
    others = np.abs(np.corrcoef(np.log(list(values.values()))) - np.eye(4))
    assert others.max() < 0.06


def test_widths_are_whole() -> None:
    """From 16 to 256."""
    widths = draws(MANY, 1)["n_components"]
    assert set(widths) <= set(range(16, 257))
    assert (widths.min() < 18, widths.max() > 250) == (True, True)


@pytest.mark.parametrize(
    ("given", "of"),
    [
        ((0.1, 0.3), stats.uniform(0.1, 0.2)),
        ((0.1, 0.3, "log"), stats.loguniform(0.1, 0.3)),
        ("0.1:0.3", stats.uniform(0.1, 0.2)),
        ("0.1:0.3:log", stats.loguniform(0.1, 0.3)),
        (stats.gamma(2.0, scale=0.1), stats.gamma(2.0, scale=0.1)),
    ],
)
def test_own_distributions(given: Any, of: Any) -> None:
    """As scipy's of the same law; mean and upper end too."""
    found = distribution("learning_rate", given)
    assert stats.kstest(found.draw(MANY, np.random.default_rng(0)), of.cdf).pvalue > 1e-3
    np.testing.assert_allclose(found.mean, of.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.most, of.ppf(1.0) if np.isfinite(of.ppf(1.0)) else of.ppf(0.999), rtol=1e-12)


@pytest.mark.parametrize("given", [[32, 64.0, 64], "32|64|64", np.array([32, 64, 64])])
def test_lists(given: Any) -> None:
    """Every entry as often."""
    values = draws({"candidates": MANY, "n_components": given}, 0)["n_components"]
    assert abs(float((values == 64).mean()) - 2 / 3) < 0.03
    assert set(values) == {32, 64}
    assert distribution("n_components", given).most == 64


def test_streams_are_apart() -> None:
    """Another range for one parameter changes no draw of the others; another seed changes all."""
    one = draws({"decay": (1e-5, 1e-3), "variance": (0.1, 1.0), "candidates": 9}, 0)
    two = draws({"decay": [0.0], "variance": (0.1, 1.0), "learning_rate": [0.1], "candidates": 9}, 0)
    assert (one["variance"] == two["variance"]).all()
    assert not (draws(9, 0)["decay"] == draws(9, 1)["decay"]).any()


@pytest.mark.parametrize("given", [(1e-4, 0.1, "log"), (0.1, 0.3)])
def test_text_of_a_range(given: Any) -> None:
    """Reads as the range itself."""
    assert distribution("decay", as_text(given)) == distribution("decay", given)
    assert as_text(stats.loguniform(0.1, b=2)) == "loguniform(0.1, b=2)"


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"sigma": (0.1, 1)}, "search has 'sigma'; it may have n_components, variance"),
        ({"candidates": 5}, "draws nothing; name one of n_components"),
        ({"decay": (0.1,)}, r"search: decay=\(0.1,\) is no distribution; give a list"),
        ({"decay": []}, r"search: decay=\[\] is no distribution"),
        ({"decay": "0.1:x"}, "search: decay='0.1:x' is no distribution"),
        ({"decay": (0.1, 1, "lin")}, "ends with 'lin'; give a list"),
        ({"decay": (1.0, 0.1)}, "has its ends the wrong way round; give the lower one first"),
        ({"decay": (0.0, 0.1, "log")}, "begins at 0, which has no logarithm; begin above 0"),
        ({"decay": (-1.0, 0.1)}, "has -1; all values must be at least 0"),
        ({"learning_rate": [0.0, 0.1]}, "has 0; all values must be above 0"),
        ({"learning_rate": [0.1, float("nan")]}, "must be finite numbers"),
        ({"n_components": [0, 8]}, "has 0; all values must be at least 1"),
    ],
)
def test_refused(search: Any, said: str) -> None:
    """With the value, and what to give instead."""
    with pytest.raises(ValueError, match=said):
        distributions(search)


def test_draws_that_do_not_suit() -> None:
    """A distribution is asked only when it draws."""
    with pytest.raises(ValueError, match=r"learning_rate=.* has -.*; all values must be above 0"):
        draws({"learning_rate": stats.norm()}, 0)
