"""Progress: silent at first, then a line now and again, and no thread beside a sample."""

import os
import select
import threading

import pytest

from jaxgate.engine.run import progress as module
from jaxgate.engine.run.progress import Progress, StatusLine

GUARD_S = 10.0
"""A line that has not come by then never will; waiting ends as soon as it comes."""


class Pipe:
    """Stands for the terminal: what is written into one end is read from the other."""

    def __init__(self):
        self.reading, self.writing = os.pipe()
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
        """All that was written and not read; nobody may write any more."""
        os.close(self.writing)
        self.writing = -1
        while chunk := os.read(self.reading, 4096):
            self._rest += chunk
        return self._rest.decode()

    def close(self):
        for descriptor in (self.reading, self.writing):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def pipe():
    """An open pipe."""
    pipe = Pipe()
    yield pipe
    pipe.close()


IMPATIENT = {"patience_s": 0.001, "repeat_s": 0.002}
"""Lines come at once."""


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


def test_lines_tell_case_stage_and_seconds(pipe):
    """After two seconds, then every fifteen, a line says what is being done and for how long."""
    over = FakeEvent(lines=4)
    Progress(pipe.writing, "scan/rnn")._watch(
        over, "compiling the reference", module.PATIENCE_S, StatusLine(pipe.writing, live=False)
    )
    assert over.waits == [2.0, 15.0, 15.0, 15.0, 15.0]
    assert pipe.everything().split("\n") == [
        *("", "  scan/rnn: compiling the reference, 2 s so far"),
        *("", "  scan/rnn: compiling the reference, 17 s so far"),
        *("", "  scan/rnn: compiling the reference, 32 s so far"),
        *("", "  scan/rnn: compiling the reference, 47 s so far", ""),
    ]


class Busy:
    """A machine on which somebody else measures."""

    def work(self, waiting):
        """Nothing to wait for."""

    def __init__(self, others):
        self._others = others

    def alone(self, waiting):
        """Tell that it must wait."""
        waiting()

    def others(self):
        """Who of other runs holds it."""
        return self._others

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
    waits = Busy("process 7")
    waits.alone = lambda waiting: (waiting(), asked.append(pipe.line()))
    asked = []
    with Progress(None, "scan/rnn", waits, waits=pipe.writing, **IMPATIENT) as progress:
        progress("compiling the subject")
        progress(module.SAMPLING)
    assert asked == [f"  scan/rnn: {WAITING} by process 7, 0 s so far"]


def test_a_short_stage_says_nothing(pipe):
    """A stage that ends within its patience leaves the terminal alone."""
    with Progress(pipe.writing, "scan/rnn", patience_s=1e6) as progress:
        for stage in ("building the workload", "tracing the subject", "sampling", "judging"):
            progress(stage)
    assert pipe.everything() == ""


def test_a_long_stage_speaks_again_and_again(pipe):
    with Progress(pipe.writing, "scan/rnn", **IMPATIENT) as progress:
        progress("compiling the subject")
        lines = [pipe.line() for _ in range(3)]
    assert lines == ["  scan/rnn: compiling the subject, 0 s so far"] * 3


def test_the_next_stage_replaces_the_last(pipe):
    """Once a stage is entered no line of an earlier one is written."""
    with Progress(pipe.writing, "scan/rnn", **IMPATIENT) as progress:
        progress("tracing the subject")
        pipe.line()
        progress("compiling the subject")
        while "compiling" not in pipe.line():
            pass  # lines of the first stage that were in the pipe already
        assert [pipe.line() for _ in range(3)] == ["  scan/rnn: compiling the subject, 0 s so far"] * 3


def test_nothing_runs_beside_a_sample(pipe):
    """When the stage is sampling the thread of the one before is gone and none is started."""
    before = threading.enumerate()
    with Progress(pipe.writing, "scan/rnn", **IMPATIENT) as progress:
        progress("compiling the subject")
        pipe.line()
        assert len(threading.enumerate()) == len(before) + 1
        progress("sampling")
        assert threading.enumerate() == before
        progress("comparing")
        assert len(threading.enumerate()) == len(before) + 1
    assert threading.enumerate() == before


def test_its_thread_does_not_keep_the_process_alive(pipe):
    """The thread is a daemon: an interpreter that ends does not wait for it."""
    with Progress(pipe.writing, "scan/rnn", **IMPATIENT) as progress:
        before = threading.enumerate()
        progress("compiling the subject")
        (thread,) = set(threading.enumerate()) - set(before)
        assert thread.daemon


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_it_falls_silent_whatever_happened(pipe, error):
    """A stage that raises ends like any other, and its exception goes on."""
    before = threading.enumerate()

    def run():
        with Progress(pipe.writing, "scan/rnn", **IMPATIENT) as progress:
            progress("running the subject")
            pipe.line()
            raise error

    with pytest.raises(error):
        run()
    assert threading.enumerate() == before


def test_without_a_terminal_there_is_no_thread():
    before = threading.enumerate()
    with Progress(None, "scan/rnn", **IMPATIENT) as progress:
        progress("compiling the subject")
        assert threading.enumerate() == before


def test_a_terminal_that_went_away_harms_nobody(pipe):
    """A line that cannot be written is lost; a thread that dies of it would be a warning, and so an error."""
    os.close(pipe.reading)
    pipe.reading = -1
    over = FakeEvent(lines=2)
    Progress(pipe.writing, "scan/rnn")._watch(
        over, "compiling the subject", module.PATIENCE_S, StatusLine(pipe.writing, live=False)
    )


def test_an_unused_progress_does_nothing(pipe):
    with Progress(pipe.writing, "scan/rnn"):
        pass
    assert pipe.everything() == ""


def test_on_a_terminal_the_line_says_how_far_the_run_is(monkeypatch):
    """It is overwritten each second, and gone before the next stage."""
    ours, theirs = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    event = FakeEvent(lines=2)
    monkeypatch.setattr(module.threading, "Event", lambda: event)
    progress = Progress(theirs, "scan/rnn", left=lambda: "3 of 9 gates")
    line = StatusLine(theirs, live=True)
    progress._watch(event, "compiling", 2.0, line)
    os.write(theirs, b"END")
    written = ""
    while not written.endswith("END"):  # a terminal gives what was written in pieces
        written += os.read(ours, 4096).decode()
    written = written.removesuffix("END")
    assert event.waits == [2.0, 1.0, 1.0]
    assert "scan/rnn: compiling, 2 s so far · 3 of 9 gates" in written
    assert "scan/rnn: compiling, 3 s so far · 3 of 9 gates" in written
    assert written.endswith("\x1b[2K\x1b8")
    os.close(ours)
    os.close(theirs)
