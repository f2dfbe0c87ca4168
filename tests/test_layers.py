"""Imports go down only, modules are short, and everything public has a docstring."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "dkl"
LAYERS = [
    {"cli"},
    {"report"},
    {"exact", "plot", "torch"},
    {"estimators"},
    {"options"},
    {"learn"},
    {"prepare"},
    {"engine", "solvers", "store"},
    {"sources", "sums"},
    {"features"},
    {"kernels", "losses", "penalties"},
    {"checks", "cost"},
]
FREE = {"__init__.py", "__main__.py", "quickstart.py"}
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


def level(layer):
    """How deep a layer lies."""
    return next(i for i, names in enumerate(LAYERS) if layer in names)


def layer_of(module):
    """The layer of a file: its folder, or its own name."""
    return Path(module).parts[0].removesuffix(".py")


def imported_layers(module):
    """Layers a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / module).read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} imports relatively"
            names = [node.module] if node.module != "dkl" else [f"dkl.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("dkl.")}
    return found


def test_every_module_is_in_a_layer():
    """No file outside the layers."""
    known = set().union(*LAYERS)
    assert len(MODULES) > 30
    assert [m for m in MODULES if m not in FREE and layer_of(m) not in known] == []


@pytest.mark.parametrize("module", [m for m in MODULES if m not in FREE])
def test_imports_go_down(module):
    """A layer imports itself and what lies below it; siblings never import each other."""
    own = layer_of(module)
    for other in imported_layers(module):
        assert other == own or level(other) > level(own), f"{module} ({own}) imports {other}"


def module_of(path):
    """The dotted name of a file."""
    return ".".join(("dkl", *Path(path).with_suffix("").parts)).removesuffix(".__init__")


def imported_modules(path, known):
    """Modules of the library that a file imports, also inside functions and for type checking."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return (found & known) - {module_of(path), "dkl"}


def find_cycle(edges):
    """Modules that import each other in a ring, or None: those without imports are taken away until none is left."""
    left = {name: set(others) for name, others in edges.items()}
    while free := {name for name, others in left.items() if not others & set(left)}:
        left = {name: others for name, others in left.items() if name not in free}
    if not left:
        return None
    path = [min(left)]
    while path[-1] not in path[:-1]:
        path.append(min(left[path[-1]] & set(left)))
    return path[path.index(path[-1]) :]


def test_no_import_cycle():
    """Imports inside functions count: they hide a cycle, and do not end it. The package itself holds names only."""
    known = {module_of(path) for path in MODULES}
    edges = {module_of(path): imported_modules(path, known) for path in MODULES if module_of(path) != "dkl"}
    cycle = find_cycle(edges)
    assert cycle is None, f"these modules import each other: {' -> '.join(cycle)}; move what they share below both"


def test_a_cycle_is_found():
    """A ring of any length, with what leads to it and from it left out; none in a chain or a diamond."""
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": set(), "d": {"b", "c"}}) is None
    assert find_cycle({"x": {"a"}, "a": {"b"}, "b": {"c"}, "c": {"a", "y"}, "y": set()}) == ["a", "b", "c", "a"]
    assert find_cycle({"a": {"a"}}) == ["a", "a"]


@pytest.mark.parametrize("module", [m for m in MODULES if m not in ("__main__.py", "cli/main.py")])
def test_nobody_imports_the_command(module):
    """Verbs are loaded by name by cli/main.py; what they share with it lies below."""
    assert "dkl.cli.main" not in imported_modules(module, {"dkl.cli.main"})


@pytest.mark.parametrize("module", [m for m in MODULES if layer_of(m) not in {"engine", "learn", "estimators", "cli"}])
def test_only_the_engine_knows_dask(module):
    """Kernels, features, sums and solvers are numpy only; sources and the store know files and Zarr."""
    if module in FREE or layer_of(module) in {"store", "sources"}:
        banned = {"dask", "distributed"}
    else:
        banned = {"dask", "distributed", "xarray", "zarr", "pandas"}
    tree = ast.parse((ROOT / module).read_text())
    names = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    assert not names & banned


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_short(module):
    """A file becomes a folder at about 300 lines."""
    assert len((ROOT / module).read_text().splitlines()) <= 300


@pytest.mark.parametrize("module", MODULES)
def test_functions_are_short(module):
    """At most 60 lines, without the docstring."""
    for node in ast.walk(ast.parse((ROOT / module).read_text())):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            assert not body or body[-1].end_lineno - body[0].lineno < 60, f"{module}: {node.name} is too long"


@pytest.mark.parametrize("module", MODULES)
def test_everything_public_has_a_docstring(module):
    """Modules, classes, functions and methods; properties and nested functions may speak for themselves."""
    tree = ast.parse((ROOT / module).read_text())
    assert ast.get_docstring(tree), module
    for scope in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        for node in scope.body:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.name.startswith("_"):
                continue
            if isinstance(node, ast.ClassDef):
                documented = any(isinstance(n, ast.Assign) and n.targets[0].id == "__doc__" for n in node.body)
            else:
                documented = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
            assert documented or ast.get_docstring(node), f"{module}: {node.name}"
