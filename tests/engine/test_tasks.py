"""How blocks are shared out among tasks."""

from __future__ import annotations

import itertools

import pytest

from dkl.engine.tasks import MOST_TASKS, share


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
@pytest.mark.parametrize("n", [1, 2, 7, 50, 1000, 100_000])
def test_every_block_is_in_one_task(n, threads):
    """Groups are consecutive and hold every block once."""
    groups = share(list(range(n)), threads)
    assert list(itertools.chain(*groups)) == list(range(n))
    assert all(groups)


@pytest.mark.parametrize("n", [10**4, 10**5, 10**6])
def test_the_number_of_tasks_is_bounded(n):
    """A hundred times more blocks do not mean more tasks than the bound and its tail of small ones."""
    threads = 8
    assert len(share(list(range(n)), threads)) <= MOST_TASKS + 1 + 12 * threads


def test_the_last_tasks_are_the_smallest():
    """Threads end together: the last task of each thread is one block, and no task is larger than an earlier one."""
    sizes = [len(group) for group in share(list(range(500)), 4)]
    assert sizes[-4:] == [1, 1, 1, 1]
    assert all(a >= b for a, b in itertools.pairwise(sizes[1:]))
