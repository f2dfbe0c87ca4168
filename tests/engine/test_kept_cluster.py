"""Networks on real clusters: the same bits for 1, 2 and 3 workers, after a worker is killed, and after a resume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dkl
from dkl.engine.kept_cluster import ClusterRows
from dkl.engine.progress import listening
from tests.engine.conftest import Machines, assert_same_bits, embedded

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

N, M = 6000, 6
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, M)).astype(np.float32)
CODE = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], [-0.5, 0.5])


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rows as a Zarr group."""
    path = tmp_path_factory.mktemp("rows") / "d.zarr"
    group = zarr.open_group(path, mode="w")
    group.create_array("X", data=X, chunks=(800, M))
    group.create_array("y", data=CODE, chunks=(800,))
    return str(path)


def new_model(**options: Any) -> dkl.ContinuousKernelClassifier:
    """A network in steps of a few pieces, from shelves of 1000 rows."""
    given = {"n_components": 24, "random_state": 0, "verbose": 0, "max_iter": 3, "batch_size": 1500}
    return dkl.ContinuousKernelClassifier(**given | options)


def found(model: Any) -> dict[str, np.ndarray]:
    """All that was learned."""
    history = {name: model.history_[name].values for name in ("objective", "validation_loss")}
    return {"coef": model.coef_, "unit": model.features_.unit, "phase": model.features_.phase, **history}


@pytest.fixture(scope="module")
def small_shelves() -> Any:
    """Shelves of 1000 rows, so that a step takes several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkl.learn.batches.MOST_SHELF", 1000)
        yield


@pytest.fixture(scope="module")
def right(small_shelves: Any) -> dict[str, np.ndarray]:
    """In this process."""
    with embedded():
        return found(new_model().fit(X, CODE))


def test_any_number_of_workers(rows: str, right: Any, started: Callable[..., Machines], tmp_path: Path) -> None:
    """1, 2 and 3 workers, one that is killed between two epochs, and a fit that is resumed on what is left."""
    machines = started(1)
    for _ in range(3):
        assert_same_bits(found(new_model().fit(rows)), right)
        if len(machines.workers) < 3:
            machines.add(1)
    killed: list[str] = []

    def kill(event: dict[str, Any]) -> None:
        if event["event"] == "iteration" and not killed:
            killed.append(sorted(machines.workers)[0])
            machines.kill(killed[0])

    with listening(kill):
        assert_same_bits(found(new_model().fit(rows)), right)
    assert killed
    folder = str(tmp_path / "kept")
    with pytest.warns(UserWarning, match="max_time"):
        new_model(max_time=1e-9, checkpoint=folder).fit(rows)
    assert_same_bits(found(new_model(checkpoint=folder).fit(rows, resume=True)), right)


def test_rows_that_do_not_stay(rows: str, right: Any, pair: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers without memory for all shelves read them again, and keep few; each shelf has a home while it is kept."""
    made: list[ClusterRows] = []
    init = ClusterRows.__init__

    def spy(self: ClusterRows, *given: Any) -> None:
        init(self, *given[:-1], 2)
        made.append(self)

    monkeypatch.setattr(ClusterRows, "__init__", spy)
    assert_same_bits(found(new_model().fit(rows)), right)
    (kept,) = made
    assert not kept.stays
    assert len(kept.found) <= len(kept.ranges)
    assert set(kept.homes.values()) == set(pair.workers)


def test_shelves_stay_on_their_workers(rows: str, right: Any, pair: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each shelf is read by one task in all epochs, and both workers have some."""
    assert pair.client is not None
    made: list[ClusterRows] = []
    init = ClusterRows.__init__

    def spy(self: ClusterRows, *given: Any) -> None:
        init(self, *given)
        made.append(self)

    monkeypatch.setattr(ClusterRows, "__init__", spy)
    model = new_model().fit(rows)
    assert_same_bits(found(model), right)
    (kept,) = made
    assert kept.stays
    assert len(kept.found) == len(kept.ranges) == 6
    where = pair.client.who_has(list(kept.found.values()))
    homes = [set(addresses) for addresses in where.values()]
    assert set().union(*homes) == set(pair.workers)
