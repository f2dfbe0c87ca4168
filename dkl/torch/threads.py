"""One torch thread and deterministic algorithms inside a task, so that the bits of a block do not depend on the worker.

torch keeps its number of threads for each thread of Python, and MKL's for the process. So every task sets it, and the
process gets its own settings back when the last task has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils import deterministic

from dkl.engine.threads import Counted


@contextmanager
def _deterministic() -> Iterator[None]:
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warns, fills = torch.is_deterministic_algorithms_warn_only_enabled(), deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    deterministic.fill_uninitialized_memory = False  # for searching mistakes; it takes a tenth of the time
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(strict, warn_only=warns)
        deterministic.fill_uninitialized_memory = fills
        torch.set_num_threads(threads)


@contextmanager
def own_settings() -> Iterator[None]:
    """This thread has as many torch threads after a fit as before, whichever thread was the last one inside."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


_counted = Counted(_deterministic)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """torch uses one thread, and only algorithms that repeat their bits, while any thread is inside."""
    with _counted():
        if torch.get_num_threads() != 1:
            torch.set_num_threads(1)
        yield
