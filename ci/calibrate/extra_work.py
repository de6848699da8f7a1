"""Planted slow-downs: a stored program followed by a known amount of extra work on the device.

Scaled times ask whether the arithmetic of a duel sees a slow-down; extra work asks the whole duel. The work is a
loop whose start value depends on every output of the program, so it cannot begin before they are there, and whose
result is one more output, so no compiler may drop it. Its length is an argument: one executable serves all sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxgate.model.numbers import Contract
from jaxgate.model.program import StoredProgram
from jaxgate.observe.arguments.feeder import Feeder
from jaxgate.observe.duel.duel import Contender, prepare, run_duel
from jaxgate.observe.program.export import load_program
from jaxgate.observe.trace.clocks import Clock

MAX_STEPS = 2**31 - 1
FIRST_STEPS = 1024
GROWTH = 8
COARSE_BURSTS = 3
TUNING_PAIRS = 20
"""Pairs behind each of the two ratios that the length is worked out from: a third of a duel."""
TOLERANCE = 0.25
"""Share of the wanted slow-down by which the nearest number of steps may miss it."""


class NotPlantableError(Exception):
    """No extra work of this size can be planted in this program; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Planter:
    """A program with a loop behind it, compiled once for all lengths."""

    contender: Contender  # the program; the length is its last argument
    leaves: tuple[Any, ...]  # its other arguments, flattened, on the device
    donated: tuple[int, ...]  # positions of those that it consumes

    def with_steps(self, steps: int) -> Contender:
        """One side of a duel: the program and so many steps of extra work."""
        feeder = Feeder(((*self.leaves, _length(steps)), {}), donates=bool(self.donated), only=self.donated)
        return replace(self.contender, feeder=feeder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What extra work takes, as a share of a call of the program."""

    at_rest: float  # with no step: one more argument and result; never negative, they make no program faster
    per_step: float  # each step

    def steps_for(self, share: float) -> int:
        """How many steps take a share of a call, what is there at rest included.

        Raises:
            NotPlantableError: If the program is too short, or too long, for that.
        """
        if self.at_rest >= share:
            raise NotPlantableError(f"the call is too short: one more result alone takes {self.at_rest:.1%} of it")
        steps = round((share - self.at_rest) / self.per_step)
        if steps < 1 or abs(self.at_rest + steps * self.per_step - share) > TOLERANCE * share:
            raise NotPlantableError(f"the call is too short: one step of extra work takes {self.per_step:.1%} of it")
        if steps > MAX_STEPS:
            raise NotPlantableError(f"the call is too long: it would take more than {MAX_STEPS:,} steps")
        return steps


def prepare_planter(program: StoredProgram, leaves: Sequence[Any], contract: Contract = "throughput") -> Planter:
    """Compile a stored program, for its flattened arguments on the device, with a loop behind it.

    Raises:
        NotPlantableError: If it has no output that work could wait for, or runs on several devices.
        NotReplayableError: If it cannot be read, compiled or called with them.
    """
    exported = load_program(program)
    if exported.nr_devices > 1:
        raise NotPlantableError(f"it runs on {exported.nr_devices} devices, extra work would run on one")
    if not any(_is_suitable(aval) for aval in exported.out_avals):
        raise NotPlantableError("it has no output of numbers that extra work could wait for")
    contender = prepare(program, leaves, contract, extend=_with_work, extra=(_length(0),))
    return Planter(contender, tuple(leaves), program.record.donated)


def measure_work(
    plain: Contender, planter: Planter, *, platform: str, clock: Clock = time.perf_counter_ns, seed: int | None = None
) -> Work:
    """Time the program with and without extra work, in alternation; the platform decides the length of a burst.

    Raises:
        NotPlantableError: If extra work cannot be seen in the times.
    """

    def excess(steps: int) -> float:
        duel = run_duel(
            planter.with_steps(steps),
            plain,
            settled=lambda _: False,
            max_pairs=TUNING_PAIRS,
            platform=platform,
            seed=seed,
            clock=clock,
        )
        return float(np.expm1(median(duel.logratios)))

    steps = _steps_for_a_call(plain, planter, clock)
    at_rest, double = max(0.0, excess(0)), excess(steps)
    if double <= at_rest:
        raise NotPlantableError(f"{steps:,} steps of extra work do not show in its times")
    return Work(at_rest=at_rest, per_step=(double - at_rest) / steps)


def _steps_for_a_call(plain: Contender, planter: Planter, clock: Clock) -> int:
    """About as many steps as take the time of a call: long enough to be timed well."""

    def least_ns(side: Contender) -> int:
        return min(side.burst(1, clock) for _ in range(COARSE_BURSTS))

    least_ns(plain)  # warm
    least_ns(planter.with_steps(0))
    call_ns = max(1, least_ns(plain))
    steps = FIRST_STEPS
    while (taken_ns := least_ns(planter.with_steps(steps))) < 2 * call_ns and steps * GROWTH <= MAX_STEPS:
        steps *= GROWTH
    return max(1, min(MAX_STEPS, round(steps * call_ns / max(1, taken_ns - call_ns))))


def _with_work(call: Callable[..., Any]) -> Callable[..., Any]:
    """Put a loop behind a program: its length is one more argument, its result one more output."""

    def planted(*leaves: Any) -> tuple[Any, ...]:
        *arguments, steps = leaves
        # Behind the barrier an output is a value, and not something to be computed again for its first element.
        outputs = lax.optimization_barrier(tuple(call(*arguments)))
        start = jnp.uint32(1)
        for output in outputs:
            if _is_suitable(output):
                start ^= _bits(output)
        return (*outputs, lax.fori_loop(jnp.int32(0), steps, _mix, start))

    return planted


def _mix(_: Any, word: Any) -> Any:
    """One step: a xorshift generator, whose time does not depend on its value and which has no short cut."""
    word ^= word << jnp.uint32(13)
    word ^= word >> jnp.uint32(17)
    return word ^ (word << jnp.uint32(5))


def _is_suitable(leaf: Any) -> bool:
    """Whether a leaf's first element can be a number."""
    return leaf.size > 0 and not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended)


def _bits(output: Any) -> Any:
    first = lax.slice(output, (0,) * output.ndim, (1,) * output.ndim).reshape(())
    return lax.bitcast_convert_type(jnp.real(first).astype(jnp.float32), jnp.uint32)


def _length(steps: int) -> Any:
    return jax.device_put(np.int32(steps))
