"""scan against loop: a recurrent network with a memory (Hochreiter and Schmidhuber, 1997), also in bfloat16.

The state is a tree of two arrays, of two types in the narrow network: a sum over time needs float32, what goes into
products does not. ``lax.scan`` insists that a turn gives back the types that it was given; widening what is carried to
satisfy it costs memory, time, and a retrace when the state starts the next call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import Extent, drawing, sizes, stretched
from workloads.scan.turns import Tree, Turns, as_large, by_loop, by_scan

CASES = Family("scan")

LEARNING_RATE = 0.05
FORGET = 1.0  # bias of the forget gate at the start, so that the memory lasts (Jozefowicz et al., 2015)

SIZES = sizes(
    batch=(8, 256),  # sequences
    features=(16, 512),  # numbers of each step's input
    hidden=(32, 1024),  # numbers of the hidden state, and of the memory
    rtol=(1e-4, 1e-2),
)
NARROW_RTOL = 5e-2  # bfloat16 has 8 bits, and the compiler may keep more of them in one way than in the other


def cell(params: Tree, state: Tree, x: jax.Array) -> Tree:
    """One step: hidden and memory [batch, hidden], x [batch, features]."""
    gates = x @ params["input"] + state["hidden"] @ params["recurrent"] + params["bias"]
    take, forget, give, new = jnp.split(gates, 4, axis=-1)
    memory = jax.nn.sigmoid(forget + FORGET) * state["memory"] + jax.nn.sigmoid(take) * jnp.tanh(new)
    hidden = jax.nn.sigmoid(give) * jnp.tanh(memory)
    return {"hidden": hidden.astype(x.dtype), "memory": memory}


def network(turns: Turns) -> Callable[[Tree, Tree, jax.Array], Tree]:
    """The network over a sequence xs [steps, batch, features]: the state after its last step."""

    def run(params: Tree, state: Tree, xs: jax.Array) -> Tree:
        state, _ = turns(lambda state, x: (cell(params, state, x), None), state, xs)
        return state

    return run


def make_inputs(size: Extent, steps: int, dtype: str) -> Any:
    """Draw parameters, the first state, the sequence and the targets."""
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


def compiled_once(steps: int) -> tuple[Claim, ...]:
    """What scan gives over the unrolled loop."""
    return (
        claim(f"stablehlo_ops <= {6 / steps} * reference", "the loop holds its body once for each step, scan once"),
        claim("temp_bytes <= reference", "scan keeps no more than the loop"),
        claim("matmul_flops == reference", "the same multiplications, each step once"),
    )


NO_WIDER = claim("widened_bytes <= reference", "only what the memory adds up is widened, as in the loop")


@CASES.workload(
    "lstm-forward-in-{dtype}-over-{steps}-steps-scan-vs-loop",
    sweep=({"steps": 32, "dtype": "float32"}, {"steps": 32, "dtype": "bfloat16"}),
    sizes=SIZES,
)
def forward(size: Extent, steps: int, dtype: str) -> Computation:
    """The forward pass; the last state starts the next call."""
    params, state, xs, _ = make_inputs(size, steps, dtype)
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
