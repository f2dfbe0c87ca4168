"""dkl predict: predictions of a model for new rows, in their order."""

from __future__ import annotations

from typing import Any

import click

from dkl.cli.layout import Verb, reading_options
from dkl.cli.log import event_log, log_option
from dkl.cli.where import cluster, runs_somewhere

EXAMPLE = """dkl predict model.zarr new.csv answers.csv
dkl predict model.zarr covtype.zarr answers.zarr --split test --scores"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    help="Write the predictions of MODEL for DATA (a data set, of which its split test, any Zarr, or files, which are "
    "prepared as the training rows were) to OUT: .csv, .parquet or .zarr.",
)
@click.argument("model", metavar="MODEL.zarr", type=click.Path())
@click.argument("data", nargs=-1, required=True, metavar="DATA...", type=click.Path())
@click.argument("out", metavar="OUT", type=click.Path())
@click.option("--split", help="The split to predict for.")
@reading_options
@click.option("--scores", is_flag=True, help="Write the score of every class too.")
@click.option("--proba", is_flag=True, help="Write the probability of every class too.")
@click.option("--overwrite", is_flag=True, help="Replace OUT.")
@log_option
@runs_somewhere
def predict(
    model: str, data: tuple[str, ...], out: str, split: str | None, missing: str | None, na: tuple[str, ...],
    scores: bool, proba: bool, overwrite: bool, log: str | None, **where: Any,
) -> None:  # fmt: skip
    """The verb."""
    from dkl.cli.open import load_predictor, rows_for
    from dkl.sources.damage import read_rows
    from dkl.sources.shown import shown
    from dkl.store.answers import open_answers

    fitted = load_predictor(model)
    names = score_names(fitted) if scores else []
    shares = share_names(fitted) if proba else []
    with (
        event_log(log, "predict", model=model, data=list(data), out=out),
        cluster(**where),
        open_answers(out, names, overwrite, shares) as answers,
        rows_for(fitted, data, split, {"target": "none", "missing": missing, "na": na}) as rows,
    ):
        count, numbers, dropped = 0, source_rows(rows), dropped_rows(rows)
        for place, predicted, values in fitted.predict_blocks(rows, scores, proba):
            known = place if numbers is None else read_rows(numbers, place[0], place[-1] + 1)
            answers.add(known, predicted, values)
            count += len(place)
    left_out = f" ({dropped:,} rows with missing values have none)" if dropped else ""
    click.echo(f"{count:,} predictions are in {shown(out)}{left_out}")


def source_rows(path: str) -> Any:
    """The number in the source of each row of a data set; None for other Zarr."""
    from dkl.sources.safe_zarr import member
    from dkl.sources.whole import whole
    from dkl.store.dataset import open_node

    node = open_node(path)
    return whole(member(node, "row", path)) if node.attrs.get("format") == "dkl-dataset" else None


def dropped_rows(path: str) -> int:
    """Rows of the source that a data set left out."""
    from dkl.store.dataset import open_node

    return int(open_node(path).attrs.get("dropped", 0))


def score_names(model: Any) -> list[str]:
    """Columns of the scores: one for each class; of two classes one, for the second."""
    if not hasattr(model, "classes_"):
        raise click.UsageError(
            f"--scores is for classification, and this is a {type(model).__name__}, whose predictions are its scores"
        )
    names = [f"score {label}" for label in model.classes_.tolist()]
    return names[1:] if len(names) == 2 else names


def share_names(model: Any) -> list[str]:
    """Columns of the probabilities: one for each class, also of two."""
    if not hasattr(model, "classes_"):
        raise click.UsageError(f"--proba is for classification, and this is a {type(model).__name__}")
    if not hasattr(model, "predict_proba"):
        from dkl.estimators.probabilities import why_not

        raise click.UsageError(f"--proba: {why_not(model)}")
    return [f"probability {label}" for label in model.classes_.tolist()]
