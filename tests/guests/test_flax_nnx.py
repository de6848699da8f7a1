"""Flax NNX: a step under ``nnx.jit`` that donates, a loop of steps, a program of a model's state."""

from guests.plants import plant, test_planted, test_unchanged_in_a_recipe

NET = """
import itertools

import jax
import jax.numpy as jnp
import optax
from flax import nnx

WIDTH, DEPTH = 32, 4
MEAN = 0.1


class Block(nnx.Module):
    def __init__(self, rngs):
        self.up = nnx.Linear(WIDTH, 2 * WIDTH, dtype=jnp.bfloat16, rngs=rngs)
        self.down = nnx.Linear(2 * WIDTH, WIDTH, dtype=jnp.bfloat16, rngs=rngs)

    def __call__(self, x):
        return x + self.down(nnx.gelu(self.up(x))).astype(x.dtype)


class Net(nnx.Module):
    def __init__(self, rngs):
        make = nnx.vmap(Block, in_axes=0, out_axes=0)
        self.blocks = nnx.split_rngs(splits=DEPTH)(make)(rngs)
        self.head = nnx.Linear(WIDTH, 8, rngs=rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        @nnx.remat
        def body(block, h):
            return block(h)

        h = body(self.blocks, x - MEAN)
        return self.head(h)


@nnx.jit(donate_argnums=(0, 1), static_argnames="scale")
def train_step(model, optimizer, xs, ys, scale=1.0):
    def loss_of(model):
        return scale * jnp.mean((model(xs) - ys) ** 2)

    loss, grads = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, grads)
    return loss


STEPS = itertools.count(1)


def epoch(model, optimizer, xs, ys):
    losses = []
    for _ in range(2):
        step = next(STEPS)
        loss = train_step(model, optimizer, xs, ys)
        losses.append(loss)
    return losses
"""

TESTS = """
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from net import Net, epoch, train_step

XS, YS = jnp.ones((256, 32)), jnp.ones((256, 8))


def made(model):
    return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)


def test_train_step(gate):
    gate(train_step, *made(Net(nnx.Rngs(0))), XS, YS)


def test_epoch(gate):
    gate(epoch, *made(nnx.Linear(32, 8, rngs=nnx.Rngs(0))), XS, YS, eager=True)


def test_forward_and_backward(gate):
    definition, state = nnx.split(Net(nnx.Rngs(0)))

    def loss_of(state, xs):
        return jnp.mean(nnx.merge(definition, state)(xs) ** 2)

    gate(jax.grad(loss_of), state, jnp.ones((2048, 32)))


def test_forward(gate):
    definition, state = nnx.split(Net(nnx.Rngs(0)))

    def forward(state, xs):
        return nnx.merge(definition, state)(xs)

    gate(forward, state, XS)
"""

FILES = {"net.py": NET, "test_net.py": TESTS}

SCANNED = """        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        @nnx.remat
        def body(block, h):
            return block(h)

        h = body(self.blocks, x - MEAN)
"""
LOOPED = """        definition, state = nnx.split(self.blocks)
        h = x - MEAN
        for i in range(DEPTH):
            h = nnx.merge(definition, jax.tree.map(lambda a: a[i], state))(h)
"""

PLANTS = [
    plant(
        "donation dropped",
        "test_train_step",
        ("net.py", '@nnx.jit(donate_argnums=(0, 1), static_argnames="scale")', '@nnx.jit(static_argnames="scale")'),
        finds="donated_bytes",
        culprit=r"^no longer donated: 204,392 bytes of the arguments of train_step",
        at="@nnx.jit",
    ),
    plant(
        "remat removed",
        "test_train_step",
        ("net.py", "        @nnx.remat\n", ""),
        finds="temp_bytes",
        culprit=r"remat is lost|recomputation",
    ),
    plant(
        "remat removed in a program",
        "test_forward_and_backward",
        ("net.py", "        @nnx.remat\n", ""),
        finds="temp_bytes",
        culprit=r"remat is lost",
    ),
    plant(
        "remat saves everything within the scan",
        "test_train_step",
        ("net.py", "@nnx.remat\n", "@nnx.remat(policy=jax.checkpoint_policies.everything_saveable)\n"),
        finds="temp_bytes",
        culprit=r"remat is lost or keeps more",
    ),
    plant(
        "remat saves products within the scan",
        "test_forward_and_backward",
        ("net.py", "@nnx.remat\n", "@nnx.remat(policy=jax.checkpoint_policies.dots_saveable)\n"),
        finds="temp_bytes",
        culprit=r"remat is lost or keeps more",
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
        "bfloat16 lost",
        "test_train_step",
        (
            "net.py",
            "self.up = nnx.Linear(WIDTH, 2 * WIDTH, dtype=jnp.bfloat16, rngs=rngs)",
            "self.up = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs)",
        ),
        finds="wider_products",
        culprit=r"^(products of )?wider floats: bfloat16\[256,",
        at="nnx.gelu",
    ),
    plant(
        "bfloat16 lost in a program",
        "test_forward",
        (
            "net.py",
            "self.up = nnx.Linear(WIDTH, 2 * WIDTH, dtype=jnp.bfloat16, rngs=rngs)",
            "self.up = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs)",
        ),
        finds="wider_products",
        culprit=r"^products of wider floats: bfloat16\[256,32\] x bfloat16\[32,64\] → float32",
        at="nnx.gelu",
    ),
    plant(
        "scan becomes a loop",
        "test_train_step",
        ("net.py", SCANNED, LOOPED),
        finds="stablehlo_ops",
        culprit=r"^a loop is unrolled: stablehlo\.while \d → 0",
    ),
    plant(
        "scan becomes a loop in a program",
        "test_forward",
        ("net.py", SCANNED, LOOPED),
        finds="stablehlo_ops",
        culprit=r"^a loop is unrolled: stablehlo\.while 1 → 0",
    ),
    plant(
        "a table is captured",
        "test_train_step",
        ("net.py", "MEAN = 0.1", "MEAN = jax.random.normal(jax.random.key(1), (4096, WIDTH))"),
        ("net.py", "x - MEAN", "x - MEAN[: len(x)]"),
        finds="constant_bytes",
        culprit=r"^likely `MEAN` captured .*4096x32xf32 \(524,288 bytes\)",
        at="x - MEAN",
    ),
    plant(
        "a static number changes at each step",
        "test_epoch",
        (
            "net.py",
            "train_step(model, optimizer, xs, ys)\n        losses",
            "train_step(model, optimizer, xs, ys, scale=1.0 / step)\n        losses",
        ),
        finds="traces",
        culprit=r"^step 2 retraced: train_step: scale: static 0\.\d+ → static 0\.\d+",
        at="loss = train_step",
    ),
    plant(
        "the model is evaluated outside of jit",
        "test_epoch",
        ("net.py", "losses.append(loss)", "losses.append(loss)\n        losses.append(jnp.mean(model(xs)))"),
        finds="launches",
        culprit=r"^programs started in a call: \w+ 0 → 2",
        at="losses.append(jnp.mean",
    ),
    plant(
        "a second forward pass",
        "test_train_step",
        ("net.py", "    return loss\n", "    return loss_of(model)\n"),
        finds="matmul_flops",
        culprit=r"^bfloat16\[256,64\] x bfloat16\[64,32\] 4 → 8",
        at="self.down(nnx.gelu",
    ),
    plant(
        "the head is evaluated twice",
        "test_forward",
        ("net.py", "return self.head(h)", "return self.head(h) - jnp.mean(self.head(2 * h))"),
        finds="matmul_flops",
        culprit=r"^float32\[256,32\] x float32\[32,8\] 1 → 2",
        at="return self.head",
    ),
    plant(
        "a debug callback is left",
        "test_train_step",
        ("net.py", "    return loss\n", "    jax.debug.callback(print, loss)\n    return loss\n"),
        finds="host_callbacks",
        culprit=r"^the program calls Python: jax\.debug\.callback",
        at="jax.debug.callback",
    ),
]
