"""The checkpoint of a fit: which folder, whose fit, and whether it is resumed or begun anew."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from dkl.engine.identity import identity
from dkl.engine.tables import Table
from dkl.learn import distributions
from dkl.learn.run import Limits
from dkl.options.fields import parameters_of
from dkl.sources.shown import refuse_secret
from dkl.store.checkpoint import Checkpoint, progress_of
from dkl.store.folder import remove

CHANGE_NO_SUM = ("calibrate", "checkpoint", "place", "verbose")
"""Parameters with which a fit may be resumed whatever they were; so may those of Limits."""


def open_checkpoint(
    estimator: Any, dtype: np.dtype, tables: list[Table | None], resume: bool | str | None
) -> Checkpoint | None:
    """The folder that a fit resumes from and writes to; None without `checkpoint`."""
    if not (resume is None or isinstance(resume, bool) or resume == "finish"):
        raise ValueError(f"resume={resume!r} must be True, False, None or 'finish'")
    if estimator.checkpoint is None:
        if resume:
            raise ValueError(f"fit(resume={resume!r}) resumes from a checkpoint; say which: checkpoint='folder'")
        return None
    path = os.fspath(estimator.checkpoint)
    refuse_secret("checkpoint", path)
    if resume and progress_of(path) is None:
        raise FileNotFoundError(f"there is no checkpoint at {path!r} to resume from; fit without resume={resume!r}")
    if resume is False and progress_of(path) is not None:
        remove(path)
    params = parameters_of(estimator)
    asked = {name: as_text(value) for name, value in params.items() if name not in CHANGE_NO_SUM}
    rows = [identity(table) for table in tables]
    fit = {"estimator": type(estimator).__name__, **asked, "dtype": dtype.name, "rows": rows}
    return Checkpoint(path, json.loads(json.dumps(fit)), Limits._fields)


def as_text(value: Any) -> str:
    """A parameter as text that differs when it does; a generator, which no text tells apart, by its kind."""
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.tolist()))
    if isinstance(value, dict):  # a distribution of scipy by its law: its repr tells where it lies in memory
        value = {name: distributions.as_text(each) for name, each in value.items()}
    return type(value).__name__ if isinstance(value, (np.random.Generator, np.random.RandomState)) else repr(value)
