"""Compile the catalogue for a target, and show how near the estimates are: ``python -m tests.estimates tpu:v5e:2x4``.

Memory: what is alive at the peak by the schedule, over what the compiler says that the program needs. Products: their FLOPs in
the optimised program on all devices, over those of JAX's trace. A word after the target selects cases whose names have it.
Measured figures in docs/targets.md come from here.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jax

from jaxgate.model import Case, Target
from jaxgate.observe.arguments import on_device
from jaxgate.observe.errors import describe
from jaxgate.observe.hlo import count_products, read_hlo
from jaxgate.observe.hlo.liveness import find_peak
from jaxgate.observe.trace import lower
from jaxgate.observe.trace.jaxpr_cost import count_work
from jaxgate.processes.target_compiler import TargetProcess
from tests.support.paths import REPOSITORY


def cases(word: str) -> Iterator[Case]:
    """Those of the catalogue."""
    for test in sorted((REPOSITORY / "perf").glob("test_*.py")):
        module = importlib.import_module(f"workloads.{test.stem.removeprefix('test_')}")
        yield from (case for case in module.CASES if word in case.name)


def look(case: Case, process: TargetProcess) -> Iterator[tuple[str, float, float | None]]:
    """Both ratios of subject and reference."""
    computation = case.build()
    if computation.eager:
        return
    for role in ("subject", "reference"):
        function = getattr(computation, role)
        if function is None:
            continue
        call = on_device(computation.args, computation.kwargs)
        clock = time.perf_counter_ns
        lowered = lower(function, *call, role=role, clock=clock, platform=process.target.lowering)
        executable = process.compile(lowered)
        text, memory = executable.as_text(), executable.memory_analysis()
        hlo = read_hlo(text)
        traced = count_work(lowered.traced.jaxpr).matmul_flops
        products = count_products(hlo).counts.total() * len(executable.devices) / traced if traced else None
        yield f"{case.name} {role}", find_peak(hlo, text.partition("\n")[0]).nbytes / needed(memory), products


def needed(memory: SimpleNamespace) -> Any:
    """What the compiler says that a program needs."""
    held = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    return held + memory.temp_size_in_bytes


def main(name: str, word: str = "") -> None:
    """Print a line for each program."""
    target = Target.parse(name)
    jax.config.update("jax_num_cpu_devices", target.devices)
    process = TargetProcess(target)
    for case in cases(word):
        try:
            for program, memory, products in look(case, process):
                counted = "none  " if products is None else f"{products:.4f}"
                sys.stdout.write(f"memory {memory:.4f}  products {counted}  {program}\n")
        except Exception as error:  # noqa: BLE001 - a case that has no program there
            sys.stdout.write(f"left out  {case.name}: {describe(error).splitlines()[0][:100]}\n")
    process.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
