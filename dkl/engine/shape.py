"""Bytes and flops of a fit from its sizes alone.

Learning adds a second pass, whose two tiles and low-rank factors count if they are more than the first pass takes, and
three d x d matrices for every system of its objective. The log loss adds a pass of scores, of several alphas at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkl.features.projected import TILE as PROJECTED
from dkl.kernels.values import TILE as VALUES
from dkl.sums.pullback import TILE
from dkl.sums.symmetric import LEAF, largest_tile, packed_size
from dkl.sums.top import ROWS

STATE = 60
"""Numbers for each frequency and input that a descent in frequencies holds: pairs, points, and a step under way."""
SOLVE_MATRICES, SOLVE_THREADS = 9, 4
"""d x d matrices of one solve (one of them of unlabelled rows), and folds that are solved at the same time, at most."""
TRIALS = 5
"""Alphas whose scores the log loss takes side by side, at most."""
SWEEP = 60
"""Flops of a product that take as long as one input of one pair of rows in a kernel that is swept."""
OVERHEAD = 64 * 2**20
"""Libraries loaded late (Zarr, LAPACK), thread stacks, and what the allocator keeps back."""


@dataclass(frozen=True)
class Shape:
    """What the promise depends on: rows, inputs, features, outputs, folds, and the rows of a block and a tile."""

    rows: int
    inputs: int
    features: int
    folds: int
    block: int
    tile: int
    is_lazy: bool
    dtype: np.dtype
    row_bytes: int
    outputs: int = 0
    is_class: bool = False
    paired: bool = False
    alphas: int = 1
    objective: str | None = None  # of learning
    by_frequency: bool = False  # whether every frequency is learned
    terms: int = 1  # columns of t(X) for each input
    reduced: bool = False  # whether weights are confined to principal axes
    kept: int = 0  # scores of each class that calibration keeps
    drawn: bool = True  # whether features are waves along frequencies
    widths: tuple[int, ...] = ()  # of the channels, if each has a gram of its own
    beneath: int = 0  # features that these are projections of
    landmarks: int = 0  # of Nystroem features
    swept: bool = False  # whether their kernel takes a sweep for each input

    @property
    def frequencies(self) -> int:
        """Columns of the matrix that t(X) is multiplied by."""
        return (self.beneath or self.features) // (2 if self.paired else 1) if self.drawn else 0

    @property
    def columns(self) -> int:
        """Columns of t(X), which are the rows of the frequencies."""
        return self.terms * self.inputs

    @property
    def systems(self) -> int:
        """Ridge systems of the objective."""
        return self.folds if self.objective in ("cv", "log_loss") else int(self.objective is not None)

    @property
    def pullback_bytes(self) -> int:
        """One thread of the second pass beside its block: features and cotangents, scores, factors, T' theta_bar."""
        if self.objective is None:
            return 0
        d, item, q = self.features, self.dtype.itemsize, self.systems * self.outputs
        frequencies = self.frequencies
        tile = TILE * (2 * d + (0 if self.paired else d) + 6 * q) * item
        if self.objective == "gcv":
            tile += 2 * TILE * d * item
        return tile + self.columns * frequencies * (item + 16) + 16 * self.columns * frequencies

    @property
    def score_bytes(self) -> int:
        """One thread of a pass of scores beside its block: features, scores and losses of a tile, and the slopes."""
        if self.objective != "log_loss":
            return 0
        d, item, c = self.features, self.dtype.itemsize, self.outputs
        return TILE * (2 * d * item + TRIALS * c * (item + 16) + 48 * c) + 16 * self.folds * c * (d + 1)

    @property
    def sums_bytes(self) -> int:
        grams = sum(packed_size(d) + d * (self.outputs + 1) for d in self.widths or (self.features,))
        return 8 * max(self.folds * grams, self.kept * self.outputs, self.landmarks * (self.inputs + 2))

    @property
    def calibration_bytes(self) -> int:
        """One thread of calibration beside its block: features of a tile, its scores, and what is kept, twice over."""
        if not self.kept:
            return 0
        return ROWS * self.features * self.dtype.itemsize + 8 * self.outputs * (4 * ROWS + 4 * self.kept)

    @property
    def landmark_bytes(self) -> int:
        """One thread: kernel values of a tile with their temporaries, its rows and the landmarks, and a sample."""
        values, inputs = 6 * VALUES * self.landmarks, 2 * (VALUES + self.landmarks) * self.inputs
        return 8 * (values + inputs + 2 * self.landmarks * self.inputs) if self.landmarks else 0

    @property
    def thread_bytes(self) -> int:
        """One thread: its block (as read, cast, gathered), a tile of features, a product, its sums."""
        d, item = self.features, self.dtype.itemsize
        block = self.block * ((2 * self.row_bytes if self.is_lazy else 0) + 2 * self.cast_bytes)
        targets = self.block * (4 if self.is_class else 3 * self.outputs) * 8
        tile = self.tile * d * item + largest_tile(d) * item
        tile += PROJECTED * self.beneath * item + self.landmark_bytes
        if self.is_sparse:
            tile += self.tile * d * item
        far = 1024 * (self.columns + 2 * (self.beneath or d)) * 8 if item == 4 else 0
        cross = self.outputs * d * (item + (0 if self.is_class else 16))
        most = max(tile + cross + self.sums_bytes, self.pullback_bytes, self.score_bytes, self.calibration_bytes)
        return block + targets + far + most

    @property
    def parameter_bytes(self) -> int:
        size = self.frequencies * self.columns * (2 * 8 + 2 * self.dtype.itemsize) + 64 * self.outputs
        size += 2 * self.features * self.systems * self.outputs * (8 + self.dtype.itemsize)
        if self.objective == "log_loss":
            size += TRIALS * self.features * self.systems * self.outputs * (8 + self.dtype.itemsize)
        size += self.beneath * self.features * (8 + self.dtype.itemsize)
        size += 2 * self.landmarks * (self.inputs + self.features) * (8 + self.dtype.itemsize)
        return size + (self.features**2 * (8 + self.dtype.itemsize) if self.objective == "gcv" else 0)

    @property
    def solve_bytes(self) -> int:
        d = self.features
        return (
            OVERHEAD
            + self.sums_bytes
            + 8 * min(self.folds, SOLVE_THREADS) * (SOLVE_MATRICES * d * d + 6 * d * self.outputs)
            + 8 * self.systems * (3 * d * d + 8 * d * self.outputs)
            + 8 * self.systems * (self.objective == "log_loss") * (d * d + 2 * TRIALS * d * self.outputs)
            + 8 * sum(width * width for width in self.widths)
            + STATE * 8 * self.by_frequency * self.columns * self.frequencies
        )

    @property
    def flops(self) -> float:
        """One pass: projection, the symmetric product, cosines, and the cross term."""
        d, frequencies = self.features, self.frequencies
        cross = d if self.is_class else 2 * d * self.outputs
        cross += 2 * self.landmarks * ((SWEEP if self.swept else 1) * self.inputs + d)
        return float(self.rows) * (2 * self.columns * frequencies + d * (d + min(d, LEAF)) + 10 * d + cross)

    @property
    def is_sparse(self) -> bool:
        """Whether rows are stored in fewer bytes than a dense row of bytes would take."""
        return self.row_bytes < self.inputs

    @property
    def cast_bytes(self) -> int:
        """Bytes of a row in compute precision, and of its terms if there are several."""
        one = 2 * self.row_bytes if self.is_sparse else self.inputs * self.dtype.itemsize
        return one if self.terms == 1 else (1 + self.terms) * one

    @property
    def solve_flops(self) -> float:
        """Every factorisation of the choice of alpha and of the last solve, with its triangular solves."""
        choices = self.folds * self.alphas if self.folds > 1 and self.objective is None else 0
        d, systems = float(self.features), 1 + choices
        axes = 9 * d**3 * (self.folds if choices else 1) if self.reduced else 0.0
        return axes + systems * (d**3 / 3 + 4 * d * d * self.outputs)

    @property
    def learning_flops(self) -> float:
        """The second pass: projection, low-rank products and T' theta_bar; of the log loss, the pass of scores too."""
        d, frequencies = self.features, self.frequencies
        curve = 2 * d * d if self.objective == "gcv" else 0
        if self.objective == "log_loss":
            curve = 2 * self.columns * frequencies + 4 * d * self.outputs + 10 * d
        return float(self.rows) * (
            4 * self.columns * frequencies + 8 * d * self.systems * self.outputs + 15 * d + curve
        )

    @property
    def bytes_read(self) -> int:
        return self.rows * self.row_bytes
