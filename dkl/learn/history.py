"""What happened while a kernel was learned: one row for each iteration, kept as columns and shown as xarray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

COLUMNS = {
    "objective": "what is minimised, penalties included",
    "validation_error": "mean squared error on held-out rows (of gcv: its estimate; of joint: J; of log_loss: that)",
    "unseen_error": "mean squared error on the rows that early_stopping sets aside",
    "error_rate": "share of held-out rows whose class was not chosen (of gcv and joint: of the training rows)",
    "gradient_norm": "largest coordinate of the gradient in log sigma (in sigma / start with sigma_l1; in H and b)",
    "alpha": "ridge penalty",
    "seconds": "time since the beginning of the fit's learning",
    "rows": "rows of the passes",
    "passes": "passes over those rows so far",
    "stage": "0: several starts on a share of the blocks, then ever more blocks",
    "start": "number of the start",
}
"""Names of the columns and what they hold; `sigma` (iteration, input) stands beside them."""


class History:
    """Rows that are appended to, and columns to keep or to show."""

    def __init__(self, columns: Mapping[str, np.ndarray] | None = None) -> None:
        self.columns: dict[str, list] = {
            name: [] if columns is None else list(columns[name]) for name in (*COLUMNS, "sigma")
        }  # fmt: skip

    def __len__(self) -> int:
        return len(self.columns["objective"])

    def append(self, **row: Any) -> None:
        """One iteration; a learner without unseen rows has no error on them."""
        for name, column in self.columns.items():
            column.append(row.get(name, float("nan")) if name == "unseen_error" else row[name])

    def end_at(self, objective: float) -> None:
        """Let the last row be the one that was kept: of several starts it may have been another."""
        column = self.columns["objective"]
        if column[-1] != objective:
            kept = column.index(objective)
            for name, values in self.columns.items():
                values.append(values[-1] if name in ("seconds", "passes") else values[kept])

    def arrays(self) -> dict[str, np.ndarray]:
        """Columns as arrays."""
        return {name: np.asarray(column, np.float64) for name, column in self.columns.items()}


class Leg(NamedTuple):
    """A start, or a later stage, and how many iterations it took."""

    stage: int
    start: int
    rows: int
    iterations: int


def legs_of(columns: Mapping[str, Any], beginning: int = 1) -> list[Leg]:
    """Iterations of each start and then of each later stage: its rows of the history, less the one where it began.

    A row without a pass repeats another and counts for none. beginning=0: every row is a step, as of the log loss.
    """
    names = ("stage", "start", "rows", "passes")
    stage, start, rows, passes = (np.asarray(columns[name], np.int64) for name in names)
    own = np.diff(passes, prepend=0) > 0
    legs = []
    for s, k in sorted(set(zip(stage.tolist(), start.tolist(), strict=True))):
        here = np.flatnonzero((stage == s) & (start == k) & own)
        legs.append(Leg(s, k, int(rows[here[0]]), len(here) - beginning))
    return legs


def said_of(legs: Sequence[Leg]) -> str:
    """How many iterations there were, of which starts and stages."""
    total = sum(leg.iterations for leg in legs)
    text = f"{total:,} iteration{'s' * (total != 1)}"
    first, later = ([leg for leg in legs if bool(leg.stage) == late] for late in (False, True))
    if not later and len(first) == 1:
        return text
    each = " + ".join(f"{leg.iterations:,}" for leg in first)
    parts = [f"{each} {f'of {len(first)} starts ' if len(first) > 1 else ''}on {first[0].rows:,} rows"]
    parts += [f"then {leg.iterations:,} on {leg.rows:,} rows" for leg in later]
    return f"{text} ({', '.join(parts)})"


def history_dataset(arrays: Mapping[str, np.ndarray], inputs: Mapping[str, Any]) -> Any:
    """The columns as an xarray Dataset; `inputs` are coordinates along the inputs, such as names and groups."""
    import xarray as xr

    whole = ("rows", "passes", "stage", "start")
    variables: dict[str, tuple] = {
        name: (("iteration",), values.astype(int) if name in whole else values, {"long_name": COLUMNS[name]})
        for name, values in arrays.items()
        if name != "sigma"
    }
    variables["sigma"] = (("iteration", "input"), arrays["sigma"], {"long_name": "sigma of each input"})
    coords = {name: (("input",), np.asarray(values)) for name, values in inputs.items()}
    return xr.Dataset(variables, coords={"iteration": np.arange(len(arrays["objective"])), **coords})
