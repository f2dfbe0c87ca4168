"""How blocks are shared out among tasks."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

from dkl.engine.blocks import Part
from dkl.engine.row_readers import MemoryColumn
from dkl.engine.tasks import MOST_TASKS, Held, consecutive, copy_held, merge_sums, share, sum_part


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


@pytest.mark.parametrize(
    ("n", "threads", "sizes"),
    [
        (20, 2, [2, 3, 3, 3, 3, 2, 2, 1, 1]),
        (3, 2, [1, 1, 1]),
        (9, 1, [3, 3, 2, 1]),
        (7, 3, [1] * 7),
        (1, 8, [1]),
        (100, 1, [5, 16, 16, 16, 16, 16, 8, 4, 2, 1]),
        (20_480, 1, [9, *[20] * 1022, 16, 8, 4, 2, 1]),
    ],
)
def test_sizes_of_tasks(n, threads, sizes):
    """One block for each thread at the end, two before it, and so on up to a quarter of a thread's share."""
    assert [len(group) for group in share(list(range(n)), threads)] == sizes


def test_groups_are_cut_where_blocks_do_not_meet():
    """Some blocks of a pass need not be neighbours; a part holds neighbours only."""
    groups = [[(0, 2), (2, 4), (6, 8)], [(8, 9)], [(9, 9), (9, 12), (13, 14), (14, 15)]]
    cut = [[(0, 2), (2, 4)], [(6, 8)], [(8, 9)], [(9, 9), (9, 12)], [(13, 14), (14, 15)]]
    assert consecutive(groups) == cut
    assert consecutive([]) == []


class Noted:
    """A sum of rows that notes its blocks, and shares nothing with its copy."""

    def __init__(self, value=0.0, blocks=()):
        self.value, self.blocks = value, list(blocks)

    def merge(self, other):
        """self += other."""
        self.value += other.value
        self.blocks += other.blocks

    def copy(self):
        """Another one."""
        return Noted(self.value, self.blocks)


class Program:
    """Adds up the first column, in a workspace of its own."""

    def start(self):
        """Nothing."""
        return Noted()

    def workspace(self):
        """A new one."""
        return []

    def add(self, sums, workspace, block, start, data):
        """One block."""
        workspace.append(block)
        sums.merge(Noted(float(data[0].sum()), [(block, start)]))


def test_a_task_adds_its_blocks():
    """In order, into one workspace, which the next task gets; the program travels without it."""
    rows, held = np.arange(10.0), Held(Program())
    part = Part(3, [(2, 5), (5, 9)], [MemoryColumn(rows)])
    sums = sum_part(held, part, {})
    assert (sums.value, sums.blocks) == (rows[2:9].sum(), [(3, 2), (4, 5)])
    assert held.spaces == [[3, 4]]
    sum_part(held, part, {})
    assert held.spaces == [[3, 4, 3, 4]]
    with held.workspace() as one, held.workspace() as other:
        assert one is not other
    assert len(held.spaces) == 2
    assert pickle.loads(pickle.dumps(held)).spaces == []
    assert copy_held(held) is held


def test_sums_are_added_into_a_copy():
    """A result that somebody else may need stays as it is."""
    sums = [Noted(1.0, [0]), Noted(2.0, [1]), Noted(4.0, [2])]
    total = merge_sums(*sums)
    assert (total.value, total.blocks) == (7.0, [0, 1, 2])
    assert [one.value for one in sums] == [1.0, 2.0, 4.0]
    assert merge_sums(sums[1]).value == 2.0
