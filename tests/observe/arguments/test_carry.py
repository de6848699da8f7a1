"""Which argument of the next step is fed from the result."""

import jax
import jax.numpy as jnp
import pytest
from support.measured import measured

from jaxgate.model.computation import Computation
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.carry import with_next_args
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools


@jax.jit
def step(state, velocity, x):
    """Both parts of the state come back, then the loss."""
    return state + x, velocity * 2, x.sum()


def computation(**fields):
    """A step of arrays of one shape, and a batch of another."""
    return Computation(subject=step, args=(jnp.zeros(4), jnp.ones(4), jnp.ones(())), **fields)


@pytest.mark.parametrize(
    ("carry", "after"),
    [(0, (7, 1)), ("velocity", (0, 8)), ((0, 1), (7, 8)), (["state", -2], (7, 8))],
    ids=["a position", "a name", "two positions", "a name and a position"],
)
def test_what_is_carried_comes_from_the_result(carry, after):
    """By position or name; what is not named stays as it was."""
    made = with_next_args(computation(carry=carry))
    assert made.carry is None
    output = (jnp.full(4, 7.0), jnp.full(4, 8.0), jnp.float32(9))
    if carry == "velocity":
        output = output[1:]
    following = made.next_args(output, made.args)
    assert tuple(float(arg.max()) for arg in following) == (*map(float, after), 1.0)


@pytest.mark.parametrize(
    ("carry", "because"),
    [("stat", "expected one of the arguments state, velocity, x"), (3, "expected one of 3 positional")],
)
def test_what_is_no_argument_is_invalid(carry, because):
    with pytest.raises(InvalidCaseError, match=because) as caught:
        observe(lambda: computation(carry=carry), Tools(store=None, sampling=False))
    assert caught.value.stage == "building the workload"


def test_a_step_that_loses_its_dtype_retraces():
    """The carried state is what the step gave: float64 numbers of Python become an array, then the step is traced again."""

    @jax.jit
    def widening(state):
        return {"w": state["w"] * jnp.float32(1), "count": state["count"] + 1}

    args = ({"w": jnp.ones(4, jnp.bfloat16), "count": 0},)
    without, carried = measured(widening, *args, next_args=lambda *_: None), measured(widening, *args, carry=0)
    assert (without.facts.traces, carried.facts.traces) == (1, 2)
