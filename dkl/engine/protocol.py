"""The seams of the engine: what one pass adds up (Program, Sums), and who adds it and solves (Engine).

    engine.sum(program, rows)        -> sums, where they were added
    engine.solve(function, sums)     -> what function(sums) says, from where small systems are solved

A program is a frozen record that travels to the workers; sums are closed under `merge`, in any order. A solve may leave
values where it runs (a `Reply`); the caller then holds references, which later passes and solves take as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from dkl.cost import Cost
from dkl.engine.blocks import Rows
from dkl.engine.kept import KeptSource, Piece, Preparation
from dkl.engine.progress import Progress
from dkl.engine.row_readers import Range

Refused = tuple[int, str]
"""The number of a row that a pass could not take, and the sentence that says why."""


class Resources(NamedTuple):
    """Threads of a worker, bytes that it uses now, and bytes that it may use."""

    threads: int
    used: int
    limit: int


class Sums(Protocol):
    """What a pass adds up; of several refused rows the first counts."""

    refusal: Refused | None

    def merge(self, other: Self) -> None:
        """self += other; the order of merges changes no bit."""

    def copy(self) -> Self:
        """A record that can be added to."""


S = TypeVar("S", bound=Sums)
W = TypeVar("W")
R = TypeVar("R")
T = TypeVar("T")
S_co = TypeVar("S_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)


class Program(Protocol[S, W]):
    """One pass over the rows: `add` is called once for each block, by any thread of any worker."""

    @property
    def task(self) -> str:
        """What the dashboard calls its tasks: a word of letters."""

    @property
    def rows_wanted(self) -> int:
        """Rows that should come together in one block."""

    def cost(self) -> Cost:
        """What the pass costs, before it runs."""

    def start(self) -> S:
        """Zero."""

    def workspace(self) -> W:
        """Scratch arrays of one thread."""

    def add(self, sums: S, workspace: W, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block, whose first row has the number `start`; refused rows are noted."""


class WalkProgram(Program[S, W], Protocol):
    """A program of many passes, each after more steps; it remembers rows from one to the next, to spare work alone."""

    def after(self, ahead: Any) -> Program[S, W]:
        """The pass after the steps that `ahead` lists, of the same memory: the same sums, whatever is remembered."""


class Walk(Protocol[S_co]):
    """Passes of one program over the same blocks, one after the other."""

    def sum(self, ahead: Any, progress: Progress) -> Pending[S_co]:
        """The sums after the steps that `ahead` lists."""


class Pending(Protocol[S_co]):
    """Sums where they were added: the record itself in one process, a future on a cluster. Only an engine opens it."""

    def __pending__(self) -> S_co:
        """For type checkers alone: what kind of sums they are."""


class Ref(Protocol[T_co]):
    """A value where the solve runs: the value itself in one process, a Handle on a cluster. Only an engine opens it."""

    def __ref__(self) -> T_co:
        """For type checkers alone: what kind of value it is."""


class Engine(Protocol):
    """Sums over rows, and small solves."""

    @property
    def name(self) -> str:
        """embedded or cluster."""

    @property
    def threads(self) -> int:
        """Threads of all workers."""

    def sum(
        self,
        program: Program[S, W] | Ref[Program[S, W]],
        rows: Rows | KeptSource,
        progress: Progress,
        blocks: Sequence[Range] | Sequence[Piece] | None = None,
    ) -> Pending[S]:
        """The program's sums over all rows, or over some blocks of a pass whose progress the caller shows."""

    def hold(self, rows: Rows, shelves: Sequence[Range], preparation: Preparation, shelf_bytes: int) -> KeptSource:
        """Rows for many passes: prepared once, and kept where blocks are summed as far as there is memory."""

    def walk(self, program: WalkProgram[S, W], rows: Rows, blocks: Sequence[Range]) -> Walk[S]:
        """Passes of a program that remembers rows where it has summed them."""

    def solve(self, function: Callable[..., R], sums: Pending[S], **options: object) -> R:
        """function(sums, **options) where small systems are solved; references among the options arrive as values.

        A row that the pass has refused is raised instead.
        """

    def keep(self, name: str, value: T) -> Ref[T]:
        """A reference to a value that goes to where the solve runs; a newer one of the same name replaces it."""

    def take(self, ref: Ref[T]) -> T:
        """The value of a reference, brought here."""

    def forget(self) -> None:
        """Let go of every value that was kept."""

    def fetch(self, sums: Pending[S]) -> S:
        """The sums, brought here: for records that are small."""

    def combine(self, total: Pending[S], part: Pending[S]) -> Pending[S]:
        """total + part."""

    def apply(self, function: Callable[..., R], sums: Pending[S], *args: object) -> R:
        """function(sums, *args) where the sums lie."""

    def rebase(self, total: Pending[S], function: Callable[..., S], *args: object) -> Pending[S]:
        """total as function(*args) gives it: if its worker is lost, it is made again from that alone."""

    def load(self, function: Callable[..., S], *args: object) -> Pending[S]:
        """function(*args), which gives sums, where sums belong."""

    def resources(self) -> Sequence[Resources]:
        """Threads and bytes of each worker."""

    def solve_memory(self) -> tuple[int, int]:
        """Bytes in use, and allowed, where the solve runs."""

    def run_once(self, function: Callable[..., R], *args: object) -> R:
        """function(*args) where blocks are summed."""
