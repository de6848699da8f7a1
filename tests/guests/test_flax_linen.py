"""Flax Linen: a ``TrainState`` through a jitted step that donates, and through a plain function."""

from support.corpora import nightly

from guests.plants import plant, test_planted, test_unchanged_in_a_recipe

pytestmark = nightly

NET = """
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

WIDTH, DEPTH = 32, 4
MEAN = 0.1


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        h = nn.Dense(2 * WIDTH, dtype=jnp.bfloat16)(x)
        h = nn.Dense(WIDTH, dtype=jnp.bfloat16)(nn.gelu(h))
        return x + h.astype(x.dtype), None


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        block = nn.remat(Block, prevent_cse=False)
        layers = nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=DEPTH)
        x, _ = layers(name="layers")(x - MEAN, None)
        return nn.Dense(8, name="head")(x)


def make(model, xs):
    params = model.init(jax.random.key(0), xs)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
    return state.replace(step=jnp.zeros((), jnp.int32))


def update(state, xs, ys):
    def loss_of(params):
        return jnp.mean((state.apply_fn({"params": params}, xs) - ys) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), loss


train_step = jax.jit(update, donate_argnums=0)


def predict(state, xs):
    return state.apply_fn({"params": state.params}, xs)
"""

TESTS = """
import jax.numpy as jnp
from net import Net, make, predict, train_step, update

XS, YS = jnp.ones((256, 32)), jnp.ones((256, 8))


def test_train_step(gate):
    gate(train_step, make(Net(), XS), XS, YS)


def test_update(gate):
    gate(update, make(Net(), XS), XS, YS, donate="state")


def test_predict(gate):
    gate(predict, make(Net(), XS), XS)
"""

FILES = {"net.py": NET, "test_net.py": TESTS}

PLANTS = [
    plant(
        "donation dropped",
        "test_train_step",
        ("net.py", "jax.jit(update, donate_argnums=0)", "jax.jit(update)"),
        finds="donated_bytes",
        culprit=r"^no longer donated: state\.step, state\.params",
        origin="options or values that the function's source does not have",
    ),
    plant(
        "remat removed",
        "test_update",
        ("net.py", "nn.remat(Block, prevent_cse=False)", "Block"),
        finds="temp_bytes",
        culprit=r"remat is lost|recomputation",
    ),
    plant(
        "remat saves everything within the scan",
        "test_update",
        (
            "net.py",
            "nn.remat(Block, prevent_cse=False)",
            "nn.remat(Block, prevent_cse=False, policy=jax.checkpoint_policies.everything_saveable)",
        ),
        finds="temp_bytes",
        culprit=r"remat is lost or keeps more",
    ),
    plant(
        "scan becomes a loop over slices",
        "test_predict",
        ("net.py", "variable_axes={", "unroll=DEPTH, variable_axes={"),
        finds="stablehlo_ops",
        culprit=r"^a loop is unrolled: stablehlo\.while 1 → 0",
    ),
    plant(
        "bfloat16 lost",
        "test_predict",
        ("net.py", "h = nn.Dense(2 * WIDTH, dtype=jnp.bfloat16)(x)", "h = nn.Dense(2 * WIDTH)(x)"),
        finds="wider_products",
        culprit=r"^products of wider floats: bfloat16\[256,32\] x bfloat16\[32,64\] → float32",
    ),
    plant(
        "a table is captured",
        "test_predict",
        ("net.py", "MEAN = 0.1", "MEAN = jax.random.normal(jax.random.key(1), (4096, WIDTH))"),
        ("net.py", "x - MEAN", "x - MEAN[: len(x)]"),
        finds="constant_bytes",
        culprit=r"4096x32xf32 \(524,288 bytes\)",
        at="x - MEAN",
    ),
    plant(
        "a callback is left",
        "test_predict",
        (
            "net.py",
            "        return nn.Dense(8,",
            '        jax.debug.print("mean {}", x.mean())\n        return nn.Dense(8,',
        ),
        finds="host_callbacks",
        culprit=r"^the program calls Python: jax\.debug\.print",
        at="jax.debug.print",
    ),
    plant(
        "a second forward pass",
        "test_update",
        (
            "net.py",
            "return state.apply_gradients(grads=grads), loss",
            "state = state.apply_gradients(grads=grads)\n    return state, loss_of(state.params)",
        ),
        finds="matmul_flops",
        culprit=r"^bfloat16\[256,64\] x bfloat16\[64,32\] \d+ → \d+",
    ),
    plant(
        "the state is no longer replaced in one type",
        "test_train_step",
        (
            "net.py",
            "return state.apply_gradients(grads=grads), loss",
            "state = state.apply_gradients(grads=grads)\n    return state.replace(params=jax.tree.map(lambda p: p.astype(jnp.bfloat16), state.params)), loss",
        ),
        finds="traces",
        culprit=r"^step 2 retraced: state\.params\['head'\]\['bias'\]: float32\[8\] → bfloat16\[8\]",
    ),
    plant(
        "gradients are returned too",
        "test_update",
        ("net.py", "apply_gradients(grads=grads), loss", "apply_gradients(grads=grads), (loss, grads)"),
        finds="output_bytes",
        culprit=r"^more is returned: .*float32\[4,(32,64|64,32)\] \(32,768 bytes\), new",
    ),
]


def test_a_state_as_flax_creates_it(project):
    """``TrainState.create`` counts steps by a Python int; a jitted step that donates it is gated all the same."""
    project.write("net.py", NET.replace("state.replace(step=jnp.zeros((), jnp.int32))", "state"))
    project.write("test_net.py", TESTS)
    project.run("test_net.py::test_train_step", "--benchmark-disable").counts(passed=1)
