"""A pass that can be resumed: now and then the sums so far are kept, so that a fit that dies goes on from there.

Sums are exact, so where a pass is cut changes no bit of them.
"""

from __future__ import annotations

import time
from typing import Any

from dkl.engine.protocol import Pending, Program, S, W
from dkl.learn.program_digest import program_digest
from dkl.learn.run import Run
from dkl.store.checkpoint import open_sums, save_sums
from dkl.sums.gram import GramProgram

SECONDS = 5.0
"""Work between two checkpoints."""
SHARE = 0.05
"""Time that keeping sums may take of the whole; if it takes more, they are kept less often."""


def sum_resumable(run: Run, program: Program[S, W], kind: type[S], gram: GramProgram, name: str) -> Pending[S]:
    """The program's sums over all rows, resumed from the run's checkpoint and kept in it.

    kind: the record that is read back; gram: what they depend on beside the rows (it may be the program itself).
    """
    engine, rows, progress, checkpoint = run.engine, run.rows, run.progress.name(name), run.checkpoint
    if checkpoint is None:
        return engine.sum(program, rows, progress)
    blocks = rows.blocks(program.rows_wanted)
    about: dict[str, Any] = {"program": program_digest(gram, program.task), "of": len(blocks)}
    done = checkpoint.sums_of(about["program"], len(blocks))

    def kept() -> tuple[str, dict[str, Any]]:
        return checkpoint.place(done), checkpoint.covered(done, **about)

    total: Pending[S] | None = engine.load(open_sums, kind, *kept()) if done else None
    progress.begin(rows.n_rows)
    progress.advance(blocks[done - 1][1] if done else 0)
    size = max(1, 2 * engine.threads)
    try:
        while done < len(blocks):
            some = blocks[done : done + size]
            start = time.monotonic()
            part = engine.sum(program, rows, progress, some)
            total = part if total is None else engine.combine(total, part)
            done += len(some)
            worked = time.monotonic() - start
            engine.apply(save_sums, total, *kept())
            total = engine.rebase(total, open_sums, kind, *kept())
            checkpoint.keep_only(done)
            writing = time.monotonic() - start - worked
            size = max(1, min(8 * size, int(len(some) * max(SECONDS, writing / SHARE) / max(worked, 1e-3))))
    finally:
        progress.end()
    assert total is not None
    return total
