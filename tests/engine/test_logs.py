"""Log lines of the client, the workers and the scheduler: JSON, with time, level, logger, fit and host, no secret."""

from __future__ import annotations

import io
import json
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

import dkl
from dkl.engine import logs
from tests.cli.conftest import run
from tests.engine.conftest import Machines, cluster_of, wait_until

SECRET = "wJalrXUtnFEMIK7MDENGbPxRfi"
FIELDS = {"time", "level", "logger", "message", "fit", "pass", "process", "host", "pid"}


def lines_of(text: str) -> list[dict[str, Any]]:
    """Lines that are JSON."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.fixture
def ended() -> Iterator[None]:
    """No handler is left behind."""
    yield
    logs.end()


def model() -> dkl.SingleKernelRegressor:
    """A small fit."""
    return dkl.SingleKernelRegressor(n_components=10, sigma=1.0, random_state=0, verbose=0)


def test_lines_of_a_fit_in_this_process(ended: None) -> None:
    """Every line of one fit has its id, another fit another one; events bring their facts."""
    X = np.random.default_rng(0).standard_normal((300, 2))
    out = io.StringIO()
    with redirect_stderr(out):
        logs.begin("json")
        begun = datetime.now(UTC)
        model().fit(X, X[:, 0])
        model().fit(X, X[:, 0])
        logging.getLogger("dkl.test").info("outside")
    found = lines_of(out.getvalue())
    assert len(found) == len(out.getvalue().splitlines())
    assert all(line.keys() >= FIELDS for line in found)
    assert len({line["fit"] for line in found[:-1]}) == 2
    assert None not in {line["fit"] for line in found[:-1]}
    assert found[-1]["fit"] is None
    passes = [line for line in found if line["logger"] == "dkl.pass"]
    assert [line["rows"] for line in passes if line["event"] == "pass"][-1] == 300
    assert {line["host"] for line in found} == {socket.gethostname()}
    assert all(0 <= (datetime.fromisoformat(line["time"]) - begun).total_seconds() + 0.001 < 60 for line in found)


def test_levels_forms_and_errors(ended: None) -> None:
    """Text has the same facts; a traceback is one JSON line; an unknown word is refused by its value."""
    out = io.StringIO()
    with redirect_stderr(out):
        logs.begin("json", "warning")
        logging.getLogger("dkl.a").info("quiet")
        try:
            raise OSError(f"secret={SECRET}")
        except OSError:
            logging.getLogger("dkl.a").exception("it failed")
        logs.begin("text", "DEBUG")
        logging.getLogger("dkl.a").debug("loud, token=%s", SECRET)
    first, second = out.getvalue().splitlines()
    assert json.loads(first)["level"] == "ERROR"
    assert "OSError" in json.loads(first)["error"]
    assert " DEBUG dkl.a: loud, token=..." in second
    assert SECRET not in out.getvalue()
    for words in (("xml",), ("json", "LOUD")):
        with pytest.raises(ValueError, match=repr(words[-1])):
            logs.begin(*words)


@pytest.mark.parametrize("form", ["json", "xml"])
def test_the_environment_asks(form: str) -> None:
    """A process that imports dkl writes lines; a wrong word is said and does not stop it."""
    program = "import dkl, logging; logging.getLogger('dkl.x').info('hello'); print('done')"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"DKL_LOG": form, "PATH": ""}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "done\n"
    if form == "json":
        assert [line["message"] for line in lines_of(done.stderr)] == ["hello"]
    else:
        assert done.stderr == "dkl: DKL_LOG='xml' is no form of log lines; use json or text\n"


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """A worker and a scheduler that were started without any wish, and that know a secret."""
    folder = tmp_path_factory.mktemp("logs")
    with cluster_of(folder, 1, AWS_SECRET_ACCESS_KEY=SECRET) as machines:
        yield machines


def refuse(block: np.ndarray) -> np.ndarray:
    """What a storage library may say."""
    if block.shape[0]:
        raise OSError(f"403 for https://me:pw1234@host/x.zarr?sig=abc with {SECRET}")
    return block


@pytest.mark.cluster
def test_lines_of_workers_and_scheduler(machines: Machines, monkeypatch: pytest.MonkeyPatch, ended: None) -> None:
    """They are asked by the client's first fit; parts and solves have the client's fit id; a newcomer does the same."""
    X = np.random.default_rng(0).standard_normal((400, 2))
    monkeypatch.setenv("DKL_LOG", "json")
    monkeypatch.setenv("DKL_LOG_LEVEL", "DEBUG")
    out = io.StringIO()
    with redirect_stderr(out):
        logs.begin("json")
        model().fit(da.from_array(X, chunks=(100, 2)), X[:, 0])
        logs.end()
    fit = {line["fit"] for line in lines_of(out.getvalue())}
    assert len(fit) == 1
    (address,) = machines.workers
    worker, scheduler = machines.folder / "worker-1.log", machines.folder / "scheduler-0.log"

    def read(log: Path, name: str) -> list[dict[str, Any]]:
        return [line for line in lines_of(log.read_text()) if line["logger"] == name]

    parts = wait_until(lambda: read(worker, "dkl.part"), "lines of parts")
    assert sum(line["rows"] for line in parts) == 400
    assert {line["fit"] for line in parts} == fit
    assert {line["process"] for line in parts} == {address}
    solves = wait_until(lambda: read(scheduler, "dkl.scheduler"), "a line of the solve")
    assert [(line["fit"], line["process"]) for line in solves] == [(*fit, "scheduler")]
    (newcomer,) = machines.add(1)
    log = machines.folder / "worker-2.log"
    begun = wait_until(lambda: read(log, "dkl.begin"), "the newcomer's first line")
    assert begun[0]["process"] == newcomer
    assert f"dkl {dkl.__version__}" in begun[0]["message"]
    later = log.read_text().split("dkl.begin", 1)[1].splitlines()[1:]
    assert all(line.startswith("{") for line in later), "what dask says has the same form"


@pytest.mark.cluster
def test_no_secret_in_a_log_of_the_cluster(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk that cannot be read quotes a URL and a key: neither is in any line of dkl on any process."""
    monkeypatch.setenv("DKL_LOG", "json")
    X = np.random.default_rng(0).standard_normal((400, 2))
    lazy = da.from_array(X, chunks=(100, 2)).map_blocks(refuse, dtype=X.dtype, meta=np.empty((0, 0)))
    with pytest.raises(OSError, match="403"):
        model().fit(lazy, X[:, 0])
    time.sleep(0.2)
    text = "".join(log.read_text() for log in machines.folder.glob("*.log"))
    assert "403 for https://host/x.zarr" in text
    for secret in (SECRET, "pw1234", "sig=abc"):
        assert secret not in text


@pytest.mark.cluster
def test_the_flag_of_the_command_line(tmp_path: Path) -> None:
    """--json-logs: stderr is JSON alone, of this process and of its workers; the output is as without it."""
    rng = np.random.default_rng(0)
    group = zarr.open_group(tmp_path / "d.zarr", mode="w")
    group.create_array("X", data=rng.standard_normal((300, 2)), chunks=(100, 2))
    group.create_array("y", data=rng.standard_normal(300), chunks=(100,))
    words = ("fit", "d.zarr", "m.zarr", "--n-components", "8", "--workers", "1", "--threads", "1", "--json-logs")
    ran = run(tmp_path, *words, DKL_LOG_LEVEL="DEBUG", AWS_SECRET_ACCESS_KEY=SECRET)
    found = lines_of(ran.err)
    assert len(found) == len(ran.err.splitlines()), ran.err
    assert {"dkl.pass", "dkl.part"} <= {line["logger"] for line in found}
    assert len({line["fit"] for line in found if line["logger"] in ("dkl.pass", "dkl.part")}) == 1
    assert any(line["process"].startswith("tcp://") for line in found)
    assert "m.zarr" in ran.out


def test_handlers_of_the_user_stay(ended: None) -> None:
    """begin and end touch only what they made."""
    own = logging.Handler()
    logging.getLogger("dkl").addHandler(own)
    logs.begin("json")
    logs.end()
    handlers: list[Callable] = logging.getLogger("dkl").handlers  # type: ignore[assignment]
    logging.getLogger("dkl").removeHandler(own)
    assert own not in handlers
    assert [h for h in handlers if isinstance(h, logs.Handler)] == []
