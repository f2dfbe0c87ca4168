"""Parsing ahead: so many segments at a time, and no more."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dkl.sources.batch import Batch, Segment
from dkl.store.folder import Folder
from dkl.store.staging import Staging


class Meeting:
    """A source whose segments are parsed only when `wanted` of them are under way together."""

    name = "meeting"

    def __init__(self, wanted, count):
        self.barrier, self.count = threading.Barrier(wanted, timeout=20), count
        self.lock, self.alive, self.most, self.size = threading.Lock(), 0, 0, 0

    def segments(self):
        """Numbers only; how many were handed out and not parsed yet is noted."""
        for number in range(self.count):
            with self.lock:
                self.alive += 1
                self.most = max(self.most, self.alive)
            yield Segment(number, None, 1)

    def parse(self, segment):
        """One row."""
        self.barrier.wait()
        with self.lock:
            self.alive -= 1
        return Batch(np.array([[float(segment.number)]]), y=np.zeros(1))

    def advance(self, size):
        """Progress."""
        self.size += size


@pytest.mark.parametrize("most", [1, 2, 3])
def test_segments_under_way(tmp_path, most):
    """All that may be under way are; the next one is asked for when one is done."""
    source, folder = Meeting(most, 2 * 3), Folder(str(tmp_path / "staged"))
    folder.create()
    with ThreadPoolExecutor(8) as pool:
        Staging(folder).stage(0, source, pool, most, source)
    assert source.most == most
    assert source.size == 6
    assert [part.rows for part in Staging(folder).parts(0)] == [1] * 6
