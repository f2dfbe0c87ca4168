"""Fits in processes of their own, forked from one that has imported everything.

    python client.py        one order as JSON on each line of stdin, one answer as JSON on each line of stdout

{"fit": KIND, "scheduler": ADDRESS or null, "data", "checkpoint", "out"}   begin a fit; its pid
{"keep": GATE, "scheduler": ADDRESS}                                       begin a solve that waits for a file; its pid
{"wait": PID}                                                              the exit code of one that was begun
{"poll": PID}                                                              the same, or null if it has not ended
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any

import numpy as np

ROWS, CHUNK, INPUTS = 6000, 250, 4
FITS: dict[str, tuple[str, dict]] = {
    "validation": ("y", {"learn": "validation", "groups": "each", "starts": 2, "max_iter": 1}),
    "cv": ("code", {"learn": "cv", "cv": 2, "starts": 1, "max_iter": 1}),
    "gcv": ("y", {"learn": "gcv", "groups": "each", "sigma_l1": 0.01, "starts": 1, "max_iter": 1}),
    "joint": ("code", {"learn": "joint", "alpha": 0.1, "starts": 1, "max_iter": 1}),
    "log_loss": ("code", {"learn": "log_loss", "cv": 2, "groups": "each", "max_iter": 2}),
    "frequencies": ("y", {"learn": "frequencies", "cv": 2, "n_components": 15, "max_iter": 1}),
}
"""Target and options of each kind of fit."""


def make_data(path: str) -> None:
    """Rows as Zarr, in small chunks."""
    import zarr

    rng = np.random.default_rng(3)
    X = rng.normal(size=(ROWS, INPUTS)).astype(np.float32)
    root = zarr.open_group(path, mode="w", zarr_format=3)
    root.create_array("X", data=X, chunks=(CHUNK, INPUTS))
    root.create_array("y", data=np.sin(2 * X[:, 0]) + 0.2 * X[:, 1] + 0.1 * rng.normal(size=ROWS), chunks=(CHUNK,))
    root.create_array("code", data=(X[:, 0] > 0.3).astype(np.int64) + (X[:, 1] > 0), chunks=(CHUNK,))


def fit(kind: str, data: str, checkpoint: str | None = None, **more: Any) -> Any:
    """A fitted model; starts are on few rows, so that there are stages."""
    import dkl
    from dkl.learn import stages

    target, options = FITS[kind]
    chosen = {"n_components": 24, "random_state": 0, "verbose": 0, **options, **more}
    estimator = dkl.SingleKernelClassifier if target == "code" else dkl.SingleKernelRegressor
    before = stages.FEW_ROWS, stages.FEW_BLOCKS
    stages.FEW_ROWS, stages.FEW_BLOCKS = 1000, 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return estimator(**chosen, checkpoint=checkpoint).fit(f"{data}/X", _rows(f"{data}/{target}"))
    finally:
        stages.FEW_ROWS, stages.FEW_BLOCKS = before


def _rows(path: str) -> Any:
    import zarr

    return zarr.open_array(path, mode="r")


def everything(model: Any) -> dict[str, np.ndarray]:
    """All that a fit found out, but how long it took."""
    names = ("coef_", "intercept_", "sigma_", "alpha_", "groups_", "selected_inputs_", "n_iter_")
    values = {name: np.asarray(getattr(model, name)) for name in names}
    values |= {"unit": model.features_.unit, "phase": model.features_.phase}
    history = model.history_.drop_vars("seconds")
    return values | {f"history {name}": np.asarray(history[name].values) for name in history.variables}


def waiting_solve(sums: Any, gate: str) -> Any:
    """Says that it has begun; when the gate opens, something to be kept."""
    from dkl.engine.handles import Reply

    open(f"{gate}.begun", "w").close()
    deadline = time.monotonic() + 30
    while not os.path.exists(gate) and time.monotonic() < deadline:
        time.sleep(0.01)
    open(f"{gate}.ended", "w").close()
    return Reply(None, {"matrix": np.ones((100, 100))})


def _keep(gate: str) -> None:
    import dask.array as da

    from dkl.engine.blocks import Rows
    from dkl.engine.progress import Progress
    from dkl.engine.reduce import engine_for
    from dkl.engine.tables import open_table
    from dkl.sums.targets import ValueProgram

    rows = Rows([open_table(da.ones(100, chunks=50), "y"), None], ["y", "sample_weight"])
    engine = engine_for(True)
    engine.keep("problem", np.ones((100, 100)))
    sums = engine.sum(ValueProgram(), rows, Progress(0))
    from tests.learn.client import waiting_solve as known_on_the_scheduler

    engine.solve(known_on_the_scheduler, sums, gate=gate)


def _in_fork(order: dict) -> None:
    from distributed import Client

    code = 99
    try:
        os.dup2(2, 1)
        client = Client(order["scheduler"], timeout="4s") if order["scheduler"] else None
        if "keep" in order:
            _keep(order["keep"])
        else:
            found = everything(fit(order["fit"], order["data"], order["checkpoint"], **order.get("more", {})))
            np.savez(order["out"], **found)
        if client is not None:
            client.close()
        code = 0
    except Exception as error:
        with open(f"{order.get('out', order.get('keep'))}.error", "w", encoding="utf-8") as file:
            json.dump([type(error).__name__, str(error)], file)
        code = 1
    finally:
        os._exit(code)


def _ended(pid: int, options: int = 0) -> int | None:
    found, status = os.waitpid(pid, options)
    return os.waitstatus_to_exitcode(status) if found else None


def serve() -> None:
    """Take orders until stdin ends."""
    import distributed  # noqa: F401
    import xarray  # noqa: F401
    import zarr  # noqa: F401

    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            answer = _ended(order["wait"])
        elif "poll" in order:
            answer = _ended(order["poll"], os.WNOHANG)
        else:
            answer = os.fork()
            if not answer:
                _in_fork(order)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
