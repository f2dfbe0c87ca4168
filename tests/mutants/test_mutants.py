"""The driver of `make mutants` on a tiny package: a kill, a survivor, a time-out, and going on after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.exempt import CONSTANTS, Exempt
from tests.mutants.mirrors import LAYERS, MODULES, mirrors_of
from tests.mutants.places import draw, operators
from tests.mutants.session import Session, report, sample
from tests.mutants.trial import Run, Warm

ROOT = Path(__file__).parents[2]
CODE = '''"""Two functions."""


def area(width: int | None, height: int) -> int:
    """Tested."""
    return width * height


def sides(width, height):
    """Not tested."""
    return width + height
'''
AREA = "from dkl.shapes.area import area, sides\n\n\ndef test_area():\n    assert area(2, 3) == 6\n"
SIDES = "\n\ndef test_sides():\n    assert sides(7, 2) == 9\n"


@pytest.fixture
def tiny(tmp_path):
    """A package of one module and its mirror test."""
    for name, text in {"dkl/shapes/area.py": CODE, "tests/shapes/test_area.py": AREA}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    for folder in ("dkl", "dkl/shapes", "tests", "tests/shapes"):
        (tmp_path / folder / "__init__.py").touch()
    return tmp_path


def test_a_kill_and_a_survivor(tiny):
    """What the test looks at is caught, the rest survives, is reported, and is caught once there is a test."""
    said, folder = [], tiny / "output"
    mutants = sample(tiny, ["shapes"], 99, 0)
    assert sorted(m.line for m in mutants) == [6, 11]
    entries = Session(tiny, folder, said.append, ()).run(mutants, 2)
    assert {entry["line"]: entry["caught"] for entry in entries} == {6: True, 11: False}
    text = report(entries, "tiny")
    assert "1 of 2 mutants caught, share 0.500" in text
    assert "dkl/shapes/area.py:11\n    - return width + height\n    + return width " in text
    assert (tiny / "dkl/shapes/area.py").read_text() == CODE

    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text() + '{"key": "cut o')
    assert Session(tiny, folder, said.append, ()).run(mutants, 2) == entries
    assert "was cut off" in said[-1]

    journal.write_text("".join(f"{line}\n" for line in journal.read_text().splitlines()[:-1]))
    mirror = tiny / "tests/shapes/test_area.py"
    mirror.write_text(AREA + SIDES)
    session = Session(tiny, folder, said.append, ())
    assert [m.line for m in session.survivors()] == [11]
    assert "1 of 1 mutants caught" in report(session.run(session.survivors(), 1), "again")


def test_a_time_out_is_caught(tiny):
    """A mutant that does not end is noticed, and its process is ended."""
    (tiny / "tests/shapes/test_area.py").write_text("import time\n\n\ndef test_long():\n    time.sleep(600)\n")
    warm = Warm(())
    run = warm.run_tests(tiny, ["tests/shapes/test_area.py"], 3.0, False, "-x")
    warm.close()
    assert (run.code, run.caught, run.how) == (None, True, "time-out")
    assert run.seconds < 60


@pytest.mark.parametrize(("code", "caught"), [(0, False), (5, False), (1, True), (2, True), (4, True), (-11, True)])
def test_anything_but_success_is_caught(code, caught):
    """Tests that fail, modules or a conftest.py that cannot be loaded, and crashes."""
    assert Run(code, 1.0, "").caught == caught


def test_the_same_seed_draws_the_same_places(tiny):
    """No place twice, and another seed draws others."""
    files = ["dkl/shapes/area.py"]
    assert draw(tiny, files, 2, 3) == draw(tiny, files, 2, 3)
    drawn = {tuple(m.line for m in draw(tiny, files, 2, seed)) for seed in range(20)}
    assert len(drawn) > 1
    assert not any(name.endswith(("Eq_Is", "Gt_IsNot")) for name in operators())


@pytest.mark.parametrize(
    ("source", "word", "reason"),
    [
        ("def f(a: int | None) -> int | str: ...", "|", "type annotation"),
        ("raise ValueError(f'{n + 1} rows')", "+ 1", "text of a refusal"),
        ("warnings.warn('x', stacklevel=2)", "2", "which line a warning points at"),
        ("class A:\n    def __repr__(self):\n        return str(1 + 2)", "+", "words for a person"),
        ("class A:\n    @lru_cache(8)\n    def f(self): ...", "@", "a cache"),
        ("with ThreadPoolExecutor(n + 1) as pool: ...", "+", "how many threads share the work"),
        ("raise ValueError(n + 1)", "+", None),
        ("a = b + 1", "+", None),
        ("TILE = 512", "512", None),
    ],
)
def test_only_what_is_listed_is_left_out(source, word, reason):
    """Annotations, words, precautions and caches; everything else is fair game."""
    before = source[: source.index(word)]
    place = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1)
    assert Exempt("dkl/any.py", source).reason("core/any", *place) == reason


def test_lists_are_up_to_date():
    """Every mirror and every constant that is listed is still there."""
    for layer in LAYERS:
        for path in (ROOT / "dkl" / layer).glob("*.py"):
            assert mirrors_of(ROOT, path.relative_to(ROOT).as_posix())
    assert [name for name in MODULES if not (ROOT / "dkl" / name).exists()] == []
    for file, name in CONSTANTS:
        source = (ROOT / file).read_text()
        assert Exempt(file, source).spans
        assert any(f" {word}," in f" {line.split('=')[0].strip()}," for line in source.splitlines() for word in [name])
