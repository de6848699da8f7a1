"""A side in a process of its own: what a first step costs, what memory it takes, how long steps take undisturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import jax

from jaxgate.model.workloads.contrast import SideLaunch, Training
from jaxgate.observe.contrast.runner import ContrastOpponent, runner_of
from jaxgate.observe.machine.load import most_memory_bytes
from jaxgate.observe.trace.clocks import Clock, uncollected

WARM_STEPS = 3
BURSTS = 15
BURST_S = 0.1
"""Of steps in a row, at least."""


def launch_side(build: Callable[[], Training], needs: Iterable[str], clock: Clock = time.perf_counter_ns) -> SideLaunch:
    """Build a side and run it; the process must have done nothing of the kind before.

    Args:
        build: Builds it.
        needs: Modules that are imported before the clock starts, the same for every side.
        clock: Monotonic nanoseconds.
    """
    if "torch" in needs:
        from jaxgate.observe.contrast.torch_runner import import_compiler  # noqa: PLC0415 - imports PyTorch

        import_compiler()
    jax.devices()  # starts the backend
    before = most_memory_bytes()
    begin = clock()
    runner = runner_of(build())
    runner.wait(runner.step())
    first_ns = clock() - begin
    for _ in range(WARM_STEPS):
        one = clock()
        runner.wait(runner.step())
        took_ns = max(1, clock() - one)
    of_process, of_device = most_memory_bytes() - before, runner.peak_bytes()  # resets of the bursts hold more
    calls = max(1, round(BURST_S * 1e9 / took_ns))
    opponent = ContrastOpponent(runner)
    with uncollected():
        step_ns = [opponent.burst(calls, clock) // calls for _ in range(BURSTS)]
    return SideLaunch(
        first_step_s=first_ns / 1e9,
        step_ns=tuple(step_ns),
        peak_bytes=of_process if of_device is None else of_device,
        of_device=of_device is not None,
    )
