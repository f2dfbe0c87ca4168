"""dkl predict: predictions of a model for new rows, in their order."""

from __future__ import annotations

from typing import Any

import click

from dkl.cli.layout import Verb, reading_options
from dkl.cli.log import event_log, log_option
from dkl.cli.where import cluster, is_spread, runs_somewhere

EXAMPLE = """dkl predict model.zarr new.csv answers.csv
dkl predict model.zarr covtype.zarr answers.zarr --split test --scores"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    help="Write the predictions of MODEL for DATA (a data set, of which its split test, any Zarr, or files, which are "
    "prepared as the training rows were) to OUT: .csv, .parquet or .zarr. On a cluster workers write .zarr, and "
    ".parquet as a folder of parts, and the same command goes on after an interruption.",
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
    from dkl.store.answers import check_answers, open_answers

    fitted = load_predictor(model)
    names = score_names(fitted) if scores else []
    shares = share_names(fitted) if proba else []
    how = {"target": "none", "missing": missing, "na": na}
    if not is_spread(where):
        check_answers(out, overwrite)  # before rows are prepared
    with (
        event_log(log, "predict", model=model, data=list(data), out=out),
        cluster(**where),
        rows_for(fitted, data, split, how) as rows,
    ):
        given = {"score": names, "probability": shares}
        count = _by_workers(fitted, rows, out, given, overwrite) if is_spread(where) else None
        dropped = dropped_rows(rows)
        if count is None:
            count, numbers = 0, source_rows(rows)
            with open_answers(out, names, overwrite, shares, text_classes(fitted)) as answers:
                for place, predicted, values in fitted.predict_blocks(rows, scores, proba):
                    known = place if numbers is None else read_rows(numbers, place[0], place[-1] + 1)
                    answers.add(known, predicted, values)
                    count += len(place)
    left_out = f" ({dropped:,} rows with missing values have none)" if dropped else ""
    click.echo(f"{count:,} predictions are in {shown(out)}{left_out}")


def _by_workers(fitted: Any, rows: str, out: str, names: dict[str, list[str]], overwrite: bool) -> int | None:
    """How many predictions the workers have written; None if they cannot."""
    if not hasattr(fitted, "predict_to"):
        return None
    from dkl.store.folder import absolute

    numbers = None if source_rows(rows) is None else absolute(rows)
    found: int | None = fitted.predict_to(rows, out, names, overwrite, numbers)
    return found


def text_classes(model: Any) -> list[str]:
    """The classes of a model, if they are names."""
    classes = getattr(model, "classes_", None)
    return [] if classes is None or classes.dtype.kind in "fiub" else [str(name) for name in classes]


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
