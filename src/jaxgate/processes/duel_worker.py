"""A duel in a fresh process, from a folder that holds the job: ``python -m jaxgate.processes.duel_worker FOLDER``.

Writes ``duels.json`` beside the job: ``case`` is the duel asked for, ``control`` the baseline's program
against a second copy of itself, which must not differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from jaxgate.judge.timing.duel import LOOKS
from jaxgate.keep.duel_handoff import Job, read_job, write_duels
from jaxgate.model.duel import Duel
from jaxgate.model.program import Match
from jaxgate.observe.duel.duel import Contender, prepare, run_duel
from jaxgate.observe.duel.sides import prepare_side, restore
from jaxgate.observe.machine.jax_settings import apply_settings
from jaxgate.processes.child import Finished, own_program, run_child

DUEL_TIMEOUT_S = 600


def run_fresh_duel(folder: Path) -> Finished:
    """Run the duel of a folder (``keep.write_job``); what came of it lies there afterwards (``keep.read_duels``).

    Raises:
        TimeoutError: If it took more than ``DUEL_TIMEOUT_S``.
        OSError: If no process could be started.
    """
    return run_child([*own_program("jaxgate.processes.duel_worker"), str(folder)], timeout_s=DUEL_TIMEOUT_S)


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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
