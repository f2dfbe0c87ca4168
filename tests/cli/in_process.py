"""The command line run inside this process."""

from __future__ import annotations

import contextlib
import io
import signal
import warnings
from pathlib import Path
from typing import NamedTuple

from dkl.cli.main import main


class Said(NamedTuple):
    """What came of a run."""

    code: int
    out: str
    err: str


def dkl_in(folder: Path, *words: object) -> Said:
    """`dkl WORDS` in a folder: exit code, output, errors."""
    out, err, before = io.StringIO(), io.StringIO(), signal.getsignal(signal.SIGTERM)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            warnings.simplefilter("default")  # as in a process of its own
            code = main([str(word) for word in words])
    finally:
        signal.signal(signal.SIGTERM, before)
    return Said(code, out.getvalue(), err.getvalue())


def done(folder: Path, *words: object) -> str:
    """The output of a run that must go well."""
    said = dkl_in(folder, *words)
    assert said.code == 0, said
    assert said.err == "", said
    return said.out
