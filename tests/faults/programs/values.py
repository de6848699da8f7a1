"""Faults of values: captured constants, calls into Python, wider types."""

from tests.faults.model import faults_of

constant = faults_of(kind="constant")
callback = faults_of(kind="callback")
widening = faults_of(kind="widening")

CONSTANTS = (
    constant(
        "a table is captured instead of passed",
        "positions",
        (
            "def forward(params, table, x, key):",
            "TABLE = np.random.default_rng(1).normal(size=(LENGTH, WIDTH)).astype(np.float32)\n\n\ndef forward(params, table, x, key):",
        ),
        ("placed = x + table", "placed = x + table + jnp.asarray(TABLE)"),
        moves={"constant_bytes"},
        culprit=r"128x32xf32|float32\[128,32\]",
        at=("placed = x + table",),
    ),
    constant(
        "positions are computed by numpy while tracing",
        "positions",
        (
            "placed = x + table",
            "placed = x + table * np.sin(np.arange(LENGTH)[:, None] / np.arange(1, WIDTH + 1)).astype(np.float32)",
        ),
        moves={"constant_bytes"},
        culprit=r"128x32xf32|float32\[128,32\]",
        at=("placed = x + table",),
    ),
    constant(
        "Python's randomness is baked in",
        "positions",
        (
            "kept = jax.random.bernoulli(key, 0.5, hidden.shape)",
            "kept = np.random.default_rng().random(hidden.shape) < 0.5",
        ),
        moves={"constant_bytes"},
        culprit=r"128x32xi1|bool\[128,32\]",
        at=("return jnp.where(kept", "kept = np.random"),
    ),
)

_CALLBACK = frozenset({"host_callbacks"})
CALLBACKS = (
    callback(
        "a debug print is left in",
        "mlp_sgd",
        ("    rate = RATE /", '    jax.debug.print("loss {}", loss)\n    rate = RATE /'),
        moves=_CALLBACK,
        at=("jax.debug.print(",),
    ),
    callback(
        "a debug print in the body of a scan",
        "rnn_context",
        ("        return hidden, None", '        jax.debug.print("{}", hidden[0, 0])\n        return hidden, None'),
        moves=_CALLBACK,
        at=("jax.debug.print(",),
    ),
    callback(
        "a function of numpy is called back",
        "inference",
        (
            "best = jnp.argmax(scores, axis=-1)",
            "best = jax.pure_callback(lambda s: np.argmax(s, -1).astype(np.int32), jax.ShapeDtypeStruct((BATCH,), jnp.int32), scores)",
        ),
        moves=_CALLBACK,
        at=("jax.pure_callback(",),
    ),
    callback(
        "a logger of the host is called in order",
        "rnn_scan",
        (
            "    params = jax.tree.map(lambda p, g",
            "    jax.experimental.io_callback(lambda value: None, None, loss, ordered=True)\n    params = jax.tree.map(lambda p, g",
        ),
        ("import numpy as np\n", "import jax.experimental\nimport numpy as np\n"),
        moves=_CALLBACK,
        at=("io_callback(",),
    ),
)

_WIDER = frozenset({"widened_bytes", "output_bytes", "temp_bytes", "xla_bytes"})
WIDENING = (
    widening(
        "64-bit mode and a table of numpy",
        "inference",
        ("return hidden @", "return hidden * np.linspace(0.9, 1.1, HIDDEN) @"),
        ("    random = np.random", '    jax.config.update("jax_enable_x64", True)\n    random = np.random'),
        moves=_WIDER,
        culprit=r"f(loat)?64",
        at=("np.linspace(",),
    ),
    widening(
        "a factor of numpy widens bfloat16",
        "bf16_forward",
        ("hidden = hidden * 0.5", "hidden = hidden * np.float32(0.5)"),
        moves=_WIDER,
        culprit=r"f(loat)?32",
        at=("hidden = hidden * np.float32(0.5)", 'hidden = jax.nn.relu(hidden @ params["second"])'),
    ),
    widening(
        "a vector of numpy widens bfloat16",
        "bf16_forward",
        ("hidden = hidden * 0.5", "hidden = hidden * np.linspace(0.5, 0.6, WIDTH, dtype=np.float32)"),
        moves=_WIDER,
        culprit=r"f(loat)?32",
        at=("hidden = hidden * np.linspace(", 'hidden = jax.nn.relu(hidden @ params["second"])'),
    ),
    widening(
        "the result is left in the type of the accumulator",
        "bf16_forward",
        (
            'return hidden @ params["third"]',
            'return jnp.matmul(hidden, params["third"], preferred_element_type=jnp.float32)',
        ),
        moves=_WIDER,
        culprit=r"f(loat)?32|result|output",
        at=("preferred_element_type",),
    ),
    widening(
        "activations are cast up for the layers after",
        "bf16_forward",
        (
            'jax.nn.relu(hidden @ params["second"])',
            'jax.nn.relu(hidden.astype(jnp.float32) @ params["second"].astype(jnp.float32)).astype(jnp.bfloat16)',
        ),
        moves={"widened_bytes"},
        culprit=r"f(loat)?32",
        at=("hidden.astype(jnp.float32)",),
    ),
)

FAULTS = (*CONSTANTS, *CALLBACKS, *WIDENING)
