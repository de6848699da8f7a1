"""One start, in the process that makes it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import jax

from jaxgate.ext.start.model import PHASES, Program
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.errors import guarded
from jaxgate.observe.trace.compile_events import record

CACHE = "jax_compilation_cache_dir"


def cache_variables(folder: str, dumps: str) -> dict[str, str]:
    """Variables of a process that keeps every program in a folder, and writes each that it asks for into another, as text."""
    return {
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_ENABLE_COMPILATION_CACHE": "1",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_DUMP_IR_TO": dumps,
        "JAX_DUMP_IR_MODES": "stablehlo",
        "JAX_INCLUDE_DEBUG_INFO_IN_DUMPS": "0",
    }


def begin(start: Callable[[], Any], began: float, cache: str) -> dict[str, Any]:
    """Call a function in a process that was started for it at ``began`` (``time.time``), and give what ``Started.of`` reads.

    The process keeps its programs in ``cache``.

    Raises:
        InvalidCaseError: If it fails, keeps compiled programs elsewhere, or asks for none.
    """
    imports_s = time.time() - began
    clock = time.perf_counter()
    with guarded("starting"), record() as events:
        jax.block_until_ready(start())
    took_s = time.perf_counter() - clock
    if getattr(jax.config, CACHE) != cache:  # it may be full
        raise InvalidCaseError(
            "starting", f"expected {CACHE} to be left alone, found another folder: set it where the job is launched"
        )
    if not events.compiles:
        raise InvalidCaseError(
            "starting", "expected a program that is asked for, found none: what is imported is no start"
        )
    seconds = defaultdict[str, float](float, imports=imports_s)
    programs: list[Program] = []
    hit = False
    for event in events.log:
        if event.phase == "hit":
            hit = True
            continue
        name = "load" if hit and event.phase == "compile" else event.phase
        seconds[name] += event.seconds
        if event.phase == "compile":
            programs.append(Program(event.function, event.where, hit))
            hit = False
    seconds["rest"] = max(0.0, took_s - sum(seconds[name] for name in ("trace", "lower", "compile", "load")))
    return {"programs": [astuple(one) for one in programs], "seconds": {name: seconds[name] for name in PHASES}}
