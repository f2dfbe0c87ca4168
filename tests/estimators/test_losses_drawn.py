"""Any loss, penalty and solver on random weighted problems: the certificate holds, and no solver finds less."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.loss_oracle import PENALTIES, SOLVERS, TARGETS, Drawn

ASKED = [(target, loss) for target, losses in TARGETS.items() for loss in losses]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sampled_from(ASKED), st.sampled_from(PENALTIES), st.sampled_from(SOLVERS), st.integers(0, 1000))
def test_the_certificate_holds_at_the_least_point(asked, penalty, solver, seed):
    target, loss = asked
    drawn = Drawn.of(seed, target)
    model = drawn.fitted(loss, penalty, solver, 1e-7, max_iter=200)
    assume(model is not None)
    dense = drawn.dense(model, loss, penalty)
    assert model.certificate_["met"]
    assert dense.of_model(model) <= dense.least() * (1 + 1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_newton_goes_on_where_gains_are_but_rounding(penalty):
    """The diagonal curvature of three classes overshoots in the end, where the objective can no longer tell."""
    model = Drawn.of(0, "three classes").fitted("log_loss", penalty, "newton", 1e-8, max_iter=200)
    assert model.certificate_["met"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("penalty", ["l2", "l1", "group_l21", "elastic"])
def test_the_oracle_agrees_with_scikit_learn(target, penalty):
    for loss in ("square", "log_loss"):
        if loss in TARGETS[target]:
            drawn = Drawn.of(1, target)
            dense = drawn.dense(drawn.fitted(loss, penalty, "auto", 1e-6), loss, penalty)
            other = dense.from_sklearn()
            assert other is None or dense.least() == pytest.approx(other, rel=1e-6)
