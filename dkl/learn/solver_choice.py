"""Which solver finds the weights: the one that is asked for, or the one with the least work.

    work = rows sum over passes of (flops + 24 cosines) + flops of the solves

It looks at nothing that differs between machines: the same fit takes the same solver everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.memory import count, gib, large
from dkl.learn.dual import dual_fits
from dkl.learn.weight_solvers import SOLVERS, WeightSolver, WeightTask
from dkl.penalties import L2

COSINE = 24.0
"""Flops that take as long as a cosine."""
MOST_GRAM = 8 * 2**30
"""Bytes of sums by fold and of the solve after them above which no gram is made if there is another way."""
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
        return Choice(SOLVERS[name], f"as asked for: {_about(SOLVERS[name], task, sizes, of, folds)}")
    able = [one for one in SOLVERS.values() if not one.refuses(task, sizes.is_class)]
    if not able:
        last = "lbfgs" if isinstance(task.penalty, L2) else "newton"
        refusal = SOLVERS[last].refuses(task, sizes.is_class)
        raise ValueError(f"this loss and penalty take solver={last!r}, which {refusal}")
    first = able[0]
    if first.name != "cholesky" or SOLVERS["cg"] not in able:
        return Choice(first, _about(first, task, sizes, of, folds))
    return _gram_or_products(task, sizes, of, folds)


def _about(solver: WeightSolver, task: WeightTask, sizes: Sizes, of: MapCost, folds: int) -> str:
    """How a solver goes about it, and how many passes it takes if there is more than one."""
    if solver.name == "cholesky" and dual_fits(sizes.rows, of.features, task.reduce is not None):
        return _dual(sizes)
    passes = sum(one.count for one in solver.costs(sizes, of, folds, task))
    return f"{solver.about}; about {passes:.0f} passes" if passes > 1 else solver.about


def _dual(sizes: Sizes) -> str:
    return f"dual: with fewer rows than features it solves for {count(sizes.rows, 'unknown')}"


def _gram_or_products(task: WeightTask, sizes: Sizes, of: MapCost, folds: int) -> Choice:
    """Cholesky, unless its sums and its solve are too large or its flops are more than those of conjugate gradients."""
    direct, products = SOLVERS["cholesky"], SOLVERS["cg"]
    by_gram, by_products = (one.costs(sizes, of, folds, task) for one in (direct, products))
    flops, other = work_of(sizes, by_gram), work_of(sizes, by_products)
    passes = sum(one.count for one in by_products)
    is_dual = dual_fits(sizes.rows, of.features, task.reduce is not None)
    by = "" if is_dual else " by a gram"
    said = f"{large(flops)} flops{by}, {large(other)} by about {passes:.0f} passes of cg"
    peak = max(one.sums_bytes + one.solve.bytes for one in by_gram)
    if of.features < LEAST_WIDE:
        return Choice(direct, _dual(sizes) if is_dual else f"{of.features:,} features have a small gram; {said}")
    if peak > MOST_GRAM:
        return Choice(products, f"cholesky would take {gib(peak)}; {said}")
    if other < flops:
        return Choice(products, said)
    return Choice(direct, f"{_dual(sizes)}; {said}" if is_dual else said)


def work_of(sizes: Sizes, passes: Sequence[Cost]) -> float:
    """Flops of all passes and solves; a cosine counts as many as take its time."""
    return sum(one.count * (sizes.rows * (one.flops + COSINE * one.cosines) + one.solve.flops) for one in passes)
