"""Progress: silent at first, then a line now and again, overwritten on a terminal; and no thread beside a sample."""

import fcntl
import os
import select
import struct
import termios
import threading

import pytest

from jaxgate.engine.run import progress as module
from jaxgate.engine.run.gate_cost import time_left
from jaxgate.engine.run.progress import Progress, StatusLine, is_live
from jaxgate.model.workload import Cost

GUARD_S = 10.0
"""A line that has not come by then never will; waiting ends as soon as it comes."""
BELOW, BACK = "\x1bD\x1bM\x1b7\x1b[B\r\x1b[2K", "\x1b8"
IMPATIENT = {"patience_s": 0.001, "repeat_s": 0.002}
"""Lines come at once."""


class Pipe:
    """Stands for what shows progress: what is written into one end is read from the other."""

    def __init__(self, ends):
        self.reading, self.writing = ends
        self._rest = b""

    def line(self):
        """The next line that is not empty; waits for it."""
        while True:
            line, newline, rest = self._rest.partition(b"\n")
            if newline:
                self._rest = rest
                if line:
                    return line.decode()
                continue
            assert select.select([self.reading], [], [], GUARD_S)[0], "no line came"
            self._rest += os.read(self.reading, 4096)

    def everything(self):
        """All that was written and not read."""
        os.write(self.writing, b"END")
        while not self._rest.endswith(b"END"):  # a terminal gives what was written in pieces
            self._rest += os.read(self.reading, 4096)
        return self._rest.removesuffix(b"END").decode()

    def close(self):
        for descriptor in (self.reading, self.writing):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def pipe():
    """An open pipe."""
    pipe = Pipe(os.pipe())
    yield pipe
    pipe.close()


@pytest.fixture
def terminal():
    """A terminal of 60 columns."""
    found = Pipe(os.openpty())
    fcntl.ioctl(found.writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    """Each test ends with the threads that it began with."""
    before = threading.enumerate()
    yield
    assert threading.enumerate() == before


class FakeEvent:
    """Lets time pass at once: each wait runs out, until the stage is over."""

    def __init__(self, lines):
        self.waits = []
        self._lines = lines

    def wait(self, timeout):
        self.waits.append(timeout)
        return len(self.waits) > self._lines


def watched(pipe, lines, *, live=False, **about):
    """What a stage waited for before each of so many lines."""
    over = FakeEvent(lines)
    Progress(pipe.writing, "scan/rnn", **about)._watch(over, "compiling", 2.0, StatusLine(pipe.writing, live=live))
    return over.waits


def test_lines_tell_case_stage_and_seconds(pipe):
    """After two seconds, then every fifteen, a line says what is being done and for how long."""
    assert watched(pipe, 3) == [2.0, 15.0, 15.0, 15.0]
    lines = [f"\n  scan/rnn: compiling, {seconds} s so far\n" for seconds in (2, 17, 32)]
    assert pipe.everything() == "".join(lines)


def test_on_a_terminal_the_line_says_how_far_the_run_is(terminal):
    """It is overwritten each second, and gone before the next stage; the cursor is where it was."""
    assert watched(terminal, 2, live=True, left=lambda: "3 of 9 gates") == [2.0, 1.0, 1.0]
    shown = [f"{BELOW}  scan/rnn: compiling, {seconds} s so far · 3 of 9 gates{BACK}" for seconds in (2, 3)]
    assert terminal.everything() == f"{''.join(shown)}{BELOW}{BACK}"


def test_a_line_is_cut_to_the_width_and_cleared_if_it_was_shown(terminal):
    """It never takes a second line; a stage that was quick leaves the terminal alone."""
    line = StatusLine(terminal.writing, live=True)
    line.clear()
    line.show("x" * 80)
    assert terminal.everything() == f"{BELOW}{'x' * 59}{BACK}"


def test_only_a_terminal_that_moves_its_cursor_is_live(terminal, pipe):
    """A pipe is not, nor one that calls itself dumb."""
    assert is_live(terminal.writing, {"TERM": "xterm"})
    assert not is_live(terminal.writing, {"TERM": "dumb"})
    assert not is_live(terminal.writing, {})
    assert not is_live(pipe.writing, {"TERM": "xterm"})
    assert not is_live(None, {"TERM": "xterm"})


def test_a_terminal_that_went_away_harms_nobody(pipe):
    """A line that cannot be written is lost; a thread that dies of it would be a warning, and so an error."""
    os.close(pipe.reading)
    pipe.reading = -1
    watched(pipe, 2)


class Busy:
    """A machine on which somebody else measures; ``others`` is who of other runs holds it."""

    def __init__(self, others, then=lambda: None):
        self.others = lambda: others
        self._then = then

    def work(self, waiting):
        """Nothing to wait for."""

    def alone(self, waiting):
        """Tell that it must wait."""
        waiting()
        self._then()

    def leave(self):
        """Nothing was held."""


WAITING = "waiting until nothing else is measured on this machine"


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (None, (WAITING, module.REPEAT_S)),
        ("", (WAITING, module.PATIENCE_S)),
        ("process 7 (a/b of /c)", (f"{WAITING} by process 7 (a/b of /c)", module.PATIENCE_S)),
    ],
    ids=["own workers", "nobody knows", "another run"],
)
def test_a_short_wait_for_another_worker_is_no_news(pipe, others, told):
    """Beside workers of its own each timed stage waits a few seconds; for another run a line comes after two, with its name."""
    asked = []

    class Watched(Progress):
        def _watch(self, over, stage, patience_s, descriptor):
            asked.append((stage, patience_s))

    with Watched(pipe.writing, "scan/rnn", Busy(others)) as progress:
        progress("tracing the subject")
        progress(module.SAMPLING)
    assert asked == [("tracing the subject", module.PATIENCE_S), told]


def test_a_wait_is_told_where_nothing_else_is(pipe):
    """With -q a stage says nothing; that another run keeps this one from going on is no progress."""
    asked = []
    busy = Busy("process 7", lambda: asked.append(pipe.line()))
    with Progress(None, "scan/rnn", busy, waits=pipe.writing, **IMPATIENT) as progress:
        progress("compiling the subject")
        progress(module.SAMPLING)
    assert asked == [f"  scan/rnn: {WAITING} by process 7, 0 s so far"]


def test_a_short_stage_says_nothing(pipe):
    """A stage that ends within its patience leaves the terminal alone."""
    with Progress(pipe.writing, "scan/rnn", patience_s=1e6) as progress:
        for stage in ("building the workload", "tracing the subject", "sampling", "judging"):
            progress(stage)
    assert pipe.everything() == ""


def test_a_long_stage_speaks_again_and_again_until_the_next(pipe):
    """Once a stage is entered no line of an earlier one is written."""
    with Progress(pipe.writing, "scan/rnn", **IMPATIENT) as progress:
        progress("tracing the subject")
        assert [pipe.line() for _ in range(3)] == ["  scan/rnn: tracing the subject, 0 s so far"] * 3
        progress("compiling the subject")
        while "compiling" not in pipe.line():
            pass  # lines of the first stage that were in the pipe already
        assert [pipe.line() for _ in range(3)] == ["  scan/rnn: compiling the subject, 0 s so far"] * 3


def test_nothing_runs_beside_a_sample(pipe):
    """When the stage is sampling the thread of the one before is gone and none is started; none keeps a process alive."""
    before = threading.enumerate()
    with Progress(pipe.writing, "scan/rnn", **IMPATIENT) as progress:
        progress("compiling the subject")
        pipe.line()
        (thread,) = set(threading.enumerate()) - set(before)
        assert thread.daemon
        progress("sampling")
        assert threading.enumerate() == before
        progress("comparing")
        assert len(threading.enumerate()) == len(before) + 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_it_falls_silent_whatever_happened(pipe, error):
    """A stage that raises ends like any other, without a thread of its own, and its exception goes on."""

    def run():
        with Progress(pipe.writing, "scan/rnn", **IMPATIENT) as progress:
            progress("running the subject")
            pipe.line()
            raise error

    with pytest.raises(error):
        run()


def test_without_a_terminal_there_is_no_thread():
    before = threading.enumerate()
    with Progress(None, "scan/rnn", **IMPATIENT) as progress:
        progress("compiling the subject")
        assert threading.enumerate() == before


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
    known = {test: Cost(unchanged_s=seconds, duel_s=None) for test, seconds in costs.items()}
    assert time_left(tests, known, begun) == words
