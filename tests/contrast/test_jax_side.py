"""A side in JAX: what it computes stage by stage, what its program does, how a duel drives it."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas
from support.contrasts import ROWS, WIDTH, contrast, logits, squared, training

from workloads.contrast.compare import differences, look_at, run_alone
from workloads.contrast.runners import Opponent, loading_of, runner_of

FORWARD_AND_BACKWARD = 2 * (2 * ROWS * WIDTH * WIDTH)
"""Of the layer, and of its weights' gradient; nobody asks for that of the inputs."""


def seen(made, first=None):
    """What a side computes in three steps."""
    return look_at(runner_of(made), steps=3, first=first)


def errors(made):
    """How far a side is from the step as it is, by stage."""
    first = seen(training())
    return {one.stage: one.error for one in differences("other", seen(made, first), first)}


def test_a_side_agrees_with_itself_to_the_last_bit():
    """Weights, logits, loss, three steps, and the weights after them."""
    assert set(errors(training()).values()) == {0.0}


def test_it_trains():
    """A step changes something, or agreement after it would say nothing."""
    losses = seen(training()).losses
    assert losses[0] > losses[1] > losses[2]


def test_looking_leaves_it_where_it_began():
    runner = runner_of(training())
    first = look_at(runner, steps=3)
    assert look_at(runner, steps=3).losses == first.losses


@pytest.mark.parametrize(
    ("changed", "stage"),
    [
        ({"kernel": np.ones((WIDTH, WIDTH), np.float32)}, "weights"),
        ({"logits": lambda params, inputs: jnp.sin(inputs @ params["kernel"])}, "logits"),
        ({"loss": lambda logits, labels: 2 * squared(logits, labels)}, "loss function"),
        ({"rate": 0.2}, "loss"),
    ],
)
def test_the_first_stage_that_differs_is_what_was_changed(changed, stage):
    """Weights, model, loss and optimiser are told apart."""
    found = errors(training(**changed))
    assert next(name for name, error in found.items() if error > 1e-6) == stage


def test_another_shape_and_a_nan_are_infinitely_far():
    assert (
        errors(training(kernel=np.ones((WIDTH, 2), np.float32), loss=lambda logits, labels: logits.mean()))["weights"]
        == math.inf
    )
    assert errors(training(loss=lambda logits, labels: squared(logits, labels) * jnp.nan))["loss function"] == math.inf


def test_its_products_are_counted_with_their_types():
    """The layer and the gradient of its weights; no kernel, no copy of the inputs."""
    found = runner_of(training()).traits()
    assert found.matmul_flops == FORWARD_AND_BACKWARD
    assert found.products == {"float32"}
    assert found.fused_attention == ()
    assert found.relayout_bytes == 0


def test_fewer_bits_are_seen_where_nobody_asked_for_all():
    """Without a precision JAX may use TF32 or bfloat16 on accelerators."""
    assert runner_of(training(hint=lambda function: function)).traits().products == {"float32 by fewer bits"}


def test_other_types_are_seen():
    def narrow(params, inputs):
        return (inputs.astype(jnp.bfloat16) @ params["kernel"].astype(jnp.bfloat16)).astype(jnp.float32)

    assert runner_of(training(logits=narrow)).traits().products == {"bfloat16"}


def test_inputs_that_are_put_into_another_order_are_counted():
    """Two axes exchanged: all bytes of the inputs, once."""

    def turned(params, inputs):
        return logits(params, jnp.swapaxes(inputs.reshape(2, 2, WIDTH), 0, 1).reshape(ROWS, WIDTH))

    assert runner_of(training(logits=turned)).traits().relayout_bytes == ROWS * WIDTH * 4


def test_a_kernel_is_seen():
    def copied(source, target):
        target[...] = source[...]

    @jax.custom_vjp
    def kernel(x):
        return pallas.pallas_call(copied, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)

    kernel.defvjp(lambda x: (kernel(x), None), lambda _, g: (g,))
    found = runner_of(training(logits=lambda params, inputs: kernel(logits(params, inputs)))).traits()
    assert found.fused_attention == ("pallas_call",)


def test_a_pipeline_of_numpy_asks_nothing_of_jax():
    assert loading_of(lambda: np.stack([np.ones(4), np.ones(4)])) == ()


def test_a_collate_function_that_calls_jnp_is_seen():
    """By its arrays, or by its launches where it brings them back."""
    rows = [np.ones(4, np.float32)] * 2
    (arrays, *asked) = loading_of(lambda: jnp.stack([jnp.asarray(row) for row in rows]))
    assert arrays == "1 of its arrays is JAX's"
    assert any("launch" in one or "transfer" in one for one in asked)
    assert loading_of(lambda: np.asarray(jnp.sin(rows[0])))  # brought back, so that its type shows nothing


def test_a_burst_starts_from_the_first_weights_and_counts_its_steps():
    """Reset outside the clock, three steps, one wait."""

    class Counting:
        def __init__(self):
            self.did = []

        def reset(self):
            self.did.append("reset")

        def step(self):
            self.did.append("step")

        def wait(self, loss):
            self.did.append("wait")

    runner, clock = Counting(), itertools.count(0, 7).__next__
    assert Opponent(runner).burst(3, clock) == 7
    assert runner.did == ["reset", "step", "step", "step", "wait"]


def test_a_process_of_its_own_times_the_first_step_and_later_ones():
    clock = itertools.count(0, 10_000_000).__next__  # each look at it is 10 ms later
    found = run_alone(contrast, (), "one", clock)
    assert found.first_step_s == 0.01
    assert set(found.step_ns) == {1_000_000}  # ten steps fill a burst of 0.1 s
    assert found.peak_bytes >= 0
    assert not found.of_device
