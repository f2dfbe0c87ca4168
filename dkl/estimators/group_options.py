"""What the parameters of an estimator of several kernels ask of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.estimators.group_learning import holds_a_share_out
from dkl.features.channel import Channel
from dkl.features.nystroem import NystroemMap
from dkl.features.projected import ProjectedMap
from dkl.features.side_by_side import SideBySide
from dkl.learn.group_weights import GroupOptions
from dkl.losses import Square, find_loss
from dkl.options.multiple import penalty_of
from dkl.prepare.prepared import Prepared

DEBIAS = np.logspace(-4, 3, 8)
"""alphas of the ridge of debias=True."""
ROUNDS = 100
"""Most rounds of the solver for each alpha."""


def is_square(model: Any) -> bool:
    """Whether the sums of one pass have the whole path."""
    return isinstance(find_loss(model.loss), Square)


def chooses(model: Any) -> bool:
    """Whether there is a path to choose from."""
    return (isinstance(model.alpha, str) or np.size(model.alpha) > 1) and not holds_a_share_out(model)


def _size(features: Any) -> int:
    """Features of a map before its axes; of landmarks their number, as those that add but rounding change no kernel."""
    while isinstance(features, (ProjectedMap, Channel)):
        features = features.of
    return len(features.landmarks) if isinstance(features, NystroemMap) else features.n_features


def group_options(model: Any, data: Prepared) -> GroupOptions:
    """The groups of the maps, and the path through them."""
    features = data.features
    assert isinstance(features, SideBySide)
    sizes = np.array([_size(m) for m in features.channels], float)
    alphas = None if isinstance(model.alpha, str) else np.atleast_1d(np.asarray(model.alpha, float))
    penalty, ridge = penalty_of(model.penalty)
    anew = (DEBIAS if is_square(model) else 1.0) if model.debias is True else model.debias
    return GroupOptions(
        features.column_group,
        bool(model.fit_intercept),
        eta=None if penalty == "l2" else np.sqrt(sizes / sizes.mean()),
        alphas=alphas,
        count=int(model.n_alphas),
        least=float(model.eps),
        ridge=ridge,
        penalty=penalty,
        rule=model.rule if chooses(model) else "last",
        by_output=bool(model.by_output),
        refit=None if anew is False else anew,
        tol=float(model.solver_tol),
        max_iter=ROUNDS,
        names=model._layout.names.groups,
        narrow=data.dtype == np.float32,
    )
