"""Where an unfinished fit lies, beside the model that it will make."""

from __future__ import annotations

RUN = "run.json"
"""What the fit was asked for."""


def run_path(model: str) -> str:
    """The folder of an unfinished fit of a model."""
    from dkl.store.folder import absolute

    return f"{absolute(model)}.fit"
