"""Device programs that plain Python starts: all of them are recorded, each with what its first call was given."""

import threading
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from jaxgate.observe.execute.recorded_calls import recorded_calls

W = jnp.arange(8.0)
step = jax.jit(lambda w, x: (w - 0.1 * x, (w * x).sum()), donate_argnums=0)
named = jax.jit(lambda w, scale=2.0: w * scale, static_argnames="scale")


def loop(w):
    """Three steps, an eager operation on a Python number, and a number that is read."""
    for _ in range(3):
        w, loss = step(w, W)
    return w * 2.0, float(loss)


def recorded(function, *args):
    """What a call starts, by name, and its result."""
    with recorded_calls() as calls:
        output = function(*args)
    return {one.name: one.count for one in calls.programs}, calls.programs, output


def test_each_call_is_counted_and_each_program_kept_once():
    """Warm ones, too, and nothing of it stays behind."""
    loop(W + 1)
    names = {"<lambda>": 3, "multiply": 1}
    assert [recorded(loop, W + 1)[0] for _ in range(3)] == [names] * 3
    with recorded_calls() as calls:
        pass
    loop(W + 1)
    assert calls.programs == ()
    assert not jax.config.jax_debug_key_reuse


def test_results_and_donation_are_those_of_the_call():
    state = W + 1
    _, _, (w, loss) = recorded(loop, state)
    again, lost = loop(W + 1)
    assert state.is_deleted()
    assert np.array_equal(w, again)
    assert loss == lost


def test_a_program_is_called_again_with_what_it_was_given():
    """Donated arguments were copied before; the same numbers come out."""
    w = W + 1
    expected = step(W + 1, W)
    _, (program,), _ = recorded(lambda: step(w, W))
    assert [one.shape for one in program.arguments] == [(8,), (8,)]
    found = program.function(*program.arguments)
    assert all(map(np.array_equal, found, expected))


def test_options_and_static_values_are_part_of_a_program():
    """Two static values are two programs; compiler options stay with theirs."""
    names, programs, _ = recorded(lambda: (named(W), named(W, scale=3.0), named(W)))
    assert names == {"<lambda>": 1}  # the last of two of one name
    assert [one.count for one in programs] == [2, 1]
    optimised = jax.jit(lambda w: w + 1, compiler_options={"xla_cpu_enable_fast_math": True})
    _, (program,), _ = recorded(optimised, W)
    stage = program.function.lower(*program.arguments)
    assert "fast_math" in str(stage._lowering._compiler_options_kvs)


class Net(nnx.Module):
    """A layer."""

    def __init__(self):
        self.layer = nnx.Linear(4, 4, rngs=nnx.Rngs(0))

    def __call__(self, x):
        return self.layer(x)


@nnx.jit
def train(net, optimizer, x):
    """A step of Flax."""
    loss, grads = nnx.value_and_grad(lambda net: (net(x) ** 2).mean())(net)
    optimizer.update(net, grads)
    return loss


def in_a_thread(function):
    """Call it in another thread."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


net = Net()
optimizer = nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)
key = jax.random.key(0)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: train(net, optimizer, jnp.ones((2, 4))), {"train"}),
        (lambda: jax.lax.fori_loop(0, 3, lambda _, x: x + 1, W), {"scan", "while"}),
        (partial(in_a_thread, lambda: named(W)), {"<lambda>"}),
        (lambda: jnp.sin(W), {"sin"}),
        (lambda: jax.grad(lambda w: named(w).sum())(W), {"<lambda>"}),
        (
            lambda: (jax.random.normal(key, (3,)), jax.random.normal(key, (3,))),
            {"_normal", "normal"},
        ),  # a key used twice
        (lambda: jax.eval_shape(named, W), set()),
        (lambda: named.lower(W), set()),
        (lambda: jax.device_put(np.ones(3)), set()),
    ],
    ids=["nnx", "fori_loop", "thread", "eager", "grad", "key", "eval_shape", "lower", "device_put"],
)
def test_what_is_recorded(call, names):
    """Whatever starts a program, in whatever thread; nothing where none is started."""
    call()
    found, *_ = recorded(call)
    assert (found.keys() & names) if names else not found


def test_what_fails_leaves_jax_as_it_was():
    with pytest.raises(ZeroDivisionError), recorded_calls():
        raise ZeroDivisionError
    assert not jax.config.jax_debug_key_reuse
    with recorded_calls() as calls:
        named(W)
    assert len(calls.programs) == 1
