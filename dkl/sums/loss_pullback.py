"""The last pass of a hypergradient of any loss: every row pulls the objective back to the parameters of the map.

    Psi_bar = L_B B' + L_A A',   L_B = w (gain l'(z) - train l''(z) F),   L_A = -w train l'(z),   z = Psi B + b
    p_bar = (dPsi/dp)' Psi_bar,   F = Psi A + a

That of sums/pullback.py for squared errors, with l' and l'' of the loss in the place of E and 1. Without adjoints
(the joint objective) L_B = w gain l'(z) is all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.sums.pullback import TILE, PullbackProgram, gradient_cost


def loss_gradient_cost(
    sizes: Sizes, of: MapCost, systems: int, pulled: int, folds: int = 1, adjoints: bool = True
) -> Cost:
    """What the pass costs: that of squared errors, and scores, slopes and curvatures of one system in float64."""
    c = max(1, sizes.outputs)
    cost = gradient_cost(sizes, of, systems * c, pulled, folds, adjoints)
    return replace(cost, thread_bytes=cost.thread_bytes + TILE * 56 * c)


@dataclass(frozen=True)
class LossPullbackProgram(PullbackProgram):
    """The pass: adjoints with a loss in; PullbackSums out."""

    def cost(self) -> Cost:
        """What the pass costs."""
        pulled = sum(self.gram.features.map.parameters[name].size for name in self.wanted)
        a, own = self.adjoint, replace(self.gram.sizes, outputs=self.gram.targets.n_outputs)
        systems = a.coef.shape[1] // own.outputs
        return loss_gradient_cost(own, self.gram.map_cost, systems, pulled, self.gram.folds, a.adjoint.size > 0)

    def _left(
        self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray, fold: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """[L_B, L_A] in place of [Psi B, Psi A], and the weight of held-out rows that are put in the wrong class."""
        a, q, c = self.adjoint, self.adjoint.coef.shape[1], self.gram.targets.n_outputs
        assert a.loss is not None
        z, adjoint = scores[:, :q], scores[:, q:]
        z += a.intercept.astype(scores.dtype)
        wrong = self._wrong(z, y, weight, fold)
        for j in range(0, q, c):
            here = slice(j, j + c)
            own = z[:, here].astype(np.float64)
            slope = a.loss.slope(own, y) * weight[:, None]
            if not adjoint.shape[1]:
                z[:, here] = slope * a.gain[fold, j, None]
                continue
            train = a.train[fold, j, None]
            along = adjoint[:, here].astype(np.float64) + a.adjoint_intercept[here]
            bent = a.loss.curved(own, y, along) * (weight[:, None] * train)
            z[:, here] = slope * a.gain[fold, j, None] - bent
            adjoint[:, here] = -train * slope
        return scores, wrong
