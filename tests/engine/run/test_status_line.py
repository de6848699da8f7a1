"""The line of a long stage: overwritten on a terminal, a line of its own elsewhere; how far the run is."""

import fcntl
import os
import struct
import termios

import pytest

from jaxgate.engine.run.gate_cost import time_left
from jaxgate.engine.run.progress import StatusLine, is_live
from jaxgate.model.workload import Cost

BELOW, BACK = "\x1bD\x1bM\x1b7\x1b[B\r\x1b[2K", "\x1b8"


@pytest.fixture
def terminal():
    """Both ends of a terminal of 30 columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def read(ours, theirs):
    """All that was written to a terminal so far; it gives it in pieces."""
    os.write(theirs, b"END")
    found = b""
    while not found.endswith(b"END"):
        found += os.read(ours, 4096)
    return found.removesuffix(b"END").decode()


def test_a_terminal_has_one_line_below_its_cursor(terminal):
    """The cursor is where it was; the text is cut to the width, so that it never takes a second line."""
    ours, theirs = terminal
    line = StatusLine(theirs, live=True)
    line.show("  scan/rnn: compiling, 12 s so far · 35 of 246 gates")
    line.clear()
    shown = "  scan/rnn: compiling, 12 s s"
    assert len(shown) == 29
    assert read(ours, theirs) == f"{BELOW}{shown}{BACK}{BELOW}{BACK}"


def test_nothing_is_cleared_that_was_not_shown(terminal):
    """A stage that was quick leaves the terminal alone."""
    ours, theirs = terminal
    StatusLine(theirs, live=True).clear()
    assert read(ours, theirs) == ""


def test_elsewhere_each_text_is_a_line_of_its_own():
    reading, writing = os.pipe()
    line = StatusLine(writing, live=False)
    line.show("  scan/rnn: compiling, 12 s so far")
    line.clear()
    os.close(writing)
    assert os.read(reading, 4096) == b"\n  scan/rnn: compiling, 12 s so far\n"
    os.close(reading)


def test_only_a_terminal_that_moves_its_cursor_is_live(terminal):
    """A pipe is not, nor one that calls itself dumb."""
    reading, writing = os.pipe()
    assert is_live(terminal[1], {"TERM": "xterm"})
    assert not is_live(terminal[1], {"TERM": "dumb"})
    assert not is_live(terminal[1], {})
    assert not is_live(writing, {"TERM": "xterm"})
    assert not is_live(None, {"TERM": "xterm"})
    os.close(reading)
    os.close(writing)


def cost(seconds):
    """What a gate took."""
    return Cost(unchanged_s=seconds, duel_s=None)


@pytest.mark.parametrize(
    ("tests", "costs", "begun", "words"),
    [
        ("abcd", {"a": 9, "b": 20, "c": 30, "d": 40}, "a", "1 of 4 gates, about 90 s left"),
        ("abcd", {"a": 9, "b": 100, "c": 100}, "ax", "1 of 4 gates, about 5 min left"),
        ("abcd", {"b": 100}, "a", "1 of 4 gates"),
        ("abcd", {}, "abcd", "4 of 4 gates"),
        ("a", {"a": 9}, "", ""),
    ],
)
def test_how_far_a_run_is(tests, costs, begun, words):
    """In gates that were begun, and in time where at least half of those that are left were run before."""
    known = {test: cost(seconds) for test, seconds in costs.items()}
    assert time_left(tests, known, begun) == words
