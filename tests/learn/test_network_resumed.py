"""Training that is cut short, by kill -9 or a limit in the middle of an epoch: the same bits after a resume."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dkl
from dkl.learn import network
from dkl.store.checkpoint import progress_of
from tests.engine.conftest import ROOT, assert_same_bits, wait_until

N, M = 900, 4
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, M))
CODE = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], [-0.5, 0.5])
OPTIONS: dict[str, Any] = {"n_components": 30, "random_state": 0, "verbose": 0, "batch_size": 90, "patience": 1000}
SCRIPT = """
import sys, time
import numpy as np
import dkl
from dkl.learn import network

save = network.Train._after_epoch
def slowly(self, run, state):
    time.sleep(0.05)
    return save(self, run, state)
network.Train._after_epoch = slowly
data = np.load(sys.argv[1])
model = dkl.ContinuousKernelClassifier(**{options}, max_iter=40, checkpoint=sys.argv[2])
model.fit(data["X"], data["CODE"])
"""


def found(model: Any) -> dict[str, np.ndarray]:
    """All that was learned."""
    history = {name: model.history_[name].values for name in ("epoch", "objective", "validation_loss")}
    return {"coef": model.coef_, "unit": model.features_.unit, "intercept": model.intercept_, **history}


def test_a_killed_process_is_resumed(tmp_path: Path) -> None:
    """kill -9 in the middle of training; another process goes on from the last epoch that was saved."""
    np.savez(tmp_path / "d.npz", X=X, CODE=CODE)
    (tmp_path / "fit.py").write_text(SCRIPT.replace("{options}", repr(OPTIONS)))
    kept = str(tmp_path / "kept")
    words = [sys.executable, str(tmp_path / "fit.py"), str(tmp_path / "d.npz"), kept]
    process = subprocess.Popen(words, cwd=ROOT)

    def reached() -> bool:
        known = progress_of(kept)
        return (known is not None and known["steps"] >= 8) or process.poll() is not None

    wait_until(reached, "epoch 8")
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    assert 8 <= progress_of(kept)["steps"] < 40
    right = dkl.ContinuousKernelClassifier(**OPTIONS, max_iter=40).fit(X, CODE)
    resumed = dkl.ContinuousKernelClassifier(**OPTIONS, max_iter=40, checkpoint=kept).fit(X, CODE, resume=True)
    assert_same_bits(found(resumed), found(right))


def test_an_epoch_may_be_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved after every step of an epoch, and stopped by a limit there: the same bits when it goes on."""
    right = found(dkl.ContinuousKernelClassifier(**OPTIONS, max_iter=3).fit(X, CODE))
    monkeypatch.setattr(network, "SAVED_SECONDS", -1.0)
    kept = str(tmp_path / "kept")
    with pytest.warns(UserWarning, match="max_time"):
        dkl.ContinuousKernelClassifier(**OPTIONS, max_iter=3, max_time=1e-9, checkpoint=kept).fit(X, CODE)
    assert progress_of(kept)["steps"] == 1  # of nine steps of the first epoch
    resumed = dkl.ContinuousKernelClassifier(**OPTIONS, max_iter=3, checkpoint=kept).fit(X, CODE, resume=True)
    assert_same_bits(found(resumed), right)
    more = dkl.ContinuousKernelClassifier(**OPTIONS, max_iter=5, checkpoint=kept).fit(X, CODE, resume=True)
    monkeypatch.undo()
    assert_same_bits(found(more), found(dkl.ContinuousKernelClassifier(**OPTIONS, max_iter=5).fit(X, CODE)))
