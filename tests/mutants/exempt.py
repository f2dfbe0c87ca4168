"""Mutations that no test could notice, or none should: left out of the sample, each for a reason given here."""

from __future__ import annotations

import ast

OPERATORS = {
    "_Is": "== and `is` agree on small values by accident of the interpreter",
    "_IsNot": "!= and `is not` agree on small values by accident of the interpreter",
}
"""Endings of operators that replace a comparison of values by one of identity; `is` for `is not` stays."""

KEYWORDS = {
    "frozen": "only forbids an assignment that no code makes",
    "strict": "zip refuses lengths that differ; they agree wherever it is called",
    "stacklevel": "which line a warning points at",
    "daemon": "how a thread ends with the interpreter",
    "exist_ok": "a folder that is there already",
    "repr": "how a record is printed",
    "indent": "how a file of JSON looks to a person",
    "level": "how hard bytes are compressed",
}
"""Keyword arguments whose literal value is a precaution against mistakes of our own."""

WORDS = {
    "raise": "text of a refusal",
    "warn": "text of a warning",
    "say": "text of a progress line",
    "waiting": "text of a progress line",
    "name": "text of a progress line",
    "line": "text of a progress line",
    "sweep": "text of a progress line",
}
"""Statements and calls inside which an f-string is words for a person."""

FUNCTIONS = {"__repr__", "_repr_html_", "__str__"}
"""Functions whose result is words for a person."""

CONSTANTS = {
    ("dkl/kernels/values.py", "TILE"): "rows of a tile",
    ("dkl/kernels/values.py", "CACHED"): "entries of a tile",
    ("dkl/features/additive.py", "TILE"): "numbers of a tile",
    ("dkl/features/projected.py", "TILE"): "rows of a tile",
    ("dkl/features/trigonometry.py", "ROWS_AT_ONCE"): "rows of a tile",
    ("dkl/sums/order_free.py", "AT_ONCE"): "entries of a tile",
    ("dkl/sums/tiles.py", "TILE_BYTES"): "bytes of a tile",
    ("dkl/sums/gram.py", "CLASSES_AT_ONCE"): "classes of a tile",
    ("dkl/sums/pullback.py", "TILE"): "rows of a tile",
    ("dkl/sums/symmetric.py", "LEAF"): "width of a tile",
    ("dkl/sums/top.py", "ROWS"): "rows of a tile",
    ("dkl/solvers/factor.py", "STRIP"): "rows of a strip",
    ("dkl/solvers/nodes.py", "QUADRATURE"): "points of a quadrature, more than float64 can tell apart",
    ("dkl/learn/model.py", "TILE"): "rows of a tile",
    ("dkl/learn/exact.py", "MANY_ROWS"): "rows from which BLAS may use more threads",
    ("dkl/learn/resumable_pass.py", "SECONDS"): "how often a checkpoint is written",
    ("dkl/learn/resumable_pass.py", "SHARE"): "how often a checkpoint is written",
    ("dkl/store/checkpoint.py", "MOST_BYTES"): "no limit",
    ("dkl/store/dataset.py", "CHUNKS"): "how a data set is cut",
    ("dkl/store/dataset.py", "SMALLEST"): "how a data set is cut",
    ("dkl/store/dataset.py", "LARGEST"): "how a data set is cut",
    ("dkl/store/equal_blocks.py", "BLOCK"): "rows of a tile",
    ("dkl/store/survey.py", "CELLS"): "numbers of a tile",
    ("dkl/engine/apply.py", "ROWS"): "rows of a tile",
    ("dkl/engine/stream.py", "ROWS"): "rows of a block",
    ("dkl/engine/tasks.py", "TASKS_PER_THREAD"): "how blocks are shared out",
    ("dkl/engine/tasks.py", "MOST_BLOCKS"): "how blocks are shared out",
    ("dkl/engine/tasks.py", "MOST_TASKS"): "how blocks are shared out",
    ("dkl/engine/passes.py", "MERGE"): "how many sums are added at a time; they are exact",
    ("dkl/engine/passes.py", "POLL_SECONDS"): "seconds between two polls of the cluster",
    ("dkl/engine/passes.py", "NO_WORKERS_SECONDS"): "seconds without workers until a pass fails",
    ("dkl/engine/progress.py", "DELAY_SECONDS"): "seconds before a progress line",
    ("dkl/engine/progress.py", "UPDATE_SECONDS"): "seconds between progress lines",
    ("dkl/engine/progress.py", "WIDTH"): "characters of a bar",
    ("dkl/engine/memory.py", "MEASURE_SECONDS"): "seconds of a measurement",
    ("dkl/engine/memory.py", "OVERHEAD"): "an estimate, rounded",
    ("dkl/engine/memory.py", "SOLVE_SPEED"): "an estimate, rounded",
    ("dkl/features/nystroem.py", "SWEEP"): "an estimate, rounded",
    ("dkl/solvers/lbfgs.py", "STATE"): "an estimate, rounded",
    ("dkl/solvers/hypergradient.py", "SOLVES"): "an estimate, rounded",
    ("dkl/solvers/hypergradient.py", "CURVED"): "an estimate, rounded",
    ("dkl/sums/tree.py", "SMALL"): "an estimate, rounded",
}
"""(file, name) of constants that change the time or the memory of a pass, and no result."""


def reason_of_operator(name: str) -> str | None:
    """Why an operator is not used at all, or None."""
    if "ReplaceComparisonOperator" not in name or name.endswith(("_Is_IsNot", "_IsNot_Is")):
        return None
    return next((why for ending, why in OPERATORS.items() if name.endswith(ending)), None)


class Exempt:
    """The places of one file that are left out."""

    def __init__(self, file: str, source: str) -> None:
        self.spans: list[tuple[tuple[int, int], tuple[int, int], str]] = []
        self.lines = source.splitlines()
        tree = ast.parse(source)
        for node in ast.walk(tree):
            self._annotations(node)
            self._keywords(node)
            self._words(node)
            self._caches(node)
            self._threads(node)
        for node in tree.body:
            self._constants(file, node)

    def reason(self, operator: str, line: int, column: int) -> str | None:
        """Why the mutation at a place is left out, or None."""
        at = (line, column)
        return next((why for start, end, why in self.spans if start <= at < end), None)

    def _add(self, node: ast.AST, why: str) -> None:
        """Leave out all of a node; columns of `ast` are bytes, ours characters."""
        start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        self.spans.append((self._characters(*start), self._characters(*end), why))

    def _characters(self, line: int, column: int) -> tuple[int, int]:
        return line, len(self.lines[line - 1].encode()[:column].decode())

    def _annotations(self, node: ast.AST) -> None:
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                self._add(getattr(node, name), "type annotation")

    def _keywords(self, node: ast.AST) -> None:
        if isinstance(node, ast.keyword) and node.arg in KEYWORDS and isinstance(node.value, ast.Constant):
            self._add(node.value, KEYWORDS[node.arg])

    def _words(self, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in FUNCTIONS:
            self._add(node, "words for a person")
            return
        if isinstance(node, ast.Raise):
            why = WORDS["raise"]
        elif isinstance(node, ast.Call):
            why = WORDS.get(getattr(node.func, "attr", getattr(node.func, "id", "")), "")
        else:
            return
        if why:
            for text in ast.walk(node):
                if isinstance(text, ast.JoinedStr):
                    self._add(text, why)

    def _threads(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ThreadPoolExecutor":
            for argument in node.args:
                self._add(argument, "how many threads share the work")

    def _caches(self, node: ast.AST) -> None:
        for decorator in getattr(node, "decorator_list", []):
            name = decorator.func if isinstance(decorator, ast.Call) else decorator
            if getattr(name, "attr", getattr(name, "id", "")) in ("cache", "lru_cache", "cached_property"):
                line, column = self._characters(decorator.lineno, decorator.col_offset)
                self._add(decorator, "a cache")
                self.spans.append(((line, column - 1), (line, column), "a cache"))

    def _constants(self, file: str, node: ast.AST) -> None:
        if not isinstance(node, ast.Assign):
            return
        target, value = node.targets[0], node.value
        many = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        pairs = zip(target.elts, value.elts, strict=True) if many else [(target, value)]
        for name, number in pairs:
            if isinstance(name, ast.Name) and (file, name.id) in CONSTANTS:
                self._add(number, CONSTANTS[file, name.id])
