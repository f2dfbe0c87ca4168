"""dkl evaluate: score a model on rows with known targets."""

from __future__ import annotations

import json
from typing import Any

import click

from dkl.cli.layout import Verb, grid, pairs, reading_options
from dkl.cli.log import event_log, log_option
from dkl.cli.where import cluster, runs_somewhere

SHOWN = 12
"""Classes that a table shows; --json has them all."""


@click.command(
    cls=Verb,
    example="dkl evaluate model.zarr covtype.zarr\ndkl evaluate model.zarr new.csv --json | jq .accuracy",
    help="Compare the predictions of MODEL with the targets of DATA: a data set (its split test, if it has splits), or "
    "files, which are prepared as the training rows were.",
)
@click.argument("model", metavar="MODEL.zarr", type=click.Path())
@click.argument("data", nargs=-1, required=True, metavar="DATA...", type=click.Path())
@click.option("--split", help="The split to evaluate on.")
@reading_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the whole confusion matrix.")
@log_option
@runs_somewhere
def evaluate(
    model: str, data: tuple[str, ...], split: str | None, missing: str | None, na: tuple[str, ...], as_json: bool,
    log: str | None, **where: Any,
) -> None:  # fmt: skip
    """The verb."""
    from dkl.cli.open import load_predictor, rows_for
    from dkl.store.dataset import open_node

    fitted = load_predictor(model)
    with (
        event_log(log, "evaluate", model=model, data=list(data)),
        cluster(**where),
        rows_for(fitted, data, split, {"missing": missing, "na": na}) as rows,
    ):
        if "y" not in open_node(rows):
            raise ValueError(f"{data[0]!r} has no target y to compare with; dkl predict writes predictions without one")
        found = fitted.evaluate(rows)
        if log is not None:
            from dkl.engine.progress import tell

            tell(event="evaluation", **{k: v for k, v in found.items() if isinstance(v, (int, float, str))})
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo(numbers(found) if found["task"] == "regression" else classes(found))


def numbers(found: dict) -> str:
    """The errors of a regression."""
    return pairs(
        [
            ("rows", f"{found['rows']:,}"),
            ("R^2", f"{found['r2']:.4f}"),
            ("root mean square error", f"{found['rmse']:.6g}"),
            ("mean absolute error", f"{found['mae']:.6g}"),
            ("largest error", f"{found['largest_error']:.6g}"),
        ]
    )


def classes(found: dict) -> str:
    """Accuracy, probabilities, classes, confusion and calibration."""
    head = [
        ("rows", f"{found['rows']:,}"),
        ("accuracy", f"{found['accuracy']:.4f}"),
        ("error", f"{found['error']:.4f}"),
    ]
    if found["top5_error"] is not None:
        head.append(("top-5 error", f"{found['top5_error']:.4f}"))
    if found["mean_recall"] is not None:
        head.append(("mean recall", f"{found['mean_recall']:.4f}"))
    if found["unknown_labels"]:
        head.append(("unknown labels", f"{found['unknown_labels']:,} rows, counted as errors"))
    named = [("log loss", "log_loss"), ("Brier score", "brier_score"), ("calibration error", "calibration_error")]
    head += [(name, f"{found[key]:.4f}") for name, key in named if found[key] is not None]
    by_class = sorted(found["classes"], key=lambda c: (c["recall"] is None, c["recall"] or 0))[:SHOWN]
    by_class = [c for c in found["classes"] if c in by_class]
    left_out = len(found["classes"]) - len(by_class)
    rows = [[str(c["class"]), c["rows"], c["recall"], c["precision"]] for c in by_class]
    parts = [pairs(head), grid(["class", "rows", "recall", "precision"], rows)]
    if left_out:
        parts[-1] += f"\n... and {left_out:,} more classes with a higher recall (--json has all)"
    else:
        names = [str(c["class"]) for c in found["classes"]]
        lines = [[name, *row] for name, row in zip(names, found["confusion"], strict=True)]
        parts.append(grid(["true \\ said", *names], lines))
    bins = [
        [f"{b['from']:.1f} to {b['to']:.1f}", b["rows"], b["confidence"], b["accuracy"]]
        for b in found["calibration"] or []
        if b["rows"]
    ]
    if bins:
        parts.append(grid(["confidence", "rows", "mean", "came true"], bins))
    return "\n\n".join(parts)
