"""What the gate costs for each case, beyond JAX's own tracing, lowering and compiling: unchanged, changed, slower.

Usage: python ci/cost.py [REPEATS]   (default 5; about two minutes on a 2-core CPU)

Programs of about 0.1, 5 and 50 ms a call. "Unchanged" is what observing and judging by identity takes beyond the
sample itself and the steps (20, or three and as many as half a second holds); "changed" is a whole duel of two
programs equally fast, with export, compiles and looks; "repeat" is one fresh process, which a slow-down needs two of. Prints a Markdown table.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.engine.duels.baseline_duel import BaselineDuels, Margins
from jaxgate.engine.duels.duel_processes import DuelBudget
from jaxgate.engine.instruments import Instruments
from jaxgate.judge.difference import Difference
from jaxgate.judge.verdict import judge
from jaxgate.keep.cache import FloorStore, ReferenceCache
from jaxgate.keep.programs import ProgramStore
from jaxgate.model.baseline import Baseline, Provenance, StoredBaseline
from jaxgate.model.computation import MAX_STEPS, STEPS, Computation
from jaxgate.observe.duel.sides import Opponents
from jaxgate.observe.execute.steps import MORE_NS
from jaxgate.observe.measure import observe
from jaxgate.observe.observation import Observation
from jaxgate.observe.tools import Tools
from jaxgate.report.units import show

TARGETS_NS = (100_000, 5_000_000, 50_000_000)
WIDTH = 256


def program(steps: int, shift: float) -> Callable[[Any], Any]:
    """Some matrix multiplications in a row; another shift is another program, as fast."""
    return lambda x: jax.lax.fori_loop(0, steps, lambda _, y: jnp.tanh(y @ y * 0.01 + shift), x)


def call_ns(steps: int) -> int:
    """Time of a call, the least of five."""
    function, x = jax.jit(program(steps, 0.1)), jnp.ones((WIDTH, WIDTH))
    taken = []
    for _ in range(6):
        begin = time.perf_counter_ns()
        jax.block_until_ready(function(x))
        taken.append(time.perf_counter_ns() - begin)
    return min(taken)


def watch(steps: int, shift: float) -> tuple[Observation, float]:
    """Observe a program; seconds beyond JAX's phases, the steps and the sample."""
    computation = Computation(subject=jax.jit(program(steps, shift)), args=(jnp.ones((WIDTH, WIDTH)),))
    begin = time.perf_counter_ns()
    observed = observe(lambda: computation, Tools(store=ReferenceCache(None)))
    passed: float = time.perf_counter_ns() - begin
    now = observed.measurement
    if now.samples is None:
        raise RuntimeError("expected samples, found none")
    phases = [now.phases.trace_ns, now.phases.lower_ns, now.phases.compile_ns]
    passed -= sum(phase or 0 for phase in phases) + sum(now.samples.bursts_ns)
    taken = STEPS + min(MAX_STEPS - STEPS, int(MORE_NS / now.samples.run_ns))
    return observed, (passed - taken * now.samples.run_ns) / 1e9


def judged(observed: Observation, record: StoredBaseline) -> float:
    """Seconds that judging by identity takes."""
    begin = time.perf_counter()
    judge("cost/case", (), observed.measurement, record, strict=True)
    return time.perf_counter() - begin


def cost(target_ns: int, repeats: int, folder: Path) -> list[str]:
    """One row of the table."""
    steps = max(1, round(target_ns / (call_ns(64) / 64)))
    unchanged, changed, repeat, duelled = [], [], [], []
    before, _ = watch(steps, 0.2)
    stored = before.export()
    store = ProgramStore(folder)
    store.save(before.measurement.fingerprints.program, stored.content)
    where = Provenance(commit=None, dirty=False, date="", jaxgate="")
    baseline = Baseline.of(before.measurement, case="cost/case", test="", provenance=where, program=stored.record)
    record = StoredBaseline(baseline=baseline, path=folder / "case.json", borrowed=False)
    for _ in range(repeats):
        same, seconds = watch(steps, 0.2)
        unchanged.append(seconds + judged(same, record))
        other, _ = watch(steps, 0.3)
        begin = time.perf_counter()
        opponents, margins = Opponents(ReferenceCache(None)), Margins(FloorStore(None))
        instruments = Instruments()
        duels = BaselineDuels(
            programs=store,
            budget=DuelBudget(None),
            margins=margins,
            opponents=opponents,
            instruments=instruments,
            variables=dict(os.environ),
        )
        timing = duels.time(other, record, Difference(other.measurement, baseline), lambda _: None)
        changed.append(time.perf_counter() - begin)
        if timing.repeat is None:
            raise RuntimeError(f"expected a duel, found none: {timing.why_not}")
        duelled.append(timing.repeat)
    begin = time.perf_counter()
    duelled[-1].run("cost/case", instruments)
    repeat.append(time.perf_counter() - begin)
    run_ns = before.measurement.samples.run_ns if before.measurement.samples else 0
    return [
        show("run_ns", run_ns),
        f"{mean(unchanged) * 1e3:.0f} ms (at most {max(unchanged) * 1e3:.0f})",
        f"{mean(changed):.1f} s (at most {max(changed):.1f})",
        f"{mean(repeat):.1f} s",
    ]


def main(repeats: int) -> None:
    """Measure and print."""
    rows = [["a call takes", "unchanged", "changed", "repeat"], ["---"] * 4]
    with tempfile.TemporaryDirectory() as name:
        rows += [cost(target, repeats, Path(name)) for target in TARGETS_NS]
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
