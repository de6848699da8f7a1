"""Profiles of a few steps, in the layout that TensorBoard reads: one folder for each side and process."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from jaxgate.ext.profile.programs import Profiled
from jaxgate.ext.profile.xplane import STEP
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep
from jaxgate.observe.compat import stop_trace
from jaxgate.observe.errors import describe

STEPS, FEWER_STEPS, FEWEST_STEPS = 10, 5, 3
MAX_BYTES = 1_500_000
"""Of one side's events: a step on eight devices with loops takes 0.7 MB. Fewer steps than three would have no floor."""
WARM_STEPS = 2
MAX_SLUG = 100
CLOSED = "a profile that the code had left open was closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a profile may cost: a red case must not take long."""

    long_step_s: float = 0.03  # a step above it is profiled less often: the rows of five steps are as steady
    slow_step_s: float = 1.0  # a step above it is profiled as rarely as can be
    slowest_step_s: float = 5.0  # a step above it is not profiled
    # of one side with all programs of its process; above it programs are left out. The case's own are there as text.
    largest_bytes: int = 2_250_000


LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a capture; ``why_not`` says why there is no profile, ``note`` what else happened."""

    why_not: str = ""
    note: str = ""


def session_name(case: str, side: str) -> str:
    """Name of a profile: case, side, worker of pytest-xdist, process among several."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", case)[:MAX_SLUG]
    return "-".join(part for part in (slug, side, worker, f"p{jax.process_index()}") if part)


def side_folder(side: str) -> str:
    """Name of a side's folder in the bundle: one for each process, or the profiles of one host overwrite each other."""
    return side if jax.process_count() == 1 else f"{side}-p{jax.process_index()}"


def take_profile(
    profiled: Profiled, folder: Path, session: str, limits: Limits = LIMITS, *, together: Lockstep = ALONE
) -> Taken:
    """Profile some annotated steps of one side. A single process never raises: a verdict must not be lost over its explanation.

    Each series gets fresh arguments: donated ones are gone. Each side and process needs a new folder, so that none overwrites
    another; JAX would name the session by the second. Of several ranks, the others must know that one cannot.
    """
    try:
        return _take(profiled, folder, session, limits, together)
    except Exception as error:
        if together is not ALONE:
            raise
        # User code, a full disk, another profiler.
        return Taken(why_not=describe(error))


def _take(profiled: Profiled, folder: Path, session: str, limits: Limits, together: Lockstep) -> Taken:
    compiles = profiled.forget is not None  # then no step says what a step takes
    if profiled.forget is not None:
        profiled.forget()
    arguments = profiled.fresh()
    took_s = 0.0
    for number in range(1 if compiles else WARM_STEPS):
        if not number or took_s < limits.slow_step_s:
            begin = time.perf_counter()
            arguments = profiled.following(arguments, profiled.step(arguments))
            took_s = max(together.each("a profiled step", time.perf_counter() - begin))
    if not compiles and took_s > limits.slowest_step_s:
        return Taken(why_not=f"a step takes {took_s:.0f} s, {limits.slowest_step_s:.0f} s may be")
    slow = took_s > limits.slow_step_s
    steps = FEWER_STEPS if took_s > limits.long_step_s else STEPS
    if compiles or slow:
        steps = steps if compiles else FEWEST_STEPS
        note, _ = _trace(profiled, arguments, folder, session, together, steps=steps)
        return Taken(note=note)
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        note, arguments = _trace(profiled, arguments, Path(name), session, together, steps=1, programs=False)
        size = max(together.each("the size of its profile", _size(Path(name))))
    steps = max(FEWEST_STEPS, min(steps, MAX_BYTES // max(1, size)))
    found, arguments = _trace(profiled, arguments, folder, session, together, steps=steps)
    if together.anyone("a large profile", _size(folder) > limits.largest_bytes):
        shutil.rmtree(folder)
        _trace(profiled, arguments, folder, session, together, steps=steps, programs=False)
    return Taken(note=note or found)


def _trace(
    profiled: Profiled,
    arguments: Any,
    folder: Path,
    session: str,
    together: Lockstep,
    *,
    steps: int,
    programs: bool = True,
) -> tuple[str, Any]:
    """Profile some steps, with or without their programs; returns a note for the user, if any, and the next arguments."""
    note, failed = "", None
    try:
        note = _start(folder, session, programs=programs)
    except Exception as error:  # noqa: BLE001 - raised where all ranks know
        failed = error
    if together.anyone("the profiler does not start", failed is not None):
        with suppress(Exception):  # where it did start
            stop_trace()
        raise failed or RuntimeError("the profiler of another rank does not start")
    try:
        for number in range(steps):
            with jax.profiler.StepTraceAnnotation(STEP, step_num=number):
                output = profiled.step(arguments)
            arguments = profiled.following(arguments, output)
    finally:
        stop_trace()
    for file in folder.rglob("*.trace.json.gz"):
        file.unlink()  # the same events again, for viewers that TensorBoard no longer has
    return note, arguments


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _start(folder: Path, session: str, *, programs: bool) -> str:
    """Start a profile; one that is still open belongs to code that is over, and is closed."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # the default one slows Python four to eight times
    options.session_id = session
    options.enable_hlo_proto = programs
    folder.mkdir(parents=True, exist_ok=True)
    try:
        jax.profiler.start_trace(str(folder), profiler_options=options)
    except RuntimeError:
        with suppress(Exception):  # it goes where that code wanted it, if there is room
            stop_trace()
        jax.profiler.start_trace(str(folder), profiler_options=options)
        return CLOSED
    return ""
