"""Look at programs as users of other tools do: call them, time each call, read text and memory of the executable."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from ci.evaluation.rules import Look
from jaxgate.model.computation import Computation
from tests.faults.runner import Bench
from tests.support.jax_settings import settings_restored

WARM_UP = 3
MIN_ROUNDS = 5
MAX_ROUNDS = 2000
MAX_S = 0.5
"""pytest-benchmark calls a function for a second, and five times at least; half a second is enough for 400 programs."""


def look(bench: Bench, path: Path, case: str, source: str) -> Look:
    """Import a text, build its program, call it in a loop as a script would; a setting that it makes ends with it."""
    with settings_restored():
        try:
            computation = bench.case(path, case, source).build()
            times = tuple(_timed(computation))
            hlo, nbytes = _compiled(computation)
        except Exception as error:  # noqa: BLE001 - whatever breaks, every tool would show it
            return Look(failed=f"{type(error).__name__}: {error}"[:200])
    return Look(times_ns=times, hlo=hlo, memory_bytes=nbytes)


def _timed(computation: Computation) -> Iterator[int]:
    arguments = _copied(computation.args)
    begin = time.perf_counter()
    for number in range(WARM_UP + MAX_ROUNDS):
        start = time.perf_counter_ns()
        result = jax.block_until_ready(computation.subject(*arguments, **computation.kwargs))
        took = time.perf_counter_ns() - start
        if number == WARM_UP:
            begin = time.perf_counter()
        if number >= WARM_UP:
            yield took
        if number >= WARM_UP + MIN_ROUNDS and time.perf_counter() - begin > MAX_S:
            return
        threaded = computation.next_args and computation.next_args(result, arguments)
        arguments = threaded or _copied(computation.args)


def _copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments that a call may consume."""
    copies = tuple(jax.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, arguments))
    jax.block_until_ready(copies)
    return copies


def _compiled(computation: Computation) -> tuple[str | None, int | None]:
    if computation.eager:
        return None, None
    subject = computation.subject if hasattr(computation.subject, "lower") else jax.jit(computation.subject)
    executable = subject.lower(*computation.args, **computation.kwargs).compile()
    found = executable.memory_analysis()
    nbytes = (
        found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes - found.alias_size_in_bytes
    )
    return executable.as_text(), nbytes
