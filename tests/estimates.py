"""Compile the catalogue for a target, and show how the products are counted: ``python -m tests.estimates tpu:v5e:2x4``.

Their FLOPs in the optimised program on all devices, over those of JAX's trace. A word after the target selects cases whose
names have it. Measured figures in docs/targets.md come from here.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator

import jax

from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.process import TargetProcess
from jaxgate.model.workload import Case
from jaxgate.observe.arguments.feeder import on_device
from jaxgate.observe.errors import describe
from jaxgate.observe.hlo.demand import count_products
from jaxgate.observe.hlo.parser import read_hlo
from jaxgate.observe.trace.jaxpr_cost import count_work
from jaxgate.observe.trace.lowering import lower
from tests.support.paths import REPOSITORY


def cases(word: str) -> Iterator[Case]:
    """Those of the catalogue."""
    for test in sorted((REPOSITORY / "perf").glob("test_*.py")):
        module = importlib.import_module(f"workloads.{test.stem.removeprefix('test_')}")
        yield from (case for case in module.CASES if word in case.name)


def look(case: Case, process: TargetProcess) -> Iterator[tuple[str, float | None]]:
    """The ratio of subject and reference; none where JAX traced no product."""
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
        hlo = read_hlo(executable.as_text())
        traced = count_work(lowered.traced.jaxpr).matmul_flops
        products = count_products(hlo).counts.total() * len(executable.devices) / traced if traced else None
        yield f"{case.name} {role}", products


def main(name: str, word: str = "") -> None:
    """Print a line for each program."""
    target = Target.parse(name)
    jax.config.update("jax_num_cpu_devices", target.devices)
    process = TargetProcess(target)
    for case in cases(word):
        try:
            for program, products in look(case, process):
                counted = "none  " if products is None else f"{products:.4f}"
                sys.stdout.write(f"products {counted}  {program}\n")
        except Exception as error:  # noqa: BLE001 - a case that has no program there
            sys.stdout.write(f"left out  {case.name}: {describe(error).splitlines()[0][:100]}\n")
    process.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
