"""The programs as they were recorded, one test each; mistakes are edits of it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def draw(*shape):
    """Normally distributed float32 on the device."""
    return jax.device_put(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))


def ranked(x):
    """An elementwise operation and a sum."""
    y = jnp.tanh(x) * 2
    return y.sum(axis=0)


def test_ranked(gate):
    gate(ranked, draw(512, 256))


def chained(x):
    """A chain that XLA fuses into one loop over memory."""
    y = x
    for scale in (1.5, 0.5, 2.0, 0.25, 3.0, 0.125):
        y = y * scale + 1
    return y


def test_chained(gate):
    gate(chained, draw(2048, 512))


def laid_out(x, w):
    """A product and a sum, in the layout of the product."""
    y = x @ w
    return y + 1


def test_laid_out(gate):
    gate(laid_out, draw(2048, 64), draw(64, 512))


def precise(x, w):
    """A product in float32."""
    y = x @ w
    return jnp.tanh(y).sum()


def test_precise(gate):
    with jax.enable_x64(True):
        gate(precise, draw(256, 256), draw(256, 256))


def observed(x, w):
    """A product that nobody looks into."""
    y = jnp.tanh(x @ w)
    return y.sum()


def test_observed(gate):
    gate(observed, draw(256, 256), draw(256, 256))


def recurrent(h, w):
    """A scan: one body, however long."""
    last, _ = jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), h, None, length=40)
    return last


def test_recurrent(gate):
    gate(recurrent, draw(32, 64), draw(64, 64))


def integrated(x, w):
    """A loop whose turns a constant decides."""

    def turn(carry):
        t, x = carry
        return t + 0.05, jnp.tanh(x @ w)

    return jax.lax.while_loop(lambda carry: carry[0] < 1.0, turn, (jnp.float32(0), x))[1]


def test_integrated(gate):
    gate(integrated, draw(64, 128), draw(128, 128))


def attended(q, k, v):
    """Attention over blocks of queries: never all scores at once."""

    def block(part):
        scores = jax.nn.softmax(part @ k.T, axis=-1)
        return scores @ v

    return jax.lax.map(block, q.reshape(16, -1, q.shape[-1])).reshape(q.shape)


def test_attended(gate):
    gate(attended, draw(1024, 32), draw(1024, 32), draw(1024, 32))


def summed(mesh):
    """One number from each device, summed."""

    @partial(jax.shard_map, mesh=mesh, in_specs=P("data"), out_specs=P())
    def total(x):
        y = jnp.tanh(x)
        return jax.lax.psum(y.sum(), "data")

    return total


def test_summed(gate):
    mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    gate(jax.jit(summed(mesh)), jax.device_put(draw(1024, 256), NamedSharding(mesh, P("data"))))


@jax.jit
def advance(w, x):
    """A jitted training step."""
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.1 * gradient, loss


def trained(w, x):
    """Plain Python around it, whose losses stay on the device."""
    losses = []
    for _ in range(4):
        w, loss = advance(w, x)
        losses.append(loss)
    return w, losses


def test_trained(gate):
    gate(trained, draw(64, 64), draw(64, 64), eager=True)


def stacked(w, x):
    """Four layers."""
    for layer in range(4):
        x = jnp.tanh(x @ w[layer])
    return x


def test_stacked(gate):
    gate(stacked, draw(4, 256, 256), draw(64, 256))


def whitened(a, b):
    """A factorisation, and a product with what it gives."""
    return jnp.linalg.cholesky(a) @ b


def test_whitened(gate):
    a = draw(192, 192)
    gate(whitened, a @ a.T + 192 * jnp.eye(192), draw(192, 64))
