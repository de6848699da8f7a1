"""Optax: a training loop in plain Python around jitted functions, and what makes the optimizer's state."""

from guests.plants import plant, test_planted, test_unchanged

LOOP = """
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3, mu_dtype=jnp.bfloat16))


def loss_of(params, xs, ys):
    hidden = jax.nn.relu(xs @ params["up"])
    return jnp.mean((hidden @ params["down"] - ys) ** 2)


@jax.jit
def gradients(params, xs, ys):
    return jax.value_and_grad(loss_of)(params, xs, ys)


@partial(jax.jit, donate_argnums=(0, 1))
def apply(params, state, grads):
    updates, state = OPTIMIZER.update(grads, state, params)
    return optax.apply_updates(params, updates), state


@partial(jax.jit, donate_argnums=0)
def add(grads, more):
    return jax.tree.map(lambda a, b: a + b, grads, more)


def train(params, state, data):
    losses, grads = [], None
    for xs, ys in data:
        loss, more = gradients(params, xs, ys)
        grads = more if grads is None else add(grads, more)
        losses.append(loss)
    params, state = apply(params, state, grads)
    return params, state, losses


def init(params):
    return OPTIMIZER.init(params)
"""

TESTS = """
import jax.numpy as jnp
from loop import init, train

PARAMS = {"up": jnp.full((32, 64), 0.1, jnp.float32), "down": jnp.full((64, 8), 0.1, jnp.float32)}
DATA = [(jnp.ones((16, 32)), jnp.ones((16, 8)))] * 2


def test_train(gate):
    gate(train, PARAMS, init(PARAMS), DATA, eager=True, carry=("params", "state"))


def test_init(gate):
    gate(init, PARAMS)
"""

FILES = {"loop.py": LOOP, "test_loop.py": TESTS}

PLANTS = [
    plant(
        "donation dropped",
        "test_train",
        ("loop.py", "donate_argnums=(0, 1))", "inline=False)"),
        finds="donated_bytes",
        culprit=r"^no longer donated: params\['down'\], params\['up'\]",
    ),
    plant(
        "donation of gradients dropped",
        "test_train",
        ("loop.py", "@partial(jax.jit, donate_argnums=0)", "@jax.jit"),
        finds="aliased_bytes",
        culprit=r"^no longer donated: 10,240 bytes of the arguments of add",
        at="grads = more if",
    ),
    plant(
        "the loss is read at each step",
        "test_train",
        ("loop.py", "losses.append(loss)", "losses.append(float(loss))"),
        finds="host_transfers",
        culprit=r"2 for the host",
        at="losses.append",
    ),
    plant(
        "the loss is read by NumPy",
        "test_train",
        ("loop.py", "losses.append(loss)", "losses.append(np.asarray(loss))"),
        finds="host_reads",
        culprit=r"^read back in each call: .*asarray",
        at="losses.append",
    ),
    plant(
        "gradient accumulation lost",
        "test_train",
        (
            "loop.py",
            "        losses.append(loss)\n    params, state = apply(params, state, grads)\n",
            "        losses.append(loss)\n        params, state = apply(params, state, grads)\n        grads = None\n",
        ),
        finds="widened_bytes",
        culprit=r"^programs started in a call: apply 1 → 2",
        at="params, state = apply",
    ),
    plant(
        "updates are applied outside of jit",
        "test_train",
        (
            "loop.py",
            "    params, state = apply(params, state, grads)\n",
            "    updates, state = OPTIMIZER.update(grads, state, params)\n    params = optax.apply_updates(params, updates)\n",
        ),
        finds="launches",
        culprit=r"^programs started in a call: .*at loop\.py",
        at="    params = optax.apply_updates",
    ),
    plant(
        "a batch goes through NumPy at each step",
        "test_train",
        (
            "loop.py",
            "gradients(params, xs, ys)\n        grads",
            "gradients(params, jnp.asarray(np.zeros((16, 32), np.float32)) + xs, ys)\n        grads",
        ),
        finds="launches",
        culprit=r"^programs started in a call: add 1 → 3",
        at="loss, more = gradients",
    ),
    plant(
        "a batch is sent at each step",
        "test_train",
        (
            "loop.py",
            "gradients(params, xs, ys)\n        grads",
            "gradients(params, jnp.asarray(np.zeros((16, 32), np.float32)), ys)\n        grads",
        ),
        finds="host_transfers",
        culprit=r"^(moved between host and device in each call: 2 for|programs started in a call: stage 0 → 2)",
        at="loss, more = gradients",
    ),
    plant(
        "a norm is computed for a log at each step",
        "test_train",
        ("loop.py", "losses.append(loss)", "losses.append((loss, optax.global_norm(more)))"),
        finds="launches",
        culprit=r"^programs started in a call: ",
        at="losses.append",
    ),
    plant(
        "twice the products within a jitted step",
        "test_train",
        (
            "loop.py",
            "return jax.value_and_grad(loss_of)(params, xs, ys)",
            "return loss_of(params, 2 * xs, ys), jax.grad(loss_of)(params, xs, ys)",
        ),
        finds="matmul_flops",
        culprit=r"^float32\[16,(32|64)\] x float32\[(32,64|64,8)\] 2 → 4",
        at="hidden = jax.nn.relu",
    ),
    plant(
        "gradients are jitted anew at each step",
        "test_train",
        (
            "loop.py",
            "gradients(params, xs, ys)\n        grads",
            "jax.jit(lambda *args: jax.value_and_grad(loss_of)(*args))(params, xs, ys)\n        grads",
        ),
        finds="traces",
        culprit=r"^step 2 retraced: <lambda>: a new function object per call",
        at="loss, more = jax.jit",
    ),
    plant(
        "a moment is kept in float32",
        "test_init",
        ("loop.py", "optax.adam(1e-3, mu_dtype=jnp.bfloat16)", "optax.adam(1e-3)"),
        finds="output_bytes",
        culprit=r"^more is returned: .*\.mu\['up'\] is float32\[32,64\] \(8,192 bytes\), bfloat16\[32,64\] before",
        origin="options or values that the function's source does not have",
    ),
    plant(
        "an average of the parameters is kept too",
        "test_init",
        ("loop.py", "optax.clip_by_global_norm(1.0), ", "optax.clip_by_global_norm(1.0), optax.ema(0.99), "),
        finds="output_bytes",
        culprit=r"^more is returned: .*\['up'\] is float32\[32,64\] \(8,192 bytes\), new",
        origin="options or values that the function's source does not have",
    ),
]
