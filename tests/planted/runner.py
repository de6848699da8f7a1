"""Run everything: the faults, then the unchanged programs, each program's in one worker process with 8 devices."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.planted.faults import FAULTS
from tests.planted.model import PROGRAMS, Fault, Outcome, Score
from tests.planted.rewrites import REWRITES

DEVICES = 8
WORKERS = 2
QUICK = frozenset({0, 2})
"""Of each five changes that must not alarm, the quick run tries these two with a program, others with the next."""


def run(*, only: str = "", quick: bool = False) -> Score:
    """Run what ``only`` selects.

    Args:
        only: A word of the fault's name, family or program; ``unchanged`` selects the unchanged programs.
        quick: Try two fifths of the changes that must not alarm.
    """
    begin = time.perf_counter()
    programs = [file.stem for file in sorted(PROGRAMS.glob("*.py"))]
    jobs = [(program, number, only, quick) for number, program in enumerate(programs)]
    context = multiprocessing.get_context("spawn")  # the devices are chosen before JAX starts
    with ProcessPoolExecutor(WORKERS, mp_context=context, initializer=_begin) as pool:
        results = list(pool.map(_program, jobs))
    found = [outcome for outcomes, _ in results for outcome in outcomes]
    order = {fault.name: index for index, fault in enumerate(FAULTS)}
    faults = [outcome for outcome in found if outcome.kind != "unchanged"]
    return Score(
        faults=tuple(sorted(faults, key=lambda outcome: order[outcome.name])),
        unchanged=tuple(outcome for outcome in found if outcome.kind == "unchanged"),
        seconds=time.perf_counter() - begin,
        versions=results[0][1],
    )


def _begin() -> None:
    """Give this process its devices; what the programs print is nobody's."""
    import jax

    jax.config.update("jax_num_cpu_devices", DEVICES)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno() if _has_number(sys.stdout) else 1)


def _has_number(stream) -> bool:
    try:
        return stream.fileno() >= 0
    except OSError:
        return False


def _program(job: tuple[str, int, str, bool]) -> tuple[list[Outcome], str]:
    """Everything that is done to one program, and the versions it was done on."""
    import jax

    from tests.planted.harness import Bench, source_of

    program, number, only, quick = job
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        outcomes = [bench.plant(fault) for fault in FAULTS if fault.program == program and _is_meant(fault, only)]
        for index, (name, rewrite) in enumerate(REWRITES.items()):
            skipped = quick and (index + number) % 5 not in QUICK
            if skipped or only not in f"unchanged {name} {program}":
                continue
            source = rewrite(source_of(program))
            if source is not None:
                outcomes.append(bench.leave(name, program, source))
    return outcomes, f"jax {jax.__version__}, Python {sys.version.split()[0]}"


def _is_meant(fault: Fault, only: str) -> bool:
    return only in f"{fault.kind} {fault.program} {fault.name}"
