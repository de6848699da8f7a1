"""A linear recurrence h[t] = a[t] h[t-1] + b[t]: all steps at once (``associative_scan``), or one after the other.

Steps of this kind can be joined in pairs, pairs of pairs, and so on (Blelloch, 1990; used by linear recurrent networks,
Martin and Cundy, 2018). The program holds one level for each doubling of the length, so it is larger than a scan and does
about twice its arithmetic; what it saves is waiting: levels instead of steps. That pays where a device has room for a whole
level. Two cores of a CPU have not, and no fact shows the depth: nothing is claimed about time here.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Alternative, Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, drawing, sizes

CASES = Family("scan")

LONGER = 8  # how much longer the sequence is whose program must not be as many times larger


SIZES = sizes(
    batch=(4, 64),  # sequences
    channels=(8, 1024),  # recurrences in each
)
"""How many recurrences run beside each other."""


def at_once(start: jax.Array, decay: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Join steps in pairs: start [batch, channels], decay and x [steps, batch, channels], to last state and all states."""

    def join(early: tuple[jax.Array, jax.Array], late: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return early[0] * late[0], late[0] * early[1] + late[1]

    decays, sums = jax.lax.associative_scan(join, (decay, x))
    states = decays * start + sums
    return states[-1], states


def one_by_one(start: jax.Array, decay: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Take one step after the other; arguments and results as of ``at_once``."""

    def turn(state: jax.Array, given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        state = given[0] * state + given[1]
        return state, state

    last, states = jax.lax.scan(turn, start, (decay, x))
    return last, states


@CASES.workload(
    "linear-recurrence-over-{steps}-steps-associative-vs-sequential", sweep=({"steps": 64}, {"steps": 256}), sizes=SIZES
)
def recurrence(size: Extent, steps: int) -> Computation:
    """All states of a recurrence that forgets; the last one starts the next call."""
    shape = steps, size.batch, size.channels
    draw = drawing()
    decay = np.random.default_rng(1).uniform(0.5, 0.99, shape).astype(np.float32)
    args = jax.device_put((draw(shape[1:]), decay, draw(shape)))
    longer = jax.ShapeDtypeStruct((LONGER * steps, *shape[1:]), jnp.float32)
    subject = jax.jit(at_once)
    return Computation(
        subject=subject,
        reference=jax.jit(one_by_one),
        args=args,
        carry=0,
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=steps * size.batch, unit="steps"),
        alternatives={"longer": Alternative(function=subject, args=(args[0], longer, longer))},
        atol=1e-4,
        claims=[
            claim(
                "stablehlo_ops >= 4 * reference",
                "levels stand in the program one after the other: no step waits for a loop",
            ),
            claim("stablehlo_ops >= 0.5 * alternatives", "their number grows with the logarithm of the length"),
            claim("temp_bytes <= 3 * argument_bytes", "the levels together are no larger than the sequence"),
        ],
    )
