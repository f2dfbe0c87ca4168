"""A pass in legs: after each leg the sums so far are kept, so that a fit that dies goes on from the last one.

Sums are exact, so where a pass is cut into legs changes no bit of them.
"""

from __future__ import annotations

import time
from typing import Any

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.learn.program_digest import program_digest
from dkl.store.checkpoint import Checkpoint, open_sums, save_sums
from dkl.sums.gram import GramSums

SECONDS = 5.0
"""Work between two checkpoints."""
SHARE = 0.05
"""Time that keeping sums may take of the whole; if it takes more, legs become longer."""


def sum_in_legs(engine: Any, program: Any, rows: Rows, progress: Progress, checkpoint: Checkpoint | None) -> Any:
    """engine.sum(program, rows), going on from the checkpoint and keeping what is done in it."""
    if checkpoint is None:
        return engine.sum(program, rows, progress)
    blocks = rows.blocks(program.rows_wanted)
    about: dict[str, Any] = {"program": program_digest(program), "of": len(blocks)}
    done = checkpoint.sums_of(about["program"], len(blocks))

    def kept() -> tuple[str, dict]:
        return checkpoint.place(done), checkpoint.covered(done, **about)

    total = engine.load(open_sums, GramSums, *kept()) if done else None
    progress.begin(rows.n_rows)
    progress.advance(blocks[done - 1][1] if done else 0)
    size = max(1, 2 * engine.threads)
    try:
        while done < len(blocks):
            leg = blocks[done : done + size]
            start = time.monotonic()
            part = engine.sum(program, rows, progress, leg)
            total = part if total is None else engine.combine(total, part)
            done += len(leg)
            worked = time.monotonic() - start
            engine.apply(save_sums, total, *kept())
            total = engine.rebase(total, open_sums, GramSums, *kept())
            checkpoint.keep_only(done)
            writing = time.monotonic() - start - worked
            size = max(1, min(8 * size, int(len(leg) * max(SECONDS, writing / SHARE) / max(worked, 1e-3))))
    finally:
        progress.end()
    return total
