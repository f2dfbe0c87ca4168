"""What happened while a kernel was learned: one row for each iteration, kept as columns and shown as xarray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
