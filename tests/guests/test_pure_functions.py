"""Pairs of pure functions, ``init`` and ``apply``, as Haiku makes them: parameters in nested dictionaries."""

from guests.plants import plant, test_planted, test_unchanged

NET = """
import jax
import jax.numpy as jnp
import optax

WIDTH, DEPTH = 32, 4
OPTIMIZER = optax.sgd(1e-2, momentum=0.9)


def init(key):
    up, down, head = jax.random.split(key, 3)
    layers = {
        "mlp/up": {"w": 0.1 * jax.random.normal(up, (DEPTH, WIDTH, 2 * WIDTH))},
        "mlp/down": {"w": 0.1 * jax.random.normal(down, (DEPTH, 2 * WIDTH, WIDTH))},
    }
    return {"layers": layers, "head": {"w": jax.random.normal(head, (WIDTH, 8))}}


def layer(params, x):
    h = jnp.tanh(x @ params["mlp/up"]["w"])
    return x + h @ params["mlp/down"]["w"]


def apply(params, x, temperature=1.0):
    @jax.checkpoint
    def body(h, layer_params):
        return layer(layer_params, h), None

    h, _ = jax.lax.scan(body, x, params["layers"])
    return jax.nn.softmax(h.astype(jnp.bfloat16) @ params["head"]["w"].astype(jnp.bfloat16) / temperature)


def update(params, state, x, y):
    def loss_of(params):
        return jnp.mean((apply(params, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(params)
    updates, state = OPTIMIZER.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def many(params, xs):
    return jax.vmap(apply, in_axes=(None, 0))(params, xs)
"""

TESTS = """
import jax
import jax.numpy as jnp
from net import OPTIMIZER, init, many, update

PARAMS = init(jax.random.key(0))
X, Y = jnp.ones((256, 32)), jnp.ones((256, 8))


def test_update(gate):
    gate(update, PARAMS, OPTIMIZER.init(PARAMS), X, Y, donate=("params", "state"))


def test_many(gate):
    gate(many, PARAMS, jnp.ones((8, 16, 32)))
"""

FILES = {"net.py": NET, "test_net.py": TESTS}

PLANTS = [
    plant(
        "remat removed",
        "test_update",
        ("net.py", "    @jax.checkpoint\n", ""),
        finds="temp_bytes",
        culprit=r"remat is lost|recomputation",
    ),
    plant(
        "scan becomes a loop",
        "test_update",
        (
            "net.py",
            'h, _ = jax.lax.scan(body, x, params["layers"])',
            'h = x\n    for i in range(DEPTH):\n        h, _ = body(h, jax.tree.map(lambda w: w[i], params["layers"]))',
        ),
        finds="xla_flops",
        culprit=r"^a loop is unrolled: stablehlo\.while 2 → 0",
    ),
    plant(
        "vmap becomes a Python loop",
        "test_many",
        ("net.py", "jax.vmap(apply, in_axes=(None, 0))(params, xs)", "jnp.stack([apply(params, x) for x in xs])"),
        finds="stablehlo_ops",
        culprit=r"stablehlo\.\w+ .*1 → 8",
    ),
    plant(
        "logits in float32",
        "test_many",
        ("net.py", "    return jax.nn.softmax(h.astype(jnp.bfloat16)", "    return jax.nn.softmax(1.0 * h"),
        finds="output_bytes",
        culprit=r"float32",
    ),
    plant(
        "a layer too many",
        "test_many",
        (
            "net.py",
            "        return layer(layer_params, h), None",
            "        return layer(layer_params, layer(layer_params, h)), None",
        ),
        finds="matmul_flops",
        culprit=r"^float32\[8,16,64\] x float32\[64,32\] 4 → 8",
        at='return x + h @ params["mlp/down"]',
    ),
    plant(
        "hidden activations are returned",
        "test_many",
        (
            "net.py",
            "        return layer(layer_params, h), None",
            "        h = layer(layer_params, h)\n        return h, h",
        ),
        ("net.py", "    h, _ = jax.lax.scan(", "    h, hidden = jax.lax.scan("),
        ("net.py", "    return jax.nn.softmax(", "    return hidden, jax.nn.softmax("),
        finds="output_bytes",
        culprit=r"^more is returned: .* is float32\[8,4,16,32\] \(65,536 bytes\), new",
    ),
    plant(
        "a table by callback",
        "test_many",
        (
            "net.py",
            "    h = jnp.tanh(x @",
            "    x = jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method='sequential')\n    h = jnp.tanh(x @",
        ),
        finds="host_callbacks",
        culprit=r"^the program calls Python: pure_callback of <lambda>",
        at="jax.pure_callback",
    ),
    plant(
        "state drifts to a wider type",
        "test_update",
        (
            "net.py",
            "OPTIMIZER = optax.sgd(1e-2, momentum=0.9)",
            "OPTIMIZER = optax.sgd(1e-2, momentum=0.9, accumulator_dtype=jnp.bfloat16)",
        ),
        (
            "test_net.py",
            "OPTIMIZER.init(PARAMS), X",
            "jax.tree.map(lambda a: a.astype(jnp.float32), OPTIMIZER.init(PARAMS)), X",
        ),
        finds="traces",
        culprit=r"^step 2 retraced: state\[0\]\.trace\['head'\]\['w'\]: float32\[32,8\] → bfloat16\[32,8\]",
        origin="options or values that the function's source does not have",
    ),
]
