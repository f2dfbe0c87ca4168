"""When a progress line is shown, by a clock that the test sets."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from types import SimpleNamespace

import pytest

from dkl.engine import progress
from dkl.engine.notebook import Notebook
from dkl.engine.progress import Lines, Progress, Terminal, listening, tell


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Yes."""
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when the test says so."""
    now = SimpleNamespace(value=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.value))
    return now


def shown(stream):
    """Row counts of the lines so far."""
    return [int(part.split("/")[0].split()[-1]) for part in stream.getvalue().split("\r")[1:]]


def test_when_a_pass_is_shown(clock):
    """Not in its first 0.7 s, then not more often than each 0.2 s, and at its end."""
    stream = Screen()
    watcher = Progress(1, stream).name("sums")
    watcher.begin(100)
    for seconds in (0.0, 0.3, 0.69, 0.71, 0.8, 0.9, 0.92, 1.1, 1.13):
        clock.value = 1000 + seconds
        watcher.advance(1)
    assert shown(stream) == [4, 7, 9]
    assert "\n" not in stream.getvalue()
    clock.value += 0.05
    watcher.end()
    assert shown(stream) == [4, 7, 9, 9]
    assert stream.getvalue().endswith("\n")
    watcher.begin(100)
    clock.value += 0.6
    watcher.advance(50)
    watcher.end()
    assert shown(stream) == [4, 7, 9, 9]


def test_what_a_pass_tells(clock):
    """Its name, its rows or bytes, its seconds."""
    events, watcher = [], Progress(0).name("reading")
    with listening(events.append):
        watcher.begin(10)
        watcher.advance(4)
        watcher.advance(5)
        clock.value += 2.5
        watcher.end()
        watcher.begin(10, "bytes")
        watcher.advance(7)
        watcher.end()
    assert events == [
        {"event": "pass", "name": "reading", "rows": 9, "seconds": 2.5},
        {"event": "pass", "name": "reading", "bytes": 7, "seconds": 0.0},
    ]
    assert Progress(0).screen is None
    assert (watcher.total, watcher.unit) == (10, "bytes")


def test_a_watcher_at_rest():
    """Nothing done, nothing shown."""
    watcher = Progress(0)
    assert (watcher.label, watcher.total, watcher.done, watcher.unit) == ("", 0, 0, "rows")
    assert (watcher.started, watcher.shown, watcher.folded, watcher.beat) == (0.0, 0.0, False, None)
    assert isinstance(Progress(stream=Screen()).screen, Terminal)


def test_many_passes_say_where_they_stand(clock):
    """In a log what was said last, and how far the pass is; in a terminal the note after the bar, until they end."""
    terminal, log = Progress(1, Screen()), Progress(1, io.StringIO())
    for watcher in (terminal, log):
        with watcher.on_one_line():
            watcher.name("iteration 23").begin(200)
            assert watcher._line().startswith("iteration 23 [....")
            watcher.say("weights: objective 0.3, residual 3e-03 of 1e-04", "residual 3e-03 of 1e-04")
            watcher.done = 50
        assert (watcher.said, watcher.note) == ("", "")
    for watcher in (terminal, log):
        watcher.folded = True
        watcher.say("weights: objective 0.3, residual 3e-03 of 1e-04", "residual 3e-03 of 1e-04")
    assert log._line() == "weights: objective 0.3, residual 3e-03 of 1e-04; 25% of the next pass"
    assert terminal._line().startswith("iteration 23 [######....")
    assert terminal._line().endswith("residual 3e-03 of 1e-04")
    log._watch(None)


def test_lines_are_due_each_half_minute(clock):
    """The first after thirty seconds, the next thirty after it; rest of a longer line is no part of it."""
    stream = io.StringIO()
    lines = Lines(stream)
    for seconds, line in ((29.9, "a"), (30.0, "b  "), (59.9, "c"), (60.0, "d"), (100.0, "e"), (129.0, "f")):
        clock.value = 1000 + seconds
        lines.show(line)
    assert stream.getvalue() == "b\nd\ne\n"
    lines.close()
    assert stream.getvalue() == "b\nd\ne\n"


def test_only_lines_have_a_beat():
    """A terminal is written to when something happens; silence needs none; the last beat ends with its pass."""
    terminal, silent, lines = Progress(1, Screen()), Progress(0), Progress(1, io.StringIO())
    for watcher in (terminal, silent, lines):
        watcher.begin(10)
    assert terminal.beat is silent.beat is None
    first = lines.beat
    assert not first.stop.is_set()
    lines.begin(10)
    assert first.stop.is_set()
    second = lines.beat
    lines.end()
    assert second.stop.is_set()
    assert lines.beat is None


def test_a_listener_alone():
    """No progress lines are made meanwhile; another one does not silence them."""
    with listening(lambda event: None):
        assert Progress(1, Screen()).screen is not None
    with listening(lambda event: None, alone=True):
        assert Progress(1, Screen()).screen is None
    assert Progress(1, Screen()).screen is not None
    assert progress._listeners == progress._silencers == []


def test_a_listener_hears_only_inside():
    """Also if the inside fails."""
    events = []
    with contextlib.suppress(KeyError), listening(events.append, alone=True):
        tell(event="trial", number=1)
        raise KeyError
    tell(event="trial", number=2)
    assert events == [{"event": "trial", "number": 1}]
    assert progress._silencers == []


@pytest.mark.parametrize(("event", "level"), [("pass", "INFO"), ("iteration", "INFO"), ("trial", "DEBUG")])
def test_levels_and_words_of_the_log(caplog, event, level):
    """Six digits; the name first; what is not known is left out, and stays None in the record."""
    with caplog.at_level(logging.DEBUG, "dkl"):
        tell(event=event, name="first", rows=7, seconds=1 / 3, alpha=float("nan"))
    (record,) = caplog.records
    assert (record.name, record.levelname) == (f"dkl.{event}", level)
    assert record.getMessage() == "first: rows 7, seconds 0.333333"
    assert record.dkl == {"event": event, "name": "first", "rows": 7, "seconds": 1 / 3, "alpha": None}
    caplog.clear()
    with caplog.at_level(logging.WARNING, "dkl"):
        tell(event=event, rows=7)
    assert caplog.records == []


def test_where_the_user_looks(monkeypatch):
    """A terminal, a log, nowhere, or a notebook's cell."""
    assert isinstance(progress._screen(Screen()), Terminal)
    assert isinstance(progress._screen(io.StringIO()), Lines)
    assert isinstance(progress._screen(SimpleNamespace(write=None)), Lines)
    monkeypatch.setattr(sys, "stderr", None)
    assert progress._screen(None) is None
    monkeypatch.setattr(sys, "stderr", Screen())
    assert progress._screen(None).stream is sys.stderr
    for shell, kind in ((None, Terminal), (SimpleNamespace(), Terminal), (SimpleNamespace(kernel=1), Notebook)):
        ipython = SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert isinstance(progress._screen(Screen()), kind)


def test_a_cell_is_updated(tmp_path, monkeypatch):
    """One output, whose text is replaced; after close the next line has an output of its own."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.instance()
    try:
        with capture_output() as caught:
            cell = Notebook()
            cell.show("a")
            cell.show("b")
            cell.close()
            cell.show("c")
    finally:
        InteractiveShell.clear_instance()
    found = [(out.data["text/plain"], bool(out.update), out.transient["display_id"]) for out in caught.outputs]
    assert [(text, update) for text, update, _ in found] == [("a", False), ("b", True), ("c", False)]
    assert found[0][2] == found[1][2] != found[2][2]


def test_a_terminal_forgets_the_line_it_left():
    """Nothing is covered on a new line."""
    stream = Screen()
    terminal = Terminal(stream)
    terminal.show("long line")
    terminal.close()
    terminal.show("ab")
    assert stream.getvalue() == "\rlong line\n\rab"


def test_lines_are_apart_again_afterwards(clock):
    """A pass after `on_one_line` ends its own line."""
    stream = Screen()
    watcher = Progress(1, stream).name("sums")
    with watcher.on_one_line():
        assert watcher.folded
    assert not watcher.folded
    watcher.begin(10)
    clock.value += 1
    watcher.advance(10)
    watcher.end()
    assert stream.getvalue().count("\n") == 2
