"""One context for all who are inside, and how many threads there are."""

from __future__ import annotations

from contextlib import contextmanager, suppress

import dask
import numpy as np
from dask.system import CPU_COUNT
from threadpoolctl import threadpool_info, threadpool_limits

from dkl.engine.threads import Counted, one_blas_thread, thread_count


def test_the_first_enters_and_the_last_leaves():
    """Once each, also after an error, and again later."""
    seen = []

    @contextmanager
    def note():
        seen.append("in")
        yield
        seen.append("out")

    counted = Counted(note)
    with counted():
        assert (seen, counted.inside) == (["in"], 1)
        with suppress(KeyError), counted():
            assert (seen, counted.inside) == (["in"], 2)
            raise KeyError
        assert seen == ["in"]
    assert (seen, counted.inside) == (["in", "out"], 0)
    with counted():
        assert seen == ["in", "out", "in"]
    assert seen == ["in", "out", "in", "out"]


def blas():
    """Threads of every BLAS that is loaded."""
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_has_one_thread_inside():
    """And what it had before, afterwards."""
    assert np.ones((2, 2)) @ np.ones(2) is not None
    with threadpool_limits(2, "blas"):
        before = blas()
        with one_blas_thread():
            assert set(blas()) == {1}
        assert blas() == before


def test_the_number_of_threads():
    """dask's, if it says one; the cores otherwise."""
    with dask.config.set(num_workers=3):
        assert thread_count() == 3
    with dask.config.set(num_workers=None):
        assert thread_count() == CPU_COUNT
