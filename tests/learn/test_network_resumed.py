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
from dkl.engine.embedded import Embedded
from dkl.engine.handles import Reply
from dkl.engine.interrupt import Interruption
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
from dkl.engine.embedded import Embedded
from dkl.engine.handles import Reply
from dkl.engine.interrupt import Interruption
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


class Named(Embedded):
    """Values that are kept have a name alone, as on a cluster: a newer one of the same name replaces it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.values: dict[str, Any] = {}

    def keep(self, name: str, value: Any) -> Any:
        """The name."""
        self.values[name] = value
        return name

    def take(self, ref: Any) -> Any:
        """What has the name now."""
        return self.values[ref] if isinstance(ref, str) else ref

    def sum(self, program: Any, *about: Any) -> Any:
        """The sums of a program, which may be a name."""
        return super().sum(self.take(program), *about)

    def solve(self, function: Any, sums: Any, **options: Any) -> Any:
        """The reply, with names for what is kept."""
        reply = super().solve(function, sums, **{n: v if n == "name" else self.take(v) for n, v in options.items()})
        if not isinstance(reply, Reply):
            return reply
        return Reply(reply.told, {name: self.keep(name, value) for name, value in reply.kept.items()})


def test_a_stop_in_an_epoch_leaves_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of the third epoch, with parameters elsewhere: the model is that of two epochs."""
    options = OPTIONS | {"validation": None}
    right, asked = dkl.ContinuousKernelClassifier(**options, max_iter=2).fit(X, CODE), []

    def stop() -> None:
        asked.append(None)
        if len(asked) == 24:  # ten steps are an epoch
            raise Interruption

    monkeypatch.setattr(network, "check", stop)
    monkeypatch.setattr("dkl.estimators.linear_family.engine_for", lambda *about, **given: Named())
    with pytest.warns(UserWarning, match="interrupted|stopped"):
        cut = dkl.ContinuousKernelClassifier(**options, max_iter=5).fit(X, CODE)
    assert len(asked) == 24
    assert cut.epochs_ == 2
    for name in ("coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(right, name))
    for name, values in right._velocity.items():
        np.testing.assert_array_equal(cut._velocity[name], values)
