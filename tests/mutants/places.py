"""All mutations of some files, by the place they change; a sample of places, each with one of its mutations."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from tests.mutants.exempt import Exempt, reason_of_operator


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the operator's occurrence that makes it, and the lines it changes."""

    file: str
    line: int
    operator: str
    occurrence: int
    before: str
    after: str

    @property
    def key(self) -> str:
        """A name that stays the same while the file does."""
        return f"{self.file}:{self.line} {self.operator}#{self.occurrence}"

    def code(self, source: str) -> str:
        """The file as the mutant has it."""
        return mutated(source, self.operator, self.occurrence)


def operators() -> list[str]:
    """cosmic-ray's operators that need no arguments, but for those that are exempt."""
    names = [name for name in operator_names() if not get_operator(name).arguments()]
    return sorted(name for name in names if reason_of_operator(name) is None)


def mutated(source: str, operator: str, occurrence: int) -> str:
    """The source after one mutation."""
    code = mutate_code(source, get_operator(operator)(), occurrence)
    if code is None:
        raise ValueError(f"{operator} has no occurrence {occurrence} here")
    return code


def places_of(file: str, source: str) -> dict[tuple, list[tuple[str, int]]]:
    """(file, start, end) of every place that can be mutated, and its (operator, occurrence)s, but for the exempt."""
    exempt, nodes = Exempt(file, source), list(ast_nodes(get_ast(source)))
    found: dict[tuple, list[tuple[str, int]]] = {}
    for name in operators():
        operator, occurrence = get_operator(name)(), 0
        for node in nodes:
            for start, end in operator.mutation_positions(node):
                if exempt.reason(name, *start) is None:
                    found.setdefault((file, start, end), []).append((name, occurrence))
                occurrence += 1
    return found


def draw(root: Path, files: list[str], size: int, seed: int) -> list[Mutant]:
    """A sample of places without repetition, and at each place one mutation."""
    sources = {file: (root / file).read_text() for file in files}
    places = {place: ways for file in files for place, ways in places_of(file, sources[file]).items()}
    chance = random.Random(seed)
    drawn = chance.sample(sorted(places), min(size, len(places)))
    return [_mutant(place, sources[place[0]], chance.choice(places[place])) for place in drawn]


def _mutant(place: tuple, source: str, way: tuple[str, int]) -> Mutant:
    """The record of a mutation, with the first line that differs."""
    file, (line, _), _ = place
    before, after = source.splitlines(), mutated(source, *way).splitlines()
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), line - 1)
    return Mutant(file, at + 1, *way, before[at].strip(), after[at].strip())
