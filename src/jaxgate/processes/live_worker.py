"""A worker process that stays alive and is asked line by line: a question and an answer are each one line of JSON."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from jaxgate.keep.files import read_text
from jaxgate.model.words import cut
from jaxgate.observe.source_lines import without_folders

MAX_WORDS = 200
"""Characters of what a process complained of that an error shows."""
_LOGGED = re.compile(r"[IWEF]\d{4} \d\d:\d\d:[\d.]+ +\d+ [^\s\]]+:\d+\] ")
"""What XLA writes before each line of its log: severity, day, time, thread, place."""
_FATAL = re.compile(f"(?=F){_LOGGED.pattern}")
_STACK = re.compile(r"@ |\*\*\*")
"""How lines begin in which XLA writes its own stack, after the reason."""


class WorkerError(Exception):
    """A worker process ended, or has a problem; the text says which, in one line."""


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A live process that answers questions."""

    live: subprocess.Popen[str]  # the process
    complaints: Path  # the file of what it complains of

    def ask(self, **question: Any) -> dict[str, Any]:
        """Ask a question; gives the answer.

        Raises:
            WorkerError: If it ended, or has a problem.
        """
        assert self.live.stdin is not None
        try:
            self.live.stdin.write(f"{json.dumps(question)}\n")
            self.live.stdin.flush()
        except OSError:
            raise WorkerError(self._ended()) from None
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Its next line.

        Raises:
            WorkerError: If it ended, or has a problem.
        """
        assert self.live.stdout is not None
        line = self.live.stdout.readline()
        if not line:
            raise WorkerError(self._ended())
        try:
            reply: dict[str, Any] = json.loads(line)
        except ValueError:
            raise WorkerError(f"a process of its own wrote what is no answer: {cut(line.strip(), MAX_WORDS)}") from None
        if "problem" in reply:
            raise WorkerError(reply["problem"])
        return reply

    def end(self) -> None:
        """Kill it."""
        self.live.kill()
        with suppress(OSError):  # it ended before it read what was asked last
            assert self.live.stdin is not None
            self.live.stdin.close()

    def _ended(self) -> str:
        status, words = self.live.wait(), _last_words(self.complaints)
        return f"a process of its own ended: exit status {status}{f': {words}' if words else ''}"


@contextmanager
def start_worker(
    command: Sequence[str], complaints: Path, variables: Mapping[str, str], timeout_s: float | None = None
) -> Iterator[LiveWorker]:
    """Start a program that answers as a worker does, by whatever interpreter; it ends with the block.

    ``complaints`` is the file for what it complains of; ``variables`` are all that it has. It is killed after ``timeout_s``
    seconds; ``None`` for never.

    Raises:
        OSError: If it could not be started.
    """
    with (
        complaints.open("wb") as stderr,
        subprocess.Popen(
            list(command), env=dict(variables), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as live,
    ):
        worker = LiveWorker(live, complaints)
        try:
            with time_limit(worker, timeout_s):
                yield worker
        finally:
            worker.end()


class KeptWorker:
    """A worker that is started when it is first asked, and again where it ended.

    Args:
        command: What starts it.
        variables: All that it has.
        limit_s: Seconds that it may take to its first line.

    Attributes:
        greeting: What that line says.
    """

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], limit_s: float) -> None:
        self._command, self._variables, self._limit_s = command, variables, limit_s
        self._open = ExitStack()
        self._worker: LiveWorker | None = None
        self.greeting: dict[str, Any] = {}

    def started(self) -> LiveWorker:
        """The worker; a new one if the last one ended.

        Raises:
            OSError: If it could not be started.
            WorkerError: If it ended, or has a problem.
        """
        if self._worker is None:
            folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="jaxgate-worker-")))
            try:
                live = start_worker(self._command, folder / "stderr", self._variables)
                worker = self._open.enter_context(live)
                with time_limit(worker, self._limit_s):
                    self.greeting = worker.answer()
            except BaseException:  # as below
                self.close()
                raise
            self._worker = worker
        return self._worker

    def answer_within(self, limit_s: float, **question: Any) -> dict[str, Any]:
        """What it answers to a question; to start it is not among the seconds. It is ended where it does not answer.

        Raises:
            OSError: If it could not be started.
            WorkerError: If it ended, or has a problem.
        """
        worker = self.started()
        try:
            with time_limit(worker, limit_s):
                return worker.ask(**question)
        except BaseException:  # its next line would answer this question, not the next one
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        self._worker = None
        self._open.close()


@contextmanager
def time_limit(worker: LiveWorker, timeout_s: float | None) -> Iterator[None]:
    """Kill a worker if the block takes longer than so many seconds; whoever waits for its answer sees that it ended."""
    if timeout_s is None:
        yield
        return
    limit = Timer(timeout_s, worker.live.kill)
    limit.daemon = True
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def _last_words(complaints: Path) -> str:
    """Why a process ended, in its own words: its last fatal line, else the last one that is not of a stack.

    Empty if it complained of nothing, or of more than anybody reads.
    """
    try:
        lines = [line.strip() for line in read_text(complaints, errors="replace").splitlines()]
    except OSError:
        return ""
    fatal = [line for line in lines if _FATAL.match(line)]
    others = [line for line in lines if line and not _STACK.match(line)]
    words = without_folders(_LOGGED.sub("", (fatal or others or [""])[-1]))
    return words if len(words) <= MAX_WORDS else f"{words[:MAX_WORDS]} …"
