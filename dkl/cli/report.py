"""dkl report: one page about a model."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import Any

import click

from dkl.cli.layout import Verb, reading_options
from dkl.cli.options import BY_NAME, DEFAULTS, FAMILY, NOT_FLAGS, SINGLE
from dkl.cli.where import cluster, runs_somewhere


@click.command(
    cls=Verb,
    example="dkl report model.zarr covtype.zarr -o report.html\ndkl report model.zarr new.csv -o new.html",
    help="Write one self-contained HTML page about MODEL: checks, scores on DATA (every split of a data set, or files, "
    "which are prepared as the training rows were), pictures, and the command that makes it again.",
)
@click.argument("model", metavar="MODEL.zarr", type=click.Path())
@click.argument("data", nargs=-1, metavar="[DATA...]", type=click.Path())
@click.option("-o", "--out", default="report.html", metavar="FILE.html", help="Where to write it [report.html].")
@click.option("--split", help="The only split to score.")
@click.option("--title", help="What stands on top (the name of the estimator).")
@reading_options
@click.option("--overwrite", is_flag=True, help="Replace FILE.html.")
@runs_somewhere
def report(
    model: str, data: tuple[str, ...], out: str, split: str | None, title: str | None, missing: str | None,
    na: tuple[str, ...], overwrite: bool, **where: Any,
) -> None:  # fmt: skip
    """The verb."""
    from dkl.cli.open import load_predictor, rows_for
    from dkl.report import make_report
    from dkl.report.build import check_path
    from dkl.sources.shown import shown
    from dkl.store.dataset import open_node

    check_path(out, overwrite)
    fitted, command = load_predictor(model), command_of(model, data)
    with cluster(**where), ExitStack() as opened:
        rows = {}
        for name in splits_of(data, split):
            how = {"missing": missing, "na": na}
            path = opened.enter_context(rows_for(fitted, data, name, how))
            if "y" not in open_node(path):
                raise ValueError(
                    f"{shown(data[0])!r} has no target y to compare with; leave DATA out for a report without it"
                )
            rows[name or "rows"] = path
        made = make_report(fitted, rows or None, title=title, command=command(fitted))
    made.save(out)
    click.echo(f"{shown(out)} is {len(made.html) / 1000:,.0f} kB; open it in a browser")


def splits_of(data: tuple[str, ...], split: str | None) -> list[str | None]:
    """The splits to score: that which is asked for, or all that the data set has."""
    from dkl.store.dataset import is_dataset, open_node
    from dkl.store.folder import exists

    if not data or split is not None:
        return [split] if data else []
    if len(data) == 1 and exists(data[0]) and is_dataset(data[0]):
        return list(open_node(data[0]).attrs.get("splits") or [None])
    return [None]


def command_of(path: str, data: tuple[str, ...]) -> Any:
    """A function of the fitted model: the `dkl fit` that makes it again."""
    from dkl.sources.shown import shown

    def words(model: Any) -> str:
        from sklearn.base import is_classifier

        from dkl.options.fields import options_of

        source = shown(data[0]) if data else "DATA.zarr"  # the page may be passed on
        flags = ["dkl", "fit", source, shown(path)]
        if model.family != SINGLE:
            flags += [FAMILY.flag, model.family]
        flags += ["--task", "classification" if is_classifier(model) else "regression"]
        for option in options_of(model):
            value = getattr(model, option.name)
            usual = DEFAULTS.get(option.name, option.default)
            if option.name in BY_NAME and option.name not in NOT_FLAGS and repr(value) != repr(usual):
                flags += [option.flag, flag_text(value)]
        return shlex.join(flags)

    return words


def flag_text(value: Any) -> str:
    """A value as a flag takes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return ",".join(map(flag_text, value)) if isinstance(value, (list, tuple)) else str(value)
