"""Which solver finds the weights: the one that is asked for, or the one with the least work.

    work = rows sum over passes of (flops + 24 cosines) + flops of the solves

It looks at nothing that differs between machines: the same fit takes the same solver everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

from dkl.cost import MapCost, Sizes
from dkl.engine.memory import gib
from dkl.learn.weight_solvers import SOLVERS, WeightSolver, WeightTask
from dkl.penalties import L2

COSINE = 24.0
"""Flops that take as long as a cosine."""
MOST_GRAM = 4 * 2**30
"""Bytes of sums by fold above which no gram is made if there is another way."""
LEAST_WIDE = 4096
"""Features below which a gram is small: it is made whatever it costs."""


class Choice(NamedTuple):
    """A solver, and why."""

    solver: WeightSolver
    why: str


def find_solver(name: str, task: WeightTask, sizes: Sizes, of: MapCost, folds: int) -> Choice:
    """The solver of a name; "auto" chooses."""
    if name != "auto":
        refusal = SOLVERS[name].refuses(task, sizes.is_class)
        if refusal:
            fit = ", ".join(repr(one.name) for one in SOLVERS.values() if not one.refuses(task, sizes.is_class))
            more = f"; solver={fit} can" if fit and "use solver" not in refusal else ""
            raise ValueError(f"solver={name!r} {refusal}{more}")
        return Choice(SOLVERS[name], f"as asked for: {SOLVERS[name].about}")
    able = [one for one in SOLVERS.values() if not one.refuses(task, sizes.is_class)]
    if not able:
        last = "lbfgs" if isinstance(task.penalty, L2) else "newton"
        refusal = SOLVERS[last].refuses(task, sizes.is_class)
        raise ValueError(f"this loss and penalty take solver={last!r}, which {refusal}")
    first = able[0]
    if first.name != "cholesky" or SOLVERS["cg"] not in able:
        return Choice(first, first.about)
    return _gram_or_products(task, sizes, of, folds)


def _gram_or_products(task: WeightTask, sizes: Sizes, of: MapCost, folds: int) -> Choice:
    """Cholesky, unless its sums are too large or its flops are more than those of conjugate gradients."""
    direct, products = SOLVERS["cholesky"], SOLVERS["cg"]
    first = direct.costs(sizes, of, folds, task)[0]
    flops = {one.name: work_of(one, sizes, of, folds, task) for one in (direct, products)}
    said = f"{flops['cholesky']:.1e} flops by a gram, {flops['cg']:.1e} by about {products.passes(task):.0f} passes"
    if of.features < LEAST_WIDE:
        return Choice(direct, f"{of.features:,} features have a small gram; {said}")
    if first.sums_bytes > MOST_GRAM:
        return Choice(products, f"the gram would take {gib(first.sums_bytes)} in each sum; {said}")
    return Choice(products if flops["cg"] < flops["cholesky"] else direct, said)


def work_of(solver: WeightSolver, sizes: Sizes, of: MapCost, folds: int, task: WeightTask) -> float:
    """Flops of all passes and solves; a cosine counts as many as take its time."""
    passes = solver.costs(sizes, of, folds, task)
    once = [sizes.rows * (one.flops + COSINE * one.cosines) + one.solve.flops for one in passes if not one.repeated]
    again = [sizes.rows * (one.flops + COSINE * one.cosines) for one in passes if one.repeated]
    return sum(once) + solver.passes(task) * sum(again)
