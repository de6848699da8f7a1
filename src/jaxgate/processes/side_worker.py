"""One side of a duel in a process of its own: ``python -m jaxgate.processes.side_worker FOLDER SIDE``.

Two of them run at the same time, each with flags and settings of its own, and are asked in turn: one burst each.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import IO, Any

from jaxgate.keep import read_job
from jaxgate.model import Contract, JaxDefaults
from jaxgate.observe.duel import prepare, restore
from jaxgate.observe.errors import describe
from jaxgate.observe.machine import NotRecreatedError, know_defaults, recreate
from jaxgate.observe.trace import Clock

TIMEOUT_S = 600.0


class SideError(Exception):
    """A process that should be one side of a duel is none; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class ProcessSide:
    """A program in a live process.

    Attributes:
        process: It reads how many calls a burst has, and writes what that took, a line each.
        contract: What the time of a call means.
        consumed: Whether a burst can be of one call only.
    """

    process: subprocess.Popen[str]
    contract: Contract
    consumed: bool

    def burst(self, calls: int, clock: Clock) -> int:
        """Nanoseconds that some calls take, by the process's own clock.

        Raises:
            SideError: If the process ended.
        """
        del clock
        return int(_ask(self.process, calls)["ns"])


@contextmanager
def start_side(
    folder: Path, side: str, variables: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> Iterator[subprocess.Popen[str]]:
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
    with subprocess.Popen(
        command,
        env=dict(variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        limit = Timer(timeout_s, process.kill)
        limit.daemon = True
        limit.start()
        try:
            yield process
        finally:
            limit.cancel()
            process.kill()
            with suppress(OSError):  # it ended before it read what was asked last
                _stdin(process).close()


def ready(process: subprocess.Popen[str]) -> ProcessSide:
    """Wait until a process has compiled its program.

    Raises:
        SideError: If it could not, or has another environment than it shall have.
    """
    told = _answer(process)
    return ProcessSide(process, told["contract"], told["consumed"])


def _ask(process: subprocess.Popen[str], calls: int) -> dict[str, Any]:
    try:
        _stdin(process).write(f"{calls}\n")
        _stdin(process).flush()
    except OSError:
        raise SideError(_ended(process)) from None
    return _answer(process)


def _stdin(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdin is not None
    return process.stdin


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SideError(_ended(process))
    told: dict[str, Any] = json.loads(line)
    if "problem" in told:
        raise SideError(told["problem"])
    return told


def _ended(process: subprocess.Popen[str]) -> str:
    return f"a process of its own ended: exit status {process.wait()}"


def main(folder: Path, side: str) -> None:
    """Be one side of a duel until nobody asks any more."""
    sys.stdout, answers = sys.stderr, sys.stdout  # what a library prints must not look like an answer

    def answer(told: Mapping[str, Any]) -> None:
        answers.write(json.dumps(told) + "\n")
        answers.flush()

    try:
        job = read_job(folder)
        defaults = job.about["defaults"]
        know_defaults(None if defaults is None else JaxDefaults(**defaults))
        recreate(job.about["environments"][side], job.about["platform"])
        program = job.now if side == "now" else job.baseline
        contender = prepare(program, restore(job.leaves, job.about["kinds"]), job.about["contract"])
        gc.collect()
        gc.disable()
        answer({"contract": contender.contract, "consumed": contender.consumed})
        for line in sys.stdin:
            answer({"ns": contender.burst(int(line), time.perf_counter_ns)})
    except NotRecreatedError as error:
        answer({"problem": str(error)})
    except Exception as error:  # noqa: BLE001 - whoever asked shows it
        answer({"problem": describe(error)})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
