"""dkl fit: a data set to a model. A killed fit can be resumed."""

from __future__ import annotations

import time
from typing import Any

import click

from dkl.cli.config import merge, write_config
from dkl.cli.families import ModelVerb
from dkl.cli.layout import pairs
from dkl.cli.log import event_log, log_option
from dkl.cli.options import BY_NAME, NOT_FLAGS, SINGLE, model_options
from dkl.cli.runs import RUN, run_path
from dkl.cli.where import cluster, runs_somewhere
from dkl.estimators.summary import lines, summary

RESUME = ("never", "auto", "always")
EXAMPLE = """dkl fit covtype.zarr model.zarr --n-components 1000 --learn cv --groups each
dkl fit s3://bucket/rows.zarr s3://bucket/model.zarr --scheduler cluster.json"""


@click.command(
    cls=ModelVerb,
    example=EXAMPLE,
    help="Fit a model to DATA (its split train, if it has splits) and write it to MODEL.",
)
@click.argument("data", required=False, metavar="DATA.zarr", type=click.Path())
@click.argument("target", required=False, metavar="MODEL.zarr", type=click.Path())
@click.option("--split", help="The split to fit to.")
@click.option("--unlabelled", metavar="PATH", help="Rows without y that help to find --reduce axes.")
@click.option("--config", metavar="FILE.toml", type=click.Path(), help="Read options from a file; flags win.")
@click.option("--write-config", "write_to", metavar="FILE.toml", help="Write a commented file (- prints it) and stop.")
@click.option("--overwrite", is_flag=True, help="Replace MODEL.")
@click.option(
    "--resume",
    type=click.Choice(RESUME),
    default="never",
    metavar="VALUE",
    help="auto: start or resume; always; never [never].",
)
@log_option
@model_options
@runs_somewhere
def fit(
    data: str | None, target: str | None, split: str | None, unlabelled: str | None, config: str | None,
    write_to: str | None, overwrite: bool, resume: str, log: str | None, **flags: Any,
) -> None:  # fmt: skip
    """The verb."""
    where = {name: flags.pop(name) for name in list(flags) if name not in BY_NAME}
    if write_to is not None:
        _write_config(flags, config, write_to)
        return
    if data is None or target is None:
        given = "no argument" if data is None else f"{data!r} alone"
        raise click.UsageError(f"{given}: give the data set and where the model goes, dkl fit DATA.zarr MODEL.zarr")
    wanted = request(data, target, split, merge(flags, config), unlabelled)
    if resume == "never":
        begin(wanted, target, overwrite)
        finish(wanted, where, log, fresh=True)
        return
    if overwrite:
        raise click.UsageError(f"--resume {resume} keeps the run, --overwrite replaces it; give one of them")
    _again(wanted, target, resume, where, log)


def _again(wanted: dict, model: str, resume: str, where: dict, log: str | None) -> None:
    """Resume the same request, see that it is done, or (auto) start it."""
    from dkl.cli.restart import check_complete, go_on, interrupted_run
    from dkl.store.folder import exists

    known = interrupted_run(wanted["model"])
    if known is not None:
        finish(go_on(known, wanted), where, log)
    elif exists(wanted["model"]):
        check_complete(wanted, build)
        click.echo(f"{wanted['model']} is complete; there is nothing to do")
    elif resume == "always":
        raise ValueError(f"there is no interrupted fit of {wanted['model']!r}; --resume auto starts one")
    else:
        begin(wanted, model, overwrite=False)
        finish(wanted, where, log, fresh=True)


def _write_config(flags: dict, config: str | None, write_to: str) -> None:
    from dkl.cli.config import read_config

    known = read_config(config) if config else {}
    text = write_config({**known, **{name: value for name, value in flags.items() if value is not None}})
    if write_to == "-":
        click.echo(text)
        return
    try:
        with open(write_to, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ValueError(f"{write_to!r} exists; remove it, or choose another name") from None
    click.echo(f"{write_to} is written; dkl fit --config {write_to} DATA.zarr MODEL.zarr uses it")


def request(
    data: str, model: str, split: str | None, options: dict[str, Any], unlabelled: str | None = None
) -> dict:  # fmt: skip
    """The run as JSON, after all checks that need no pass over the data."""
    from dkl.cli.open import task_of, training_rows, unlabelled_rows
    from dkl.sources.shown import refuse_secret
    from dkl.store.folder import absolute, check_parent

    for what, place in (("the data set", data), ("the model", model), ("--unlabelled", unlabelled or "")):
        refuse_secret(what, place)
    rows = training_rows(data, split)
    check_parent(model)
    task, family = task_of(rows, options.pop("task")), options.pop("model")
    params = with_dtype(options, rows)
    if isinstance(params["class_weight"], dict):  # JSON would make texts of the classes
        params["class_weight"] = [[label, value] for label, value in params["class_weight"].items()]
    run = {
        "format": "dkl-fit",
        "version": 1,
        "data": absolute(rows),
        "model": absolute(model),
        "estimator": task,
        "family": family,
        "params": params,
    }
    if unlabelled is not None:
        run["unlabelled"] = absolute(unlabelled_rows(unlabelled, rows))
    build(run)
    return run


def begin(run: dict, model: str, overwrite: bool) -> None:
    """Write the run beside the model; refuse if there is one, or a model without --overwrite."""
    from dkl.store.folder import Folder, exists
    from dkl.store.record import open_attributes

    folder = Folder(run_path(model))
    busy = FileExistsError(
        f"a fit of {model!r} is running or was interrupted; dkl resume {model} resumes it, or remove {folder.path!r}"
    )
    folder.clear()
    if folder.names():
        raise busy
    if exists(model):
        if not overwrite:
            raise FileExistsError(f"{model!r} exists; choose another name, or use --overwrite")
        open_attributes(model)
    run["overwrite"] = overwrite
    try:
        folder.begin(RUN, run)
    except FileExistsError:
        raise busy from None


def with_dtype(options: dict[str, Any], rows: str) -> dict[str, Any]:
    """float32 for rows of small numbers, float64 for rows of float64."""
    from dkl.engine.tables import open_table

    stored = open_table(rows, "X").array.dtype
    return {**options, "dtype": options["dtype"] or ("float64" if stored == "float64" else "float32")}


def build(run: dict, checkpoint: str | None = None) -> Any:
    """The estimator of a run, not fitted; a flag that it has no use for is refused."""
    from dkl.estimators.loading import estimator_of
    from dkl.options.fields import options_of

    params, task = dict(run["params"]), run["estimator"]
    family, _, given = run.get("family", SINGLE).partition(":")
    cls = estimator_of(family, task)
    own = {option.name: option for option in options_of(cls)}
    known = {name: option for name, option in own.items() if name not in (*BY_NAME, *NOT_FLAGS)}
    params |= _own_parameters(family, given, known)
    if isinstance(params.get("class_weight"), list):
        params["class_weight"] = dict(params["class_weight"])
    for name in sorted(set(params) - set(own)):
        value = params.pop(name)
        if value != BY_NAME[name].default:
            raise ValueError(f"{name}={value!r} is no parameter of {cls.__name__} ({task}); leave it out")
    return cls(**params, checkpoint=checkpoint)


def _own_parameters(family: str, given: str, known: dict[str, Any]) -> dict[str, Any]:
    """Parameters that only a family has, from `--model NAME:a=1,b=2`; all others have flags."""
    found: dict[str, Any] = {}
    for name, _, text in (word.partition("=") for word in given.split(",") if word):
        if name in BY_NAME or name in found:
            why = "is given twice" if name in found else f"has a flag; use {BY_NAME[name].flag} {text}"
            raise ValueError(f"--model {family}:{name}={text}: {name} {why}")
        if name not in known:
            own = f"its own: {', '.join(known)}" if known else "all that it has are flags"
            raise ValueError(f"--model {family}:{name}={text}: {name!r} is no parameter of {family}; {own}")
        try:
            found[name] = known[name].parse(text)
        except (ValueError, KeyError):
            raise ValueError(f"--model {family}:{name}={text}: {text!r} is not possible; {known[name].about}") from None
    return found


def finish(run: dict, where: dict, log: str | None, fresh: bool = False, now: bool = False) -> None:
    """Run a fit that has begun to its end and remove its folder; a fit that fails at once leaves no folder either.

    now: solve with the best sigma so far; without learning, save the weights so far.
    """
    from dkl.cli.exits import Interrupted, Terminated
    from dkl.cli.signals import stopping_at_once
    from dkl.store.checkpoint import progress_of
    from dkl.store.folder import Folder

    folder, start = Folder(run_path(run["model"])), time.monotonic()
    checkpoint = f"{folder.path}/sums"
    with folder.locked(), stopping_at_once():
        if not fresh:
            folder.write_json(RUN, run)  # its limits may be others now
        try:
            with event_log(log, "fit", data=run["data"], model=run["model"], params=run["params"]), cluster(**where):
                model = _fit_and_save(run, folder, checkpoint, now)
        except KeyboardInterrupt as error:
            kind = Terminated if isinstance(error, Terminated) else Interrupted
            raise kind(_how_to_go_on(run, progress_of(checkpoint))) from None
        except Exception:
            done = progress_of(checkpoint)
            if fresh and (done is None or not (done["blocks"] or done["steps"])):
                folder.end(RUN)
            raise
    took = ("time", f"{time.monotonic() - start:.1f} s")
    click.echo(pairs([*lines(summary(model)), took, ("model", run["model"])]))


def _how_to_go_on(run: dict, done: dict | None) -> str:
    from dkl.learn.learners import learner_of

    model, learner = run["model"], learner_of(run["params"].get("learn"))
    does = "solves with the best sigma so far" if learner.learns else "saves the weights so far"
    best = f", and dkl resume --finish {model} {does}"
    learned = done is not None and done["steps"]
    return f"interrupted; dkl resume {model} continues from here{best if learned else ''}"


def _fit_and_save(run: dict, folder: Any, checkpoint: str, now: bool) -> Any:
    """The saved model; a run that was killed after saving only needs its folder removed."""
    from dkl.cli.open import load_model
    from dkl.cli.restart import source_of
    from dkl.store.checkpoint import progress_of
    from dkl.store.folder import exists
    from dkl.store.record import sweep

    if not run.get("saved"):
        done = progress_of(checkpoint)
        if now and (done is None or not done["steps"]):
            raise ValueError(
                f"nothing has been learned yet for {run['model']!r}; dkl resume {run['model']} continues the fit"
            )
        model = build(run, checkpoint)
        model.fit(run["data"], X_unlabelled=run.get("unlabelled"), resume="finish" if now else None)
        sweep(run["model"])
        if exists(run["model"]) and not run.get("overwrite", True) and not run.get("saving"):
            raise FileExistsError(
                f"{run['model']!r} appeared during the fit; move it away, then dkl resume {run['model']}"
            )
        folder.write_json(RUN, {**run, "saving": True})
        model.request_ = source_of(run)
        model.set_params(checkpoint=None).save(run["model"], overwrite=True)
        folder.write_json(RUN, {**run, "saved": True})
    sweep(run["model"])
    model = load_model(run["model"])  # before what could make it again is removed
    folder.end(RUN)
    return model
