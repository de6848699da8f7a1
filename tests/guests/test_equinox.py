"""Equinox: a step under ``filter_jit`` that donates, functions of Modules, a Module that is called, a method."""

from guests.plants import plant, test_planted, test_unchanged_in_a_recipe

NET = """
import itertools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

WIDTH, DEPTH = 32, 4
MEAN = 0.1


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    down: eqx.nn.Linear
    activation: Callable

    def __init__(self, *, key):
        first, second = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(WIDTH)
        self.up = eqx.nn.Linear(WIDTH, 2 * WIDTH, key=first)
        self.down = eqx.nn.Linear(2 * WIDTH, WIDTH, key=second)
        self.activation = jax.nn.gelu

    def __call__(self, x):
        h = self.norm(x).astype(jnp.bfloat16)
        up, down = self.up.weight.astype(jnp.bfloat16), self.down.weight.astype(jnp.bfloat16)
        h = self.activation(up @ h)
        return x + (down @ h).astype(x.dtype)


class Net(eqx.Module):
    blocks: Block
    head: eqx.nn.Linear
    name: str

    def __init__(self, *, key):
        first, second = jax.random.split(key)
        self.blocks = eqx.filter_vmap(lambda key: Block(key=key))(jax.random.split(first, DEPTH))
        self.head = eqx.nn.Linear(WIDTH, 8, key=second)
        self.name = "net"

    def features(self, x):
        arrays, static = eqx.partition(self.blocks, eqx.is_array)

        @jax.checkpoint
        def body(h, layer):
            return eqx.combine(layer, static)(h), None

        return jax.lax.scan(body, x, arrays)[0]

    def __call__(self, xs):
        hidden = jax.vmap(self.features)(xs - MEAN)
        return jax.vmap(self.head)(hidden)


def predict(model, xs):
    return model(xs) if isinstance(model, Net) else jax.vmap(model)(xs)


def loss_of(model, xs, ys):
    return jnp.mean((predict(model, xs) - ys) ** 2)


OPTIMIZER = optax.adam(1e-3)


def update(model, state, xs, ys, rate=1.0):
    loss, grads = eqx.filter_value_and_grad(loss_of)(model, xs, ys)
    updates, state = OPTIMIZER.update(grads, state)
    updates = jax.tree.map(lambda u: u * rate, updates)
    return eqx.apply_updates(model, updates), state, loss


@eqx.filter_jit(donate="all-except-first")
def train_step(batch, model, state):
    return update(model, state, *batch)


STEPS = itertools.count(1)


def epoch(model, state, xs, ys):
    losses = []
    for start in range(0, 16, 8):
        batch = xs[start : start + 8], ys[start : start + 8]
        rate = jnp.float32(1.0 / next(STEPS))
        model, state, loss = train_step((*batch, rate), model, state)
        losses.append(loss)
    return model, state, losses
"""

TESTS = """
import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from net import OPTIMIZER, Net, epoch, train_step, update

XS, YS = jnp.ones((16, 32)), jnp.ones((16, 8))


@pytest.fixture
def model():
    return Net(key=jax.random.key(0))


@pytest.fixture
def state(model):
    return OPTIMIZER.init(eqx.filter(model, eqx.is_array))


def test_train_step(gate, model, state):
    gate(train_step, (XS, YS), model, state, next_args=lambda result, args: (args[0], result[0], result[1]))


def test_epoch(gate):
    model = eqx.nn.Linear(32, 8, key=jax.random.key(0))
    gate(epoch, model, OPTIMIZER.init(model), XS, YS, eager=True, carry=("model", "state"))


def test_update(gate, model, state):
    gate(update, model, state, XS, YS, donate=("model", "state"))


def test_net(gate, model):
    gate(model, XS)


def test_features(gate, model):
    gate(model.features, XS[0])
"""

FILES = {"net.py": NET, "test_net.py": TESTS}

SCAN = "return jax.lax.scan(body, x, arrays)[0]"
LOOPED = """for i in range(DEPTH):
            x, _ = body(x, jax.tree.map(lambda a: a[i], arrays))
        return x"""
NARROW = """h = self.norm(x).astype(jnp.bfloat16)
        up, down = self.up.weight.astype(jnp.bfloat16), self.down.weight.astype(jnp.bfloat16)"""
WIDE = """h = self.norm(x)
        up, down = self.up.weight, self.down.weight"""

PLANTS = [
    plant(
        "donation dropped",
        "test_train_step",
        ("net.py", '@eqx.filter_jit(donate="all-except-first")', "@eqx.filter_jit"),
        finds="donated_bytes",
        culprit=r"^no longer donated: .*model\.blocks",
    ),
    plant(
        "donation of a step in a loop dropped",
        "test_epoch",
        ("net.py", '@eqx.filter_jit(donate="all-except-first")', "@eqx.filter_jit"),
        finds="donated_bytes",
        culprit=r"^no longer donated: .*model\.weight",
    ),
    plant(
        "remat removed",
        "test_update",
        ("net.py", "        @jax.checkpoint\n", ""),
        finds="temp_bytes",
        culprit=r"remat is lost|recomputation",
    ),
    plant(
        "remat saves everything within the scan",
        "test_update",
        (
            "net.py",
            "        @jax.checkpoint\n",
            "        @partial(jax.checkpoint, policy=jax.checkpoint_policies.everything_saveable)\n",
        ),
        ("net.py", "import itertools\n", "import itertools\nfrom functools import partial\n"),
        finds="temp_bytes",
        culprit=r"remat is lost or keeps more",
    ),
    plant(
        "remat removed within filter_jit",
        "test_train_step",
        ("net.py", "        @jax.checkpoint\n", ""),
        finds="temp_bytes",
        culprit=r"remat is lost|recomputation",
    ),
    plant(
        "scan over layers becomes a loop",
        "test_features",
        ("net.py", SCAN, LOOPED),
        finds="stablehlo_ops",
        culprit=r"^a loop is unrolled: stablehlo\.while 1 → 0",
    ),
    plant(
        "scan over layers becomes a loop within filter_jit",
        "test_train_step",
        ("net.py", SCAN, LOOPED),
        finds="stablehlo_ops",
        culprit=r"^a loop is unrolled: stablehlo\.while 2 → 0",
    ),
    plant(
        "learning rate is a Python float that changes",
        "test_epoch",
        ("net.py", "jnp.float32(1.0 / next(STEPS))", "1.0 / next(STEPS)"),
        finds="traces",
        culprit=r"^step 2 retraced: train_step: batch\[2\]: static 0\.\d+ → static 0\.\d+",
        at="model, state, loss = train_step",
    ),
    plant(
        "the number of the step is given for a log",
        "test_epoch",
        (
            "net.py",
            "train_step((*batch, rate), model, state)",
            "train_step((*batch, rate), model, state, log=next(STEPS))",
        ),
        ("net.py", "def train_step(batch, model, state):", "def train_step(batch, model, state, log=0):"),
        finds="traces",
        culprit=r"^step 2 retraced: train_step: log: static \d+ → static \d+",
        at="model, state, loss = train_step",
    ),
    plant(
        "the next step is called with a larger batch",
        "test_train_step",
        (
            "test_net.py",
            "lambda result, args: (args[0], result[0], result[1])",
            "lambda result, args: (jax.tree.map(lambda a: jnp.concatenate([a, a]), args[0]), result[0], result[1])",
        ),
        finds="traces",
        culprit=r"^step 2 retraced: batch\[0\]: float32\[16,32\] → float32\[32,32\]",
    ),
    plant(
        "a table is captured",
        "test_net",
        ("net.py", "MEAN = 0.1", "MEAN = jax.random.normal(jax.random.key(1), (4096, WIDTH))"),
        ("net.py", "xs - MEAN", "xs - MEAN[: len(xs)]"),
        finds="constant_bytes",
        culprit=r"`MEAN` captured .*4096x32xf32 \(524,288 bytes\)",
        at="xs - MEAN",
    ),
    plant(
        "a table is captured within filter_jit",
        "test_train_step",
        ("net.py", "MEAN = 0.1", "MEAN = jax.random.normal(jax.random.key(1), (4096, WIDTH))"),
        ("net.py", "xs - MEAN", "xs - MEAN[: len(xs)]"),
        finds="constant_bytes",
        culprit=r"4096x32xf32 \(524,288 bytes\)",
        at="xs - MEAN",
    ),
    plant(
        "bfloat16 lost",
        "test_net",
        ("net.py", NARROW, WIDE),
        finds="wider_products",
        culprit=r"^products of wider floats: bfloat16\[\d+,\d+\] x bfloat16\[\d+,\d+\] → float32",
        at="h = self.activation",
    ),
    plant(
        "bfloat16 lost in a method",
        "test_features",
        ("net.py", NARROW, WIDE),
        finds="wider_products",
        culprit=r"^products of wider floats: bfloat16",
        at="h = self.activation",
    ),
    plant(
        "the loss is read at each step",
        "test_epoch",
        ("net.py", "losses.append(loss)", "losses.append(float(loss))"),
        finds="host_transfers",
        culprit=r"2 for the host",
        at="losses.append",
    ),
    plant(
        "an eager operation at each step",
        "test_epoch",
        ("net.py", "losses.append(loss)", "losses.append(jnp.sqrt(loss))"),
        finds="launches",
        culprit=r"^programs started in a call: sqrt 0 → 2",
        at="losses.append",
    ),
    plant(
        "a second forward pass",
        "test_update",
        (
            "net.py",
            "return eqx.apply_updates(model, updates), state, loss",
            "model = eqx.apply_updates(model, updates)\n    return model, state, loss_of(model, xs, ys)",
        ),
        finds="matmul_flops",
        culprit=r"^bfloat16\[32,64\] x bfloat16\[64,16\] 4 → 8",
        at="h).astype(x.dtype)",
    ),
    plant(
        "a second forward pass within filter_jit in a loop",
        "test_epoch",
        (
            "net.py",
            "return eqx.apply_updates(model, updates), state, loss",
            "model = eqx.apply_updates(model, updates)\n    return model, state, loss_of(model, xs, ys)",
        ),
        finds="matmul_flops",
        culprit=r"^float32\[8,32\] x float32\[8,32\] 2 → 4",
    ),
    plant(
        "vmap becomes a Python loop",
        "test_net",
        ("net.py", "jax.vmap(self.head)(hidden)", "jnp.stack([self.head(h) for h in hidden])"),
        finds="stablehlo_ops",
        culprit=r"stablehlo\.\w+ 8xf32 0 → 16",
        at="jnp.stack",
    ),
    plant(
        "a debug print is left",
        "test_train_step",
        (
            "net.py",
            "    updates, state = OPTIMIZER",
            '    jax.debug.print("loss {}", loss)\n    updates, state = OPTIMIZER',
        ),
        finds="host_callbacks",
        culprit=r"^the program calls Python: jax\.debug\.print",
        at="jax.debug.print",
    ),
    plant(
        "a function is jitted anew at each step",
        "test_epoch",
        (
            "net.py",
            "train_step((*batch, rate), model, state)",
            "eqx.filter_jit(lambda *args: update(*args))(model, state, *batch, rate)",
        ),
        finds="traces",
        culprit=r"^step 2 retraced: <lambda>: a new function object per call",
        at="filter_jit(lambda",
    ),
]
