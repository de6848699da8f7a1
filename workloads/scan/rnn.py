"""A turn taken many times by scan and by a loop: a recurrent network, and one with a memory."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Claim, Computation, Family, Growth, claim, grows
from workloads.parts import Extent, Tree, descend, drawing, sizes, squared_error, stretched

CASES = Family("scan")

Turn = Callable[[Tree, Tree], tuple[Tree, Tree]]
"""One turn: what is carried on and this turn's input, to what is carried on and this turn's output."""

Turns = Callable[[Turn, Tree, Tree], tuple[Tree, Tree]]
"""Takes all turns: the turn, what is carried, inputs stacked on their first axis; outputs come back stacked."""


def by_scan(turn: Turn, carry: Tree, inputs: Tree) -> tuple[Tree, Tree]:
    """Take all turns with one compiled body."""
    carry, outputs = jax.lax.scan(turn, carry, inputs)
    return carry, outputs


def by_loop(turn: Turn, carry: Tree, inputs: Tree) -> tuple[Tree, Tree]:
    """Take all turns with a Python loop: one copy of the body for each."""
    outputs = []
    for index in range(jax.tree.leaves(inputs)[0].shape[0]):
        carry, output = turn(carry, jax.tree.map(lambda leaf, i=index: leaf[i], inputs))
        outputs.append(output)
    return carry, jax.tree.map(lambda *leaves: jnp.stack(leaves), *outputs)


def as_large(steps: int, at: Callable[..., tuple[Any, ...]]) -> Growth:
    """However many steps a call takes, its program is as large; ``at`` gives the arguments for a number of ``steps``."""
    return Growth(at, steps=(steps, 2 * steps, 4 * steps), claims=[grows("stablehlo_ops", "steps") <= 0])


# scan against loop: a recurrent network over time, and how often its body is repeated in the program.

LEARNING_RATE = 0.05
LONG = 256  # steps from which compiling the loop takes seconds, so that the ratio is beyond any noise

Params = dict[str, jax.Array]

SIZES = sizes(
    batch=(8, 256),  # sequences
    features=(32, 512),  # numbers of each step's input
    hidden=(64, 1024),  # numbers that are carried from step to step
    rtol=(1e-4, 1e-2),
)


def cell(params: Params, hidden: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ params["input"] + hidden @ params["recurrent"] + params["bias"])


def scanned(params: Params, hidden: jax.Array, xs: jax.Array) -> jax.Array:
    """Run the network over xs [steps, batch, features] with one compiled body."""
    last, _ = jax.lax.scan(lambda h, x: (cell(params, h, x), None), hidden, xs)
    return last


def unrolled(params: Params, hidden: jax.Array, xs: jax.Array) -> jax.Array:
    for step in range(xs.shape[0]):
        hidden = cell(params, hidden, xs[step])
    return hidden


def partly_unrolled(params: Params, hidden: jax.Array, xs: jax.Array, *, copies: int) -> jax.Array:
    def turn(hidden: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        return cell(params, hidden, x), None

    last, _ = jax.lax.scan(turn, hidden, xs, unroll=copies)
    return last


def train_step(network: Callable[..., Any]) -> Callable[..., tuple[Params, jax.Array]]:
    def step(params: Params, hidden: jax.Array, xs: jax.Array, targets: jax.Array) -> tuple[Params, jax.Array]:
        def loss_of(params: Params) -> jax.Array:
            return squared_error(network(params, hidden, xs), targets)

        loss, grads = jax.value_and_grad(loss_of)(params)
        return descend(params, grads, LEARNING_RATE), loss

    return step


def make_inputs(size: Extent, steps: int) -> Any:
    """Draw parameters, the first hidden state, the sequence and the targets: the same on every JAX release."""
    draw = drawing()
    state = size.batch, size.hidden
    params = {
        "input": size.features**-0.5 * draw((size.features, size.hidden)),
        # Less than one by the spectral norm's rule of thumb: what is long ago fades, and so does rounding.
        "recurrent": 0.8 * size.hidden**-0.5 * draw((size.hidden, size.hidden)),
        "bias": np.zeros(size.hidden, np.float32),
    }
    return jax.device_put((params, 0.1 * draw(state), draw((steps, size.batch, size.features)), draw(state)))


def compiled_once(steps: int) -> tuple[Claim, ...]:
    always = (
        claim(f"stablehlo_ops <= {6 / steps} * reference", "the loop holds its body once for each step, scan once"),
        claim("temp_bytes <= reference", "scan keeps no more than the loop"),
        claim("matmul_flops <= 1.01 * reference", "the same multiplications, each step once"),
    )
    if steps < LONG:
        return always
    return (*always, claim("compile_ns <= 0.5 * reference", "scan compiles its body once, the loop every step"))


SWEEP = ({"steps": 32}, {"steps": LONG})


@CASES.workload("rnn-forward-over-{steps}-steps-scan-vs-loop", sweep=SWEEP, sizes=SIZES)
def forward(size: Extent, steps: int, network: Callable[..., jax.Array] = scanned) -> Computation:
    params, hidden, xs, _ = make_inputs(size, steps)
    return Computation(
        subject=jax.jit(network),
        reference=jax.jit(unrolled),
        args=(params, hidden, xs),
        carry=1,
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=steps, unit="steps"),
        grow=as_large(steps, lambda steps: (params, hidden, stretched(steps, xs))),
        rtol=size.rtol,
        claims=compiled_once(steps),
    )


@CASES.workload("rnn-training-over-{steps}-steps-scan-vs-loop", sweep=({"steps": 32},), sizes=SIZES)
def training(size: Extent, steps: int) -> Computation:
    """A training step; backward needs one product per operand, except for the sequence itself."""
    params, hidden, xs, targets = make_inputs(size, steps)
    return Computation(
        subject=jax.jit(train_step(scanned)),
        reference=jax.jit(train_step(unrolled)),
        args=(params, hidden, xs, targets),
        carry=0,
        batch=Batch(argument=3, size=size.batch),
        amount=Amount(count=steps, unit="steps"),
        grow=as_large(steps, lambda steps: (params, hidden, stretched(steps, xs), targets)),
        rtol=size.rtol,
        claims=compiled_once(steps),
    )


@CASES.workload(
    "rnn-over-{steps}-steps-with-{copies}-in-each-turn-vs-loop",
    sweep=tuple({"copies": copies, "steps": 64} for copies in (4, 16)),
    sizes=SIZES,
)
def copies_of_the_body(size: Extent, copies: int, steps: int) -> Computation:
    return replace(
        forward(size, steps, partial(partly_unrolled, copies=copies)),
        claims=[
            # Releases differ in what a copy is: 0.10 calls one function several times, 0.12 writes it out.
            claim(f"stablehlo_ops >= {2 * copies}", "the program grows with the factor"),
            claim(f"stablehlo_ops <= {(1.5 * copies + 2) / steps} * reference", "and not with the steps"),
            claim("matmul_flops == reference", "the same multiplications, each step once"),
        ],
    )


# scan against loop: a recurrent network with a memory (Hochreiter and Schmidhuber, 1997), also in bfloat16.

FORGET = 1.0  # bias of the forget gate at the start, so that the memory lasts (Jozefowicz et al., 2015)

LSTM = sizes(
    batch=(8, 256),  # sequences
    features=(16, 512),  # numbers of each step's input
    hidden=(32, 1024),  # numbers of the hidden state, and of the memory
    rtol=(1e-4, 1e-2),
)
NARROW_RTOL = 5e-2  # bfloat16 has 8 bits, and the compiler may keep more of them in one way than in the other


def lstm_cell(params: Tree, state: Tree, x: jax.Array) -> Tree:
    """One step: hidden and memory [batch, hidden], x [batch, features]."""
    gates = x @ params["input"] + state["hidden"] @ params["recurrent"] + params["bias"]
    take, forget, give, new = jnp.split(gates, 4, axis=-1)
    memory = jax.nn.sigmoid(forget + FORGET) * state["memory"] + jax.nn.sigmoid(take) * jnp.tanh(new)
    hidden = jax.nn.sigmoid(give) * jnp.tanh(memory)
    return {"hidden": hidden.astype(x.dtype), "memory": memory}


def network(turns: Turns) -> Callable[[Tree, Tree, jax.Array], Tree]:
    def run(params: Tree, state: Tree, xs: jax.Array) -> Tree:
        state, _ = turns(lambda state, x: (lstm_cell(params, state, x), None), state, xs)
        return state

    return run


def lstm_inputs(size: Extent, steps: int, dtype: str) -> Any:
    draw = drawing()
    shape = size.batch, size.hidden
    params = {
        "input": size.features**-0.5 * draw((size.features, 4 * size.hidden)),
        "recurrent": 0.8 * size.hidden**-0.5 * draw((size.hidden, 4 * size.hidden)),
        "bias": np.zeros(4 * size.hidden, np.float32),
    }
    xs = draw((steps, size.batch, size.features))
    params, hidden, xs = jax.tree.map(lambda leaf: leaf.astype(jnp.dtype(dtype)), (params, 0.1 * draw(shape), xs))
    return jax.device_put((params, {"hidden": hidden, "memory": 0.1 * draw(shape)}, xs, draw(shape)))


NO_WIDER = claim("widened_bytes <= reference", "only what the memory adds up is widened, as in the loop")


@CASES.workload(
    "lstm-forward-in-{dtype}-over-{steps}-steps-scan-vs-loop",
    sweep=({"steps": 32, "dtype": "float32"}, {"steps": 32, "dtype": "bfloat16"}),
    sizes=LSTM,
)
def lstm_forward(size: Extent, steps: int, dtype: str) -> Computation:
    params, state, xs, _ = lstm_inputs(size, steps, dtype)
    rtol = size.rtol if dtype == "float32" else NARROW_RTOL
    return Computation(
        subject=jax.jit(network(by_scan)),
        reference=jax.jit(network(by_loop)),
        args=(params, state, xs),
        carry=1,
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=steps, unit="steps"),
        grow=as_large(steps, lambda steps: (params, state, stretched(steps, xs))),
        rtol=rtol,
        claims=[*compiled_once(steps), *([] if dtype == "float32" else [NO_WIDER])],
    )
