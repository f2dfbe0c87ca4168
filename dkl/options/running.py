"""Parameters of the run: seed, precision, and where it happens."""

from __future__ import annotations

from dkl.options import rules
from dkl.options.option import Option

PLACES = ("scheduler", "client")
"""Where a cluster runs a small solve."""

RUNNING = (
    Option(
        "random_state", None, "Seed of all random draws.", takes="int, Generator or RandomState", parse=int,
        optional=True,
        doc="Frequencies, landmarks and folds are drawn from it.",
    ),
    Option(
        "dtype", None, "Precision: float32 or float64 (the data's).", choices=rules.DTYPES, optional=True,
        rule=rules.precision, sample="float32",
        doc="None follows the input. Sums over blocks are always float64.",
    ),
    Option("place", "scheduler", "Where to solve: scheduler or client.", choices=PLACES,
        doc="It matters only with a cluster."),
    Option(
        "checkpoint", None, "Folder of checkpoints.", takes="path or URL", optional=True, rule=rules.folder,
        doc="All workers must see the folder. It keeps the sums, and what has been learned after every iteration. A "
        "fit with the same parameters and rows resumes from it, with the same bits; only max_iter, tol and max_time "
        "may differ, and learning that stopped at one of them continues if the limit is further away. fit(resume=True) "
        "requires a checkpoint; resume=False starts over. `save` removes it.",
    ),
    Option("max_rows", 10_000, "Most rows accepted.", takes="int", rule=rules.count,
        doc="An n x n kernel matrix must fit in memory."),
    Option("verbose", 1, "0 hides the progress line.", takes="int"),
)  # fmt: skip
