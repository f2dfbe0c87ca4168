"""Every error that dkl makes shows the offending value: its message holds a variable, or quotes option='value'.

A message reads "what is wrong; what to type". A placeholder anywhere shows a value. So does `option='value'` before the
first semicolon, where the branch admits one value only. A constant in capitals is a limit, not the offending value.
"""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "dkl"
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
QUOTED = re.compile(r"\b\w+=(?:'[^']*'|\"[^\"]*\"|None|True|False|\[\]|\d+)")

ALLOWED = {
    ("cli/inspect.py", "Exit"): "exit code 1 after the report has been printed",
    ("cli/main.py", "Terminated"): "control flow: SIGTERM; the signal is the message",
    ("cli/signals.py", "KeyboardInterrupt"): "control flow: a second Ctrl-C",
    ("engine/interrupt.py", "Interruption"): "control flow: Ctrl-C between two blocks",
}
"""(file, exception) of errors that have no value to show."""


def error_names() -> set[str]:
    """Names of exception classes: Python's, click's, and those that dkl derives from them."""
    known = {
        name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    known |= {"Abort", "BadParameter", "ClickException", "Exit", "UsageError"}
    classes = [n for m in MODULES for n in ast.walk(ast.parse((ROOT / m).read_text())) if isinstance(n, ast.ClassDef)]
    for _ in range(3):  # a class of a class of a class
        known |= {node.name for node in classes if any(last_name(base) in known for base in node.bases)}
    return known


def last_name(node: ast.AST) -> str:
    """`c` of a.b.c."""
    return getattr(node, "attr", getattr(node, "id", ""))


def shows_value(node: ast.AST) -> bool:
    """Whether an expression holds a variable; a function's name and a constant in capitals are none."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and QUOTED.search(node.value.partition(";")[0]) is not None
    if isinstance(node, ast.Name):
        return not (node.id.isupper() and len(node.id) > 1)
    if isinstance(node, ast.Attribute):
        return not node.attr.isupper() and shows_value(node.value)
    if isinstance(node, ast.Call):
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return any(map(shows_value, [*owner, *node.args, *(keyword.value for keyword in node.keywords)]))
    if isinstance(node, ast.IfExp):
        return shows_value(node.body) and shows_value(node.orelse)
    return any(map(shows_value, ast.iter_child_nodes(node)))


def silent_errors(source: str, errors: set[str]) -> list[tuple[int, str]]:
    """(line, exception) of every error made, or raised by its class alone, without a value."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and last_name(node.func) in errors:
            if not any(map(shows_value, [*node.args, *(keyword.value for keyword in node.keywords)])):
                found.append((node.lineno, last_name(node.func)))
        elif isinstance(node, ast.Raise) and node.exc is not None and last_name(node.exc) in errors:
            found.append((node.lineno, last_name(node.exc)))
    return found


ERRORS = error_names()


@pytest.mark.parametrize("module", MODULES)
def test_errors_show_the_offending_value(module):
    """Outside the list, every error."""
    silent = silent_errors((ROOT / module).read_text(), ERRORS)
    silent = [(line, name) for line, name in silent if (module, name) not in ALLOWED]
    assert not silent, f"dkl/{module}: {silent} show no value; say what came and what to type"


def test_the_allowed_are_needed():
    """Each is still there."""
    for module, name in ALLOWED:
        silent = silent_errors((ROOT / module).read_text(), ERRORS)
        assert name in {found for _, found in silent}, f"{module} has no {name} without a value; take it off the list"


@pytest.mark.parametrize(
    ("source", "silent"),
    [
        ("raise ValueError('too large; use less')", True),
        ("raise ValueError(f'{n} is too large; use less')", False),
        ("raise ValueError(f'at most {MOST} are read')", True),
        ("raise ValueError('n={} is too large'.format(n))", False),
        ("raise ValueError(f'{X} is no matrix')", False),
        ("raise ValueError(\"learn='cv' needs folds; use cv=3\")", False),
        ("raise ValueError('there are no folds; use cv=3')", True),
        ("raise ValueError(sentence(n))", False),
        ("raise ValueError(sentence())", True),
        ("raise ValueError", True),
        ("raise ValueError(f'{n}' if n else 'nothing')", True),
        ("error = KeyError('gone')", True),
        ("raise error", False),
        ("raise click.UsageError('give two')", True),
        ("raise SourceError(f'{path!r} is empty')", False),
        ("raise SourceError('it is empty')", True),
    ],
)
def test_the_check_tells_them_apart(source, silent):
    """Placeholders and quoted options show a value; constants, function names and remedies do not."""
    assert bool(silent_errors(source, ERRORS)) is silent
