"""Loops that refine, and a linear recurrence: a denoising chain of fixed length, a fixed point of unknown length.

A chain is a scan over its schedule and its keys. A fixed point is a ``while_loop`` that stops when nothing moves any
more; JAX cannot differentiate that backwards, and need not: by the implicit function theorem the gradient is a fixed
point as well, and no step on the way has to be kept (JAX's guide to custom derivatives; Bai et al., 2019).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, another, descend, drawing, fused_on_gpu, sizes, squared_error
from workloads.scan.rnn import Turns, as_large, by_loop, by_scan

CASES = Family("scan")

SHRINK = 0.5  # how much nearer each step comes to the fixed point
SOLVE = 24  # steps after which float32 sees no further change
CLOSE = 1e-6  # when nothing moves any more
LIMIT = 64  # steps after which it is given up: a NaN would not stop it elsewhere
LEARNING_RATE = 0.05

SIZES = sizes(
    batch=(16, 1024),  # samples
    width=(32, 2048),  # numbers in each
    hidden=(64, 4096),  # numbers in the denoiser's hidden layer
    rtol=(1e-4, 1e-2),
)


def predicted_noise(params: Tree, x: jax.Array, time: jax.Array) -> jax.Array:
    """The denoiser: x [batch, width] and how far the chain is, 0 to 1, to the noise in x."""
    waves = time * params["frequencies"]
    x = x @ params["up"] + jnp.concatenate([jnp.sin(waves), jnp.cos(waves)])
    return jax.nn.gelu(x) @ params["down"]


def denoise(params: Tree, x: jax.Array, schedule: Tree, keys: jax.Array, *, turns: Turns) -> jax.Array:
    """Ancestral sampling (Ho et al., 2020): from noise x [batch, width] to samples, only the last is kept.

    Each step [steps] has a key, and of the schedule a ``time``, the share of the variance that it keeps (``keep``) and that
    was kept until here (``kept``).
    """

    def turn(x: jax.Array, given: Tree) -> tuple[jax.Array, None]:
        now, key = given
        noise = predicted_noise(params, x, now["time"])
        mean = (x - (1 - now["keep"]) * jax.lax.rsqrt(1 - now["kept"]) * noise) * jax.lax.rsqrt(now["keep"])
        return mean + jnp.sqrt(1 - now["keep"]) * jax.random.normal(key, x.shape), None

    x, _ = turns(turn, x, (schedule, keys))
    return x


def make_schedule(steps: int) -> Tree:
    """The share of noise rises from step to step; the chain goes back through it."""
    keep = 1 - np.linspace(1e-4, 0.02, steps, dtype=np.float32)
    times = np.linspace(0, 1, steps, dtype=np.float32)
    return {"time": times[::-1], "keep": keep[::-1], "kept": np.cumprod(keep)[::-1]}


@CASES.workload("denoising-over-{steps}-steps-scan-vs-loop", sweep=({"steps": 16},), sizes=SIZES)
def denoising(size: Extent, steps: int) -> Computation:
    draw = drawing()
    params = {
        "up": size.width**-0.5 * draw((size.width, size.hidden)),
        "down": size.hidden**-0.5 * draw((size.hidden, size.width)),
        "frequencies": np.geomspace(1, 100, size.hidden // 2, dtype=np.float32),
    }
    params, x, schedule = jax.device_put((params, draw((size.batch, size.width)), make_schedule(steps)))
    keys = partial(jax.random.split, jax.random.key(0))
    return Computation(
        subject=jax.jit(partial(denoise, turns=by_scan)),
        reference=jax.jit(partial(denoise, turns=by_loop)),
        args=(params, x, schedule, keys(steps)),
        carry=1,
        batch=Batch(argument=1, size=size.batch),
        grow=as_large(steps, lambda steps: (params, x, make_schedule(steps), keys(steps))),
        rtol=size.rtol,
        claims=[
            claim(f"stablehlo_ops <= {4 / steps} * reference", "the loop holds a denoiser for each step"),
            claim("temp_bytes <= reference", "scan keeps no more than the loop", known_break=fused_on_gpu(">=0.12")),
            claim("matmul_flops == reference", "the same multiplications, each step once"),
        ],
    )


def shrink(weights: jax.Array, x: jax.Array, z: jax.Array) -> jax.Array:
    """One step towards the fixed point of x = tanh(x W + z): x and z [batch, width]."""
    return jnp.tanh(x @ weights + z)


def until_still(step: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """Repeat a step until nothing moves by more than ``CLOSE``."""

    def moving(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, change, count = state
        return (change > CLOSE) & (count < LIMIT)

    def move(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, _, count = state
        after = step(x)
        return after, jnp.max(jnp.abs(after - x)), count + 1

    found, _, _ = jax.lax.while_loop(moving, move, (x, jnp.float32(jnp.inf), jnp.int32(0)))
    return found


def solved(weights: jax.Array, start: jax.Array, z: jax.Array) -> jax.Array:
    """The fixed point, as many steps as it needs."""
    return until_still(lambda x: shrink(weights, x, z), start)


def unrolled(weights: jax.Array, start: jax.Array, z: jax.Array) -> jax.Array:
    """The fixed point, a fixed number of steps, each in the program."""
    x, _ = by_loop(lambda x, _: (shrink(weights, x, z), None), start, jnp.arange(SOLVE))
    return x


def _forward(weights: jax.Array, start: jax.Array, z: jax.Array) -> tuple[jax.Array, Tree]:
    found = solved(weights, start, z)
    return found, (weights, found, z)


def _backward(kept: Tree, grad: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Solve u = g + u ∂f/∂x at the fixed point; where it began does not matter."""
    weights, found, z = kept
    _, pull = jax.vjp(shrink, weights, found, z)
    through = until_still(lambda u: grad + pull(u)[1], grad)
    of_weights, _, of_z = pull(through)
    return of_weights, jnp.zeros_like(found), of_z


implicit = jax.custom_vjp(solved)
implicit.defvjp(_forward, _backward)


def train_step(solve: Callable[..., jax.Array]) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """One SGD step on the fixed point, weights in and out."""

    def step(weights: jax.Array, start: jax.Array, z: jax.Array, targets: jax.Array) -> tuple[jax.Array, jax.Array]:
        loss, grads = jax.value_and_grad(lambda w: squared_error(solve(w, start, z), targets))(weights)
        return descend(weights, grads, LEARNING_RATE), loss

    return step


def make_problem(size: Extent) -> tuple[Any, ...]:
    """Draw weights that shrink distances by ``SHRINK``, a start and inputs [batch, width], and targets."""
    draw = drawing()
    weights = draw((size.width, size.width))
    # The largest singular value of such a matrix is close to twice the root of its width.
    weights *= SHRINK / (2 * size.width**0.5)
    inputs = (draw((size.batch, size.width)) for _ in range(2))
    problem: tuple[Any, ...] = (weights, np.zeros((size.batch, size.width), np.float32), *inputs)
    return tuple(map(jax.device_put, problem))


@CASES.workload(f"fixed-point-by-while-loop-vs-{SOLVE}-unrolled-steps", sizes=SIZES)
def fixed_point(size: Extent) -> Computation:
    """Iterate while something moves, against a fixed number of copies of the step; the point found starts the next."""
    return Computation(
        subject=jax.jit(solved),
        reference=jax.jit(unrolled),
        args=make_problem(size)[:3],
        carry=1,
        batch=Batch(argument=2, size=size.batch),
        rtol=size.rtol,
        claims=[
            claim("stablehlo_ops <= 0.5 * reference", "the step stands in the program once"),
            claim("temp_bytes <= 4 * output_bytes", "no step on the way is kept"),
            claim(f"matmul_flops <= {1 / SOLVE} * reference", "the step is written once"),
        ],
    )


@CASES.workload(f"gradient-of-a-fixed-point-vs-{SOLVE}-unrolled-steps", sizes=SIZES)
def gradient(size: Extent) -> Computation:
    return Computation(
        subject=jax.jit(train_step(implicit)),
        reference=jax.jit(train_step(unrolled)),
        args=make_problem(size),
        carry=0,
        batch=Batch(argument=2, size=size.batch),
        rtol=size.rtol,
        claims=[
            claim("stablehlo_ops <= 0.5 * reference", "two loops, each with one step"),
            claim("temp_bytes <= 0.6 * reference", "no step on the way is kept for the gradient"),
        ],
    )


# A linear recurrence h[t] = a[t] h[t-1] + b[t]: all steps at once (``associative_scan``), or one after the other.

LONGER = 8  # how much longer the sequence is whose program must not be as many times larger

RECURRENCES = sizes(
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
    def turn(state: jax.Array, given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        state = given[0] * state + given[1]
        return state, state

    last, states = jax.lax.scan(turn, start, (decay, x))
    return last, states


@CASES.workload(
    "linear-recurrence-over-{steps}-steps-associative-vs-sequential",
    sweep=({"steps": 64}, {"steps": 256}),
    sizes=RECURRENCES,
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
        alternatives=another("longer", subject, (args[0], longer, longer)),
        atol=1e-4,
        claims=[
            claim("stablehlo_ops >= 4 * reference", "levels stand in the program, one after the other"),
            claim("stablehlo_ops >= 0.5 * alternatives", "their number grows with the logarithm of the length"),
            claim("temp_bytes <= 3 * argument_bytes", "the levels together are no larger than the sequence"),
        ],
    )
