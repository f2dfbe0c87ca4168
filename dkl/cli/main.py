"""dkl: the group of verbs. A failure prints one line and leaves with an exit code that scripts can use."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from dkl.cli.completion import COMPLETE
from dkl.cli.exits import BROKEN_PIPE, FAILED, INTERRUPTED, NO_CLUSTER, NO_ROOM, TERMINATED, USAGE, Terminated
from dkl.cli.layout import Verbs
from dkl.cli.log import json_logs

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

VERBS = {
    "ingest": ("ingest", "Turn files into a Zarr data set: CSV, svmlight, Parquet, npy, IDX, images, Zarr."),
    "inspect": ("inspect", "Show what a data set, a model or an interrupted run holds."),
    "plan": ("plan", "Estimate the memory and time of a fit before it runs."),
    "fit": ("fit", "Fit a kernel model to a data set."),
    "predict": ("predict", "Write the predictions of a model for new rows."),
    "evaluate": ("evaluate", "Score a model on rows with known targets."),
    "report": ("report", "Write one page about a model: checks, scores, pictures."),
    "resume": ("resume", "Resume an interrupted ingest or fit."),
    "cluster": ("cluster", "Write or submit the job script of a cluster."),
    "certificates": ("certificates", "Make certificates for a cluster that speaks TLS."),
    "doctor": ("doctor", "Say what is wrong with a cluster, or this machine, before a fit."),
    "completion": ("completion", "Print the completion script of a shell."),
}
EXAMPLE = """dkl ingest covtype.csv.xz covtype.zarr --scale standard --split test=0.2
dkl fit covtype.zarr model.zarr --n-components 1000 --cv 5
dkl evaluate model.zarr covtype.zarr
dkl predict model.zarr new.csv answers.csv"""
EPILOG = (
    "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no room (memory or disk), 4 no cluster, "
    "130 interrupted and 143 terminated (dkl resume continues)."
)


@click.group(
    cls=Verbs,
    verbs=VERBS,
    example=EXAMPLE,
    epilog=EPILOG,
    invoke_without_command=True,
    help="Learn kernels in the random Fourier domain, on a laptop or on a Dask cluster.",
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error; may stand anywhere.")
@click.option("--json-logs", is_flag=True, help="Log JSON lines on stderr, on workers too; may stand anywhere.")
@click.pass_context
def cli(ctx: click.Context, version: bool, debug: bool, json_logs: bool) -> None:
    """The group itself."""
    if version:
        import dkl

        click.echo(f"dkl {dkl.__version__}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: list[str] | None = None) -> int:
    """Run a verb; the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug, as_json = "--debug" in words, "--json-logs" in words
    words = [word.removeprefix("file://") for word in words if word not in ("--debug", "--json-logs")]
    warnings.showwarning = _show_each_once()
    code = FAILED
    with suppress(ValueError):  # not the main thread: somebody else owns the signals
        signal.signal(signal.SIGTERM, _terminate)
    try:
        with json_logs(as_json):
            code = _run(words) or 0
        sys.stdout.flush()
    except BaseException as error:
        if debug and not isinstance(error, (SystemExit, click.exceptions.Exit, click.ClickException)):
            raise
        code = _explain(error)
    return int(code)


def _run(words: list[str]) -> int | None:
    """click without its own handling of failures, unless the shell asks for completions."""
    if COMPLETE in os.environ:
        return cli.main(words, prog_name="dkl", complete_var=COMPLETE)
    with cli.make_context("dkl", words) as context:
        return cli.invoke(context)


def run() -> None:
    """The console script."""
    sys.exit(main())


def _terminate(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise Terminated("terminated")


def _explain(error: BaseException) -> int:
    """One line on stderr, and the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    code, said = _judge(error)
    if code in (INTERRUPTED, TERMINATED):  # Zarr writes in an event loop of its own, which complains when it is cut off
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    say(said)
    return code


def _judge(error: BaseException) -> tuple[int, str]:
    from dkl.cli.where import ClusterError

    if isinstance(error, click.UsageError):
        verb = f" {error.ctx.info_name}" if error.ctx is not None and error.ctx.parent is not None else ""
        return USAGE, f"{error.format_message()} (dkl{verb} --help)"
    if isinstance(error, click.ClickException):
        return FAILED, error.format_message()
    if isinstance(error, Terminated):
        return TERMINATED, str(error)
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED, str(error) or "interrupted"
    if isinstance(error, ClusterError):
        return NO_CLUSTER, str(error)
    if isinstance(error, MemoryError):
        return NO_ROOM, str(error) or "out of memory; use fewer components or smaller blocks"
    root = _root(error)
    if isinstance(root, OSError) and root.errno in FULL:
        where = f" at {root.filename!r}" if root.filename else ""
        return (
            NO_ROOM,
            f"no room on the disk{where}: {root.strerror}; free some and run it again (dkl resume continues "
            "an ingest), or choose another place",
        )
    if isinstance(error, OSError) and error.errno == errno.EROFS and error.filename:
        folder = os.path.dirname(os.path.abspath(error.filename))
        return FAILED, f"{folder!r} lies on a read-only file system; choose another place"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return FAILED, f"{error.filename!r}: {error.strerror}"
    text = str(error) or type(error).__name__
    return FAILED, text if isinstance(error, (ValueError, OSError, RuntimeError)) else f"{type(error).__name__}: {text}"


def _root(error: BaseException) -> BaseException:
    """The first error of a chain that is the system's."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in FULL:
            return seen
        seen = seen.__cause__ or seen.__context__
    return error


def say(text: str) -> None:
    """One line for the person at the terminal."""
    from dkl.sources.secrets import without_secrets

    line = without_secrets(" ".join(text.split()))
    with suppress(OSError):
        start = "\r\033[K" if sys.stderr.isatty() else ""  # over a progress line that was cut off
        print(f"{start}dkl: {line}", file=sys.stderr, flush=True)


def _show_each_once() -> Callable[..., None]:
    """Shows warnings that concern users, as lines; the same words only once."""
    told: set[str] = set()

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        ours = issubclass(category, UserWarning) and not issubclass(category, (DeprecationWarning, FutureWarning))
        if ours and str(message) not in told:
            told.add(str(message))
            say(f"warning: {message}")

    return show
