"""The progress line: what it says, and when it is silent."""

from __future__ import annotations

import io
import logging
import os
import pty
import re
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import dkl
from dkl.engine import progress
from dkl.engine.progress import Progress, describe


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Yes."""
        return True


def test_line_content():
    """Label, rows done and in all, rows per second, time left or in all."""
    line = describe("sums", 250_000, 1_000_000, 10.0)
    for part in ("sums", "250,000/1,000,000 rows", "25,000 rows/s", "0:30 left"):
        assert part in line
    assert line.count("#") * 3 == line.count(".")
    assert "1:00:00 left" in describe("sums", 1, 3601, 1.0)
    done = describe("sums", 1000, 1000, 75.0)
    assert "1:15 in all" in done
    assert "left" not in done
    assert "." not in done


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        ((250_000, 10**6, 10.0), f"sums [{'#' * 6}{'.' * 18}] 250,000/1,000,000 rows  25,000 rows/s  0:30 left"),
        ((10, 10, 3725.4), f"sums [{'#' * 24}] 10/10 rows  0 rows/s  1:02:05 in all"),
        ((3_500_000, 10_900_000, 2.0, "bytes"), f"sums [{'#' * 7}{'.' * 17}] 3/10 MB  2 MB/s  0:05 left"),
        ((12, 10, 2.0), "sums: 12 rows  6 rows/s"),
        ((12, 10, 0.0), "sums: 12 rows  12,000,000,000 rows/s"),
        ((0, 0, 0.0), f"sums [{'#' * 24}] 0/0 rows  0 rows/s  0:00 in all"),
        ((0, 9, 59.6), f"sums [{'.' * 24}] 0/9 rows  0 rows/s  1:00 so far"),
    ],
)
def test_whole_lines(numbers, line):
    """Every character, in rows and in bytes; of a source that holds more than was known, no share."""
    assert describe("sums", *numbers) == line


def test_waiting_tells_its_name_and_its_time(monkeypatch):
    """Work without rows: its name once it takes long, its time in the end; an event in any case."""
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.3)
    screen, events = Screen(), []
    watcher = Progress(1, screen)
    with progress.listening(events.append):
        with watcher.waiting("short"):
            pass
        assert screen.getvalue() == ""
        with watcher.waiting("solving"):
            time.sleep(0.8)
    progress.tell(event="later")
    assert re.fullmatch(r"\rsolving \.\.\.\rsolving: 0:0[1-9]\n", screen.getvalue())
    assert [(event["event"], event["name"]) for event in events] == [("work", "short"), ("work", "solving")]
    assert events[0]["seconds"] < 0.3 < events[1]["seconds"]


def test_passes_that_share_a_line(monkeypatch):
    """Inside `on_one_line` passes end without a newline; what is said takes their place, and one newline ends it."""
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.setattr(progress, "UPDATE_SECONDS", 0.0)
    screen, events = Screen(), []
    watcher = Progress(1, screen)
    with progress.listening(events.append), watcher.on_one_line():
        for name in ("one", "two"):
            watcher.name(name).begin(10)
            for rows in (4, 6):
                time.sleep(0.01)
                watcher.advance(rows)
            watcher.end()
        watcher.say("well")
        assert "\n" not in screen.getvalue()
    assert screen.getvalue().endswith("\n")
    assert screen.getvalue().count("\n") == 1
    lines = [line.rstrip() for line in screen.getvalue().strip().split("\r")]
    assert [line.split()[0] for line in lines if line] == ["one"] * 3 + ["two"] * 3 + ["well"]
    assert [(event["name"], event["rows"]) for event in events] == [("one", 10), ("two", 10)]
    silent = Progress(0, screen)
    before = screen.getvalue()
    with silent.on_one_line():
        silent.say("nothing")
    assert screen.getvalue() == before


def test_line_of_nothing():
    """No rows yet, no rows at all: no division by zero."""
    assert "0/10 rows" in describe("sums", 0, 10, 0.0)
    assert "0/0 rows" in describe("sums", 0, 0, 0.0)


def run_pass(stream, verbose=1, seconds=1.2, rows=100):
    """A pass that takes that long."""
    watcher = Progress(verbose, stream).name("sums")
    watcher.begin(rows)
    begin = time.monotonic()
    for _ in range(rows):
        watcher.advance(1)
        time.sleep(seconds / rows)
    watcher.end()
    return time.monotonic() - begin


def test_long_pass_writes_one_line_again_and_again():
    """Updates by carriage return, at most one each 0.2 s, and a newline at the end."""
    stream = Screen()
    took = run_pass(stream)
    text = stream.getvalue()
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert 2 <= text.count("\r") <= (took - progress.DELAY_SECONDS) / progress.UPDATE_SECONDS + 2
    assert "100/100 rows" in text.split("\r")[-1]
    counts = [int(n) for n in re.findall(r"(\d+)/100 rows", text)]
    assert counts == sorted(counts)


def test_silent():
    """A short pass, verbose=0, and a stream that is no terminal."""
    for stream, verbose, seconds in ((Screen(), 1, 0.1), (Screen(), 0, 1.0), (io.StringIO(), 1, 1.0)):
        run_pass(stream, verbose, seconds)
        assert stream.getvalue() == ""


def test_a_line_now_and_then_where_nobody_watches(monkeypatch):
    """Whole lines without carriage returns, as often as said and no more; verbose=0 has none."""
    assert progress.LOG_SECONDS == 30
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.3)
    stream = io.StringIO()
    took = run_pass(stream)
    lines = stream.getvalue().splitlines(keepends=True)
    assert 2 <= len(lines) <= took / 0.3 + 1
    for line in lines:
        assert re.fullmatch(r"sums \[[#.]{24}\] [\d,]+/100 rows  [\d,]+ rows/s  \d+:\d\d (left|in all)\n", line)
    counts = [int(re.search(r"(\d+)/100", line)[1]) for line in lines]
    assert counts == sorted(set(counts))
    stream = io.StringIO()
    run_pass(stream, verbose=0)
    assert stream.getvalue() == ""


def test_a_line_though_no_block_ends(monkeypatch):
    """A block, and a solve, that take long are seen to go on; afterwards nothing more comes."""
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.2)
    stream = io.StringIO()
    watcher = Progress(1, stream).name("sums")
    watcher.begin(100)
    time.sleep(0.7)
    watcher.end()
    assert stream.getvalue().count("sums [") >= 2
    assert "0/100 rows" in stream.getvalue()
    with watcher.waiting("solving"):
        time.sleep(0.7)
    said = stream.getvalue()
    assert said.count("solving ... 0:0") >= 2
    time.sleep(0.5)
    assert stream.getvalue() == said


def test_a_log_that_is_closed_stops_nothing(monkeypatch):
    """The pass goes on."""
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.01)
    stream = io.StringIO()
    watcher = Progress(1, stream)
    stream.close()
    watcher.begin(10)
    time.sleep(0.1)
    watcher.screen.show("a line that is due")
    watcher.end()
    assert watcher.screen.due > time.monotonic() - 1


def test_python_logging(caplog):
    """Passes, solves and iterations at INFO, trials at DEBUG, under dkl; silent unless it is asked for."""
    X = np.random.default_rng(0).standard_normal((300, 3))
    model = dkl.SingleKernelRegressor(n_components=20, learn="cv", max_iter=2, random_state=0, verbose=0)

    def run():
        caplog.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two steps are not the end
            model.fit(X, np.sin(X[:, 0]))
        return {(record.name, record.levelname) for record in caplog.records if record.name.startswith("dkl")}

    with caplog.at_level(logging.DEBUG, "dkl"):
        found = run()
    info = {("dkl.pass", "INFO"), ("dkl.solve", "INFO"), ("dkl.iteration", "INFO")}
    assert found >= info | {("dkl.trial", "DEBUG")}
    iterations = [record for record in caplog.records if record.name == "dkl.iteration"]
    assert [f"{record.dkl['objective']:.6g}" in record.getMessage() for record in iterations] == [True] * len(
        iterations
    )
    assert [record.dkl["objective"] for record in iterations] == model.history_.objective.values.tolist()
    passes = [record.getMessage() for record in caplog.records if record.name == "dkl.pass"]
    assert any(re.fullmatch(r"adding up X: rows 300, seconds [\d.e-]+", line) for line in passes), passes
    with caplog.at_level(logging.INFO, "dkl"):
        assert info <= run() <= info | {("dkl.work", "INFO")}
    assert [type(handler) for handler in logging.getLogger("dkl").handlers] == [logging.NullHandler]


def test_shorter_line_leaves_no_rest():
    """A shorter line covers the longer one before it."""
    stream = Screen()
    terminal = progress.Terminal(stream)
    terminal.show("a long line")
    terminal.show("short")
    assert stream.getvalue() == "\ra long line\rshort      "


SLOW_FIT = """
import sys, time, numpy as np, dask.array as da, dkl
def slow(block):
    time.sleep(0.08)
    return block
X = da.random.default_rng(0).standard_normal((24000, 3), chunks=(600, 3)).map_blocks(slow, dtype=float)
dkl.SingleKernelRegressor(n_components=10, sigma=1.0, verbose=int(sys.argv[1])).fit(X, np.arange(24000.0))
"""


def run_in_terminal(verbose):
    """stderr of the slow fit on a real pseudo-terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", SLOW_FIT, str(verbose)], stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(ours)
    assert process.communicate()[0] == b""
    assert process.returncode == 0, seen.decode()
    return seen.decode()


def test_slow_fit_on_a_terminal_shows_it():
    """Pass, rows, rows/s and time left, ending at all rows."""
    text = run_in_terminal(1)
    assert re.search(r"adding up X \[#+\.+\] [\d,]+/24,000 rows  [\d,]+ rows/s  \d+:\d\d left", text)
    assert "24,000/24,000 rows" in text.split("\r")[-2] + text.split("\r")[-1]
    assert "Traceback" not in text


@pytest.mark.long
def test_slow_fit_with_verbose_0_is_silent():
    """Not one character."""
    assert run_in_terminal(0) == ""


@pytest.mark.long
def test_slow_fit_without_terminal_is_silent():
    """stderr to a pipe stays empty."""
    done = subprocess.run([sys.executable, "-c", SLOW_FIT, "1"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout == ""


def test_an_unknown_value_is_none(caplog):
    """NaN is no JSON, and nothing to read in a log."""
    events = []
    with progress.listening(events.append), caplog.at_level(logging.INFO, "dkl"):
        progress.tell(event="iteration", objective=0.5, unseen_error=float("nan"), alpha=[1.0])
    assert events == [{"event": "iteration", "objective": 0.5, "unseen_error": None, "alpha": [1.0]}]
    assert caplog.messages == ["iteration: objective 0.5, alpha [1.0]"]
