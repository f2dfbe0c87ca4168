"""The only loop: steps of a method until it ends, a limit is reached or the user stops it.

After each step the watchers (learn/watchers.py) see it: history, time, progress, checkpoint. A loop that is stopped
keeps its last state, so that a later fit resumes from there with the same bits.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from dkl.engine.interrupt import Interruption, watching
from dkl.learn.history import History
from dkl.learn.run import INTERRUPTED, Limits, Method, Run, State
from dkl.learn.watchers import Bookkeeping, KeepHistory, KeepTime, Loop, SaveSteps, ShowProgress, Watcher
from dkl.store.packed import unpack

Result = TypeVar("Result")


class Iterated(NamedTuple, Generic[Result]):
    """The end of a loop: the method's result, the history, and why it ended."""

    result: Result
    history: History
    reason: str  # "converged", "early_stopping", "stalled", "max_iter", "max_time" or "interrupted"


def iterate(run: Run, method: Method[State, Result]) -> Iterated[Result]:
    """Steps from the beginning, or from where the run's checkpoint stands, to the end."""
    loop = _opened(run, method)
    try:
        with run.progress.on_one_line():
            _to_the_end(run, method, loop)
        result = method.end(run, loop.state, loop.history)
    finally:
        run.engine.forget()
    return Iterated(result, loop.history, loop.reason)


def _opened(run: Run, method: Method[State, Result]) -> Loop[State]:
    """A loop from the checkpoint, or a fresh one."""
    known = None if run.checkpoint is None else run.checkpoint.open_step(run.record)
    if run.checkpoint is None or known is None:
        if run.checkpoint is not None and run.record == "step" and run.checkpoint.newest():
            path = run.checkpoint.folder.path
            raise ValueError(f"checkpoint {path!r} is damaged: it has sums but not what was learned; remove it")
        return Loop(method.begin(run), History(method.history))
    _, about, arrays = known
    try:
        state, kept, columns = unpack(about["step"], arrays, method.state, Bookkeeping)
    except (KeyError, TypeError, ValueError, IndexError):
        raise ValueError(
            f"checkpoint {run.checkpoint.folder.path!r} was written by another version of dkl; remove the folder, or "
            "start over with fit(resume=False)"
        ) from None
    run.meter.passes = kept.passes
    history = History(method.history, columns)
    return Loop(method.resumed(run, state), history, kept.reason, kept.seconds, kept.limits)


def _to_the_end(run: Run, method: Method[State, Result], loop: Loop[State]) -> None:
    """All steps that are left; Ctrl-C leaves the loop at the last state that a step has reached."""
    if run.finish and not loop.reason:
        if not len(loop.history):
            raise ValueError("resume='finish' takes the best point so far, and nothing has been learned yet; use True")
        loop.reason = INTERRUPTED
    elif not run.finish and allows_more(loop.reason, loop.limits, run.limits):
        if run.checkpoint is not None:
            run.checkpoint.forget_sums()  # of a point that is now left
        loop.reason, loop.state = "", method.reopened(run, loop.state)
    if loop.reason:
        return
    loop.limits = run.limits
    loop.start_clock()
    with watching() as watch:
        watch.ready = len(loop.history) > 0
        watchers: list[Watcher[State]]
        watchers = [KeepHistory(run, watch), KeepTime(run), ShowProgress(run), SaveSteps(run, method)]
        try:
            while not loop.reason:
                step = method.step(run, loop.state)
                loop.state, loop.reason = step.state, step.ended
                loop.look_at_clock()
                for watcher in watchers:
                    watcher.after(loop, step)
        except Interruption:
            loop.reason = INTERRUPTED
    for watcher in watchers:
        watcher.close(loop)


def allows_more(reason: str, before: Limits, now: Limits) -> bool:
    """Whether learning that has ended may go on: it ended at a limit that is now further away."""
    if reason == "converged":
        return now.tol < before.tol
    if reason == "max_iter":
        return now.max_iter > before.max_iter
    if reason == "max_time" and before.max_time is not None:
        return now.max_time is None or now.max_time > before.max_time
    return False
