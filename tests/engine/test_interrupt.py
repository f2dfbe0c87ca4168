"""Ctrl-C, by real signals to this process: the first is a wish, the second an end."""

from __future__ import annotations

import signal
import threading

import pytest

from dkl.engine import interrupt
from dkl.engine.interrupt import Interruption, check, watching


@pytest.fixture(autouse=True)
def as_in_a_terminal():
    """Python's own handler, which processes in the background do not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press():
    """Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def test_the_first_is_a_wish_once_there_is_something_to_keep():
    """Then the next look leaves; afterwards all is as before."""
    with watching() as watch:
        assert (watch.ready, watch.asked) == (False, False)
        check()
        watch.ready = True
        check()
        press()
        assert watch.asked
        with pytest.raises(Interruption):
            check()
    check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_before_that_it_stops_at_once():
    """As ever; and it is no wish."""
    with watching() as watch:
        with pytest.raises(KeyboardInterrupt) as caught:
            press()
        assert not isinstance(caught.value, Interruption)
        assert not watch.asked


def test_the_second_stops_at_once():
    """Though the first was heard."""
    with watching() as watch:
        watch.ready = True
        press()
        with pytest.raises(KeyboardInterrupt) as caught:
            press()
        assert not isinstance(caught.value, Interruption)


def test_a_handler_of_the_user_stays():
    """Also the one that ignores."""
    heard = []
    for handler in (lambda number, frame: heard.append(number), signal.SIG_IGN):
        signal.signal(signal.SIGINT, handler)
        with watching() as watch:
            watch.ready = True
            press()
            check()
            assert not watch.asked
            assert signal.getsignal(signal.SIGINT) is handler
        assert signal.getsignal(signal.SIGINT) is handler
    assert heard == [signal.SIGINT]


def run(call):
    """call() in another thread; what it raised."""
    found = []

    def work():
        try:
            call()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found


def test_other_threads_neither_hear_nor_leave():
    """They have no signals; a wish is the main thread's business."""

    def watched():
        with watching() as watch:
            assert interrupt._watch is None
            watch.ready = True

    assert run(watched) == []
    with watching() as watch:
        watch.ready = True
        press()
        assert run(check) == []
        with pytest.raises(Interruption):
            check()


def test_inside_another_watch():
    """The handler is taken already: the outer one hears."""
    with watching() as outer:
        outer.ready = True
        with watching() as inner:
            inner.ready = True
            press()
            assert (outer.asked, inner.asked) == (True, False)
        with pytest.raises(Interruption):
            check()


def test_looks_are_short():
    """A tenth of a second between two of them."""
    assert 0 < interrupt.LOOK <= 0.2
