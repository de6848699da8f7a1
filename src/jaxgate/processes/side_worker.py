"""One side of a duel in a process of its own: ``python -m jaxgate.processes.side_worker FOLDER SIDE``.

Two of them run at the same time, each with flags and settings of its own, and are asked for what a call gives and then,
in turn, for one burst each.
"""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from jaxgate.keep import RESULTS_BYTES, read_job, read_text, take_results, write_results
from jaxgate.model import Contract, JaxDefaults
from jaxgate.observe.duel import Prepared, prepare_side
from jaxgate.observe.errors import describe
from jaxgate.observe.machine import NotRecreatedError, know_defaults, recreate
from jaxgate.observe.source_lines import without_folders
from jaxgate.observe.trace import Clock
from jaxgate.processes.duel_worker import on_device

if TYPE_CHECKING:
    import numpy as np

TIMEOUT_S = 600.0
MAX_WORDS = 200
"""Characters of what a process complained of that an error shows."""
_LOGGED = re.compile(r"[IWEF]\d{4} \d\d:\d\d:[\d.]+ +\d+ [^\s\]]+:\d+\] ")
"""What XLA writes before each line of its log: severity, day, time, thread, place."""
_FATAL = re.compile(f"(?=F){_LOGGED.pattern}")
_STACK = re.compile(r"@ |\*\*\*")
"""How the lines begin that it writes of its own stack, after the reason."""


class SideError(Exception):
    """A process that should be one side of a duel is none; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class SideProcess:
    """A live process that shall be one side of a duel, and is asked line by line.

    Attributes:
        live: The process.
        complaints: The file of what it complains of.
    """

    live: subprocess.Popen[str]
    complaints: Path

    def ask(self, **question: int | str) -> dict[str, Any]:
        """What it answers to a question; ``_reply`` has them all.

        Raises:
            SideError: If it ended, or has a problem.
        """
        assert self.live.stdin is not None
        try:
            self.live.stdin.write(f"{json.dumps(question)}\n")
            self.live.stdin.flush()
        except OSError:
            raise SideError(self._ended()) from None
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Its next line.

        Raises:
            SideError: If it ended, or has a problem.
        """
        assert self.live.stdout is not None
        line = self.live.stdout.readline()
        if not line:
            raise SideError(self._ended())
        reply: dict[str, Any] = json.loads(line)
        if "problem" in reply:
            raise SideError(reply["problem"])
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


@dataclass(frozen=True, slots=True)
class ProcessSide:
    """A program in a live process.

    Attributes:
        process: It compiled the program.
        contract: What the time of a call means.
        consumed: Whether a burst can be of one call only.
    """

    process: SideProcess
    contract: Contract
    consumed: bool

    def results(self, most_bytes: int = RESULTS_BYTES) -> list[np.ndarray[Any, Any]] | None:
        """What a call gives; ``None`` if it is more than so many bytes.

        Raises:
            SideError: If the process ended.
        """
        path = self.process.complaints.with_suffix(".npz")
        if not self.process.ask(results=str(path), most_bytes=most_bytes)["written"]:
            return None
        return take_results(path)

    def burst(self, calls: int, clock: Clock) -> int:
        """Nanoseconds that some calls take, by the process's own clock.

        Raises:
            SideError: If the process ended.
        """
        del clock
        return int(self.process.ask(calls=calls)["ns"])


@contextmanager
def start_side(
    folder: Path, side: str, variables: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> Iterator[SideProcess]:
    """Start a process for one side of the job in a folder (``keep.write_job``); it ends with the block.

    Args:
        folder: Holds the job, which says what environment the process shall have.
        side: ``now`` or ``baseline``; whose program it runs.
        variables: All of its variables.
        timeout_s: Seconds after which it is killed.

    Raises:
        OSError: If it could not be started.
    """
    command = [sys.executable, "-W", "ignore", "-m", "jaxgate.processes.side_worker", str(folder), side]
    complaints = folder / f"{side}.stderr"
    with (
        complaints.open("wb") as stderr,
        subprocess.Popen(
            command,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as live,
    ):
        limit = Timer(timeout_s, live.kill)
        limit.daemon = True
        limit.start()
        process = SideProcess(live, complaints)
        try:
            yield process
        finally:
            limit.cancel()
            process.end()


def ready(process: SideProcess) -> ProcessSide:
    """Wait until a process has compiled its program.

    Raises:
        SideError: If it could not, or has another environment than it shall have.
    """
    reply = process.answer()
    return ProcessSide(process, reply["contract"], reply["consumed"])


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


def main(folder: Path, side: str) -> None:
    """Be one side of a duel until nobody asks any more."""
    sys.stdout, answers = sys.stderr, sys.stdout  # what a library prints must not look like an answer

    def answer(reply: Mapping[str, Any]) -> None:
        answers.write(json.dumps(reply) + "\n")
        answers.flush()

    try:
        job = read_job(folder)
        defaults = job.about["defaults"]
        know_defaults(None if defaults is None else JaxDefaults(**defaults))
        recreate(job.about["environments"][side], job.about["platform"])
        contender = prepare_side(on_device(job), "now" if side == "now" else "baseline", job.about["contract"])
        gc.collect()
        gc.disable()
        answer({"contract": contender.contract, "consumed": contender.consumed})
        for line in sys.stdin:
            answer(_reply(contender, json.loads(line)))
    except NotRecreatedError as error:
        answer({"problem": str(error)})
    except Exception as error:  # noqa: BLE001 - whoever asked shows it
        answer({"problem": describe(error)})


def _reply(contender: Prepared, question: Mapping[str, Any]) -> dict[str, Any]:
    """How long a burst of ``calls`` took; or whether what a call gives was small enough to be written to ``results``."""
    if "calls" in question:
        return {"ns": contender.burst(question["calls"], time.perf_counter_ns)}
    found = contender.results(question["most_bytes"])
    if found is not None:
        write_results(Path(question["results"]), found)
    return {"written": found is not None}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
