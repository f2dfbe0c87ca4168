"""Words of warnings about learning."""

from __future__ import annotations

from dkl.estimators.advice import percent


def test_a_small_tol_is_not_zero():
    """It is told with a digit that is not zero."""
    assert [percent(tol) for tol in (1e-3, 1e-4, 2e-5, 1e-9)] == ["0.10%", "0.01%", "0.002%", "1e-07%"]
