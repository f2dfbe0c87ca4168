"""What a report says beside its pictures and checks, as plain values: the JSON that stands in the page."""

from __future__ import annotations

import json
import platform
from typing import Any

import numpy as np

from dkl.engine.memory import duration, gib
from dkl.estimators.summary import summary
from dkl.report.checks import Check
from dkl.report.splits import Scored

MOST_TEXT = 120
"""Letters of a name in the page; a longer one is cut."""
MOST_COLUMNS = 20
MOST_VALUES = 2_000
"""Values of one list in the JSON."""


def shortened(value: Any) -> Any:
    """Plain values with numbers that JSON has, names of a bounded length and lists of a bounded number."""
    if isinstance(value, dict):
        return {short(key): shortened(item) for key, item in list(value.items())[:MOST_VALUES]}
    if isinstance(value, (list, tuple)):
        return [shortened(item) for item in list(value)[:MOST_VALUES]]
    if isinstance(value, np.ndarray):
        return shortened(value.tolist())
    if isinstance(value, (bool, int)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.6g}") if np.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return short(value)


def short(value: Any) -> str:
    """A name that fits."""
    text = str(value)
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"


def facts_of(model: Any, splits: list[Scored], checks: list[Check], command: str) -> dict[str, Any]:
    """The report as plain values; the confusion matrix is left out, as it grows with the square of the classes."""
    from importlib.metadata import version

    def figures(one: Scored) -> dict[str, Any]:
        found: dict[str, Any] = {name: dict(span._asdict()) for name, span in one.figures.items()}
        if one.evaluation is not None:
            found["classes"] = one.evaluation["classes"]
            found["calibration"] = one.evaluation["calibration"]
        return found

    return dict(shortened({
        "dkl": version("dkl"), "python": platform.python_version(), "model": summary(model),
        "params": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "splits": {one.name: {"rows": one.rows, **figures(one)} for one in splits},
        "checks": [one._asdict() for one in checks], "fit": getattr(model, "fit_info_", None), "command": command,
    }))  # fmt: skip


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    return value if isinstance(value, (str, int, float, bool, type(None), list, tuple, dict)) else repr(value)


def script_safe(value: Any) -> str:
    """JSON that may stand inside <script>: no text of it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def took_of(model: Any, plan: Any) -> list[tuple[str, str, str]]:
    """Lines of what was planned and what was measured: the name, the plan, the measurement."""
    info, history = getattr(model, "fit_info_", None), getattr(model, "history_", None)
    rows = []
    if info is not None:
        place = "this process" if info["engine"] == "embedded" else f"{info['workers']} workers of a cluster"
        solve = "" if info["engine"] == "embedded" else f" (solve: {gib(info['planned_solve_bytes'])})"
        rows.append(("peak memory", gib(info["planned_bytes"]) + solve, f"{gib(info['bytes'])}, {place}"))
        rows.append(("time", "dkl plan measures the machine first", duration(info["seconds"])))
        rows.append(("rows and threads", "", f"{info['rows']:,} rows, {info['threads']} threads"))
    if history is not None and info is None:
        rows.append(("time of learning", "", duration(float(np.asarray(history["seconds"])[-1]))))
    if history is not None:
        passes = f"{int(np.asarray(history['passes'])[-1]):,}"
        rows.append(("passes of learning", "", passes))
    if plan is not None:
        rows.append(("peak memory, planned for these rows", gib(plan.worker_bytes), ""))
        rows.append(("arithmetic of a pass", f"{plan.flops:.3g} flops", ""))
        rows.append(("bytes of a pass", gib(plan.bytes_read), ""))
    return rows


def recipe_of(model: Any) -> list[tuple[str, str]]:
    """How rows become inputs."""
    names = getattr(model, "feature_names_in_", None)
    rows = [("inputs", f"{model.n_features_in_:,}")]
    recipe = getattr(model, "recipe_", None)
    if recipe is None:
        if names is not None:
            rows.append(
                ("columns", ", ".join(short(name) for name in names[:20]) + (" ..." if len(names) > 20 else ""))
            )
        return [*rows, ("recipe", "none: the rows came as they are, from Python or from a plain array")]
    for channel in recipe["channels"]:
        columns = channel.get("columns")
        width = f"{channel['width']:,} columns" if columns is None else f"{len(columns):,} columns"
        rows.append((f"channel {short(channel['name'])}", f"{width}, scale {channel['scale']}"))
    rows.append(("target", short(recipe.get("target") or "-")))
    return [*rows, ("missing values", short(recipe.get("missing", "-")))]
