"""A duel in fresh processes, from a folder that holds the job (``keep.write_job``).

``python -m jaxgate.processes.duel_worker FOLDER`` runs it whole and writes ``duels.json`` beside the job: ``case`` is the
duel asked for, ``control`` the baseline's program against a second copy of itself, which must not differ.

With ``now`` or ``baseline`` after the folder it is one side. Two of them run at the same time, each with flags and settings
of its own, and are asked for what a call gives and then, in turn, for one burst each.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxgate.judge.timing.duel import LOOKS
from jaxgate.keep.duel_handoff import RESULTS_BYTES, Job, read_job, take_results, write_duels, write_results
from jaxgate.model.duel import Duel
from jaxgate.model.machine import JaxDefaults
from jaxgate.model.numbers import Contract
from jaxgate.model.program import Match
from jaxgate.observe.duel.duel import Contender, prepare, run_duel
from jaxgate.observe.duel.sides import CallSide, prepare_side, restore
from jaxgate.observe.errors import describe
from jaxgate.observe.machine.jax_settings import apply_settings, know_defaults
from jaxgate.observe.machine.recreated_environment import NotRecreatedError, recreate
from jaxgate.observe.trace.clocks import Clock
from jaxgate.processes.child import Finished, own_program, run_child
from jaxgate.processes.live_worker import LiveWorker, start_worker

if TYPE_CHECKING:
    import numpy as np

DUEL_TIMEOUT_S, SIDE_TIMEOUT_S = 600, 600.0
_PROGRAM = own_program("jaxgate.processes.duel_worker")


def run_fresh_duel(folder: Path) -> Finished:
    """Run the duel of a folder (``keep.write_job``); what came of it lies there afterwards (``keep.read_duels``).

    Raises:
        TimeoutError: If it took more than ``DUEL_TIMEOUT_S``.
        OSError: If no process could be started.
    """
    return run_child([*_PROGRAM, str(folder)], timeout_s=DUEL_TIMEOUT_S)


def on_device(job: Job) -> list[Match]:
    """The programs of a job, their arguments as they were in the process that asks."""
    kinds = job.about["kinds"]
    return [replace(match, leaves=restore(match.leaves, own)) for match, own in zip(job.matches, kinds, strict=True)]


def main(
    folder: Path, *, prepare: Callable[..., Contender] = prepare, run_duel: Callable[..., Duel] = run_duel
) -> None:
    """Run the job in a folder, all pairs, no early stop."""
    job = read_job(folder)
    apply_settings(job.about["settings"])
    matches = on_device(job)
    now, baseline, control = (
        prepare_side(matches, side, job.about["contract"], prepare) for side in ("now", "baseline", "baseline")
    )
    duels = {}
    for name, side in (("case", now), ("control", control)):
        duels[name] = run_duel(
            side,
            baseline,
            settled=lambda _: False,
            seed=job.about["seed"],
            max_pairs=max(LOOKS),
            platform=job.about["platform"],
        )
    write_duels(folder, duels)


@dataclass(frozen=True, slots=True)
class ProcessSide:
    """A program in a live process."""

    process: LiveWorker  # the process that compiled the program
    contract: Contract  # what the time of a call means
    consumed: bool  # whether a burst can be of one call only

    def results(self, most_bytes: int = RESULTS_BYTES) -> list[np.ndarray[Any, Any]] | None:
        """What a call gives; ``None`` if it is more than so many bytes.

        Raises:
            WorkerError: If the process ended.
        """
        path = self.process.complaints.with_suffix(".npz")
        if not self.process.ask(results=str(path), most_bytes=most_bytes)["written"]:
            return None
        return take_results(path)

    def burst(self, calls: int, clock: Clock) -> int:
        """Nanoseconds that some calls take, by the process's own clock.

        Raises:
            WorkerError: If the process ended.
        """
        del clock
        return int(self.process.ask(calls=calls)["ns"])


def start_side(
    folder: Path, side: str, variables: Mapping[str, str], timeout_s: float = SIDE_TIMEOUT_S
) -> AbstractContextManager[LiveWorker]:
    """Start a process for one side (``now`` or ``baseline``) of the job in a folder (``keep.write_job``).

    It ends with the block, or is killed after ``timeout_s``. The job says what environment the process shall have.

    Raises:
        OSError: If it could not be started.
    """
    return start_worker([*_PROGRAM, str(folder), side], folder / f"{side}.stderr", variables, timeout_s)


def ready(process: LiveWorker) -> ProcessSide:
    """Wait until a process has compiled its program.

    Raises:
        WorkerError: If it could not, or has another environment than it shall have.
    """
    reply = process.answer()
    return ProcessSide(process, reply["contract"], reply["consumed"])


def be_side(folder: Path, side: str) -> None:
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


def _reply(contender: CallSide, question: Mapping[str, Any]) -> dict[str, Any]:
    """How long a burst of ``calls`` took; or whether what a call gives was small enough to be written to ``results``."""
    if "calls" in question:
        return {"ns": contender.burst(question["calls"], time.perf_counter_ns)}
    found = contender.results(question["most_bytes"])
    if found is not None:
        write_results(Path(question["results"]), found)
    return {"written": found is not None}


if __name__ == "__main__":
    if sys.argv[2:]:
        be_side(Path(sys.argv[1]), sys.argv[2])
    else:
        main(Path(sys.argv[1]))
