"""Faults of values: captured constants, calls into Python, wider types."""

from __future__ import annotations

from tests.faults.model import Fault

CONSTANTS = (
    Fault(
        name="a table is captured instead of passed",
        kind="constant",
        case="positions",
        edits=(
            (
                "def forward(params, table, x, key):",
                "TABLE = np.random.default_rng(1).normal(size=(LENGTH, WIDTH)).astype(np.float32)\n\n\ndef forward(params, table, x, key):",
            ),
            ("placed = x + table", "placed = x + table + jnp.asarray(TABLE)"),
        ),
        moves=frozenset({"constant_bytes"}),
        culprit=r"128x32xf32|float32\[128,32\]",
        at=("placed = x + table",),
    ),
    Fault(
        name="positions are computed by numpy while tracing",
        kind="constant",
        case="positions",
        edits=(
            (
                "placed = x + table",
                "placed = x + table * np.sin(np.arange(LENGTH)[:, None] / np.arange(1, WIDTH + 1)).astype(np.float32)",
            ),
        ),
        moves=frozenset({"constant_bytes"}),
        culprit=r"128x32xf32|float32\[128,32\]",
        at=("placed = x + table",),
    ),
    Fault(
        name="Python's randomness is baked in",
        kind="constant",
        case="positions",
        edits=(
            (
                "kept = jax.random.bernoulli(key, 0.5, hidden.shape)",
                "kept = np.random.default_rng().random(hidden.shape) < 0.5",
            ),
        ),
        moves=frozenset({"constant_bytes"}),
        culprit=r"128x32xi1|bool\[128,32\]",
        at=("return jnp.where(kept", "kept = np.random"),
    ),
)

_CALLBACK = frozenset({"host_callbacks"})
CALLBACKS = (
    Fault(
        name="a debug print is left in",
        kind="callback",
        case="mlp_sgd",
        edits=(("    rate = RATE /", '    jax.debug.print("loss {}", loss)\n    rate = RATE /'),),
        moves=_CALLBACK,
        at=("jax.debug.print(",),
    ),
    Fault(
        name="a debug print in the body of a scan",
        kind="callback",
        case="rnn_context",
        edits=(
            ("        return hidden, None", '        jax.debug.print("{}", hidden[0, 0])\n        return hidden, None'),
        ),
        moves=_CALLBACK,
        at=("jax.debug.print(",),
    ),
    Fault(
        name="a function of numpy is called back",
        kind="callback",
        case="inference",
        edits=(
            (
                "best = jnp.argmax(scores, axis=-1)",
                "best = jax.pure_callback(lambda s: np.argmax(s, -1).astype(np.int32), jax.ShapeDtypeStruct((BATCH,), jnp.int32), scores)",
            ),
        ),
        moves=_CALLBACK,
        at=("jax.pure_callback(",),
    ),
    Fault(
        name="a logger of the host is called in order",
        kind="callback",
        case="rnn_scan",
        edits=(
            (
                "    params = jax.tree.map(lambda p, g",
                "    jax.experimental.io_callback(lambda value: None, None, loss, ordered=True)\n    params = jax.tree.map(lambda p, g",
            ),
            ("import numpy as np\n", "import jax.experimental\nimport numpy as np\n"),
        ),
        moves=_CALLBACK,
        at=("io_callback(",),
    ),
)

_WIDER = frozenset({"widened_bytes", "output_bytes", "temp_bytes", "xla_bytes"})
WIDENING = (
    Fault(
        name="64-bit mode and a table of numpy",
        kind="widening",
        case="inference",
        edits=(
            ("return hidden @", "return hidden * np.linspace(0.9, 1.1, HIDDEN) @"),
            ("    random = np.random", '    jax.config.update("jax_enable_x64", True)\n    random = np.random'),
        ),
        moves=_WIDER,
        culprit=r"f(loat)?64",
        at=("np.linspace(",),
    ),
    Fault(
        name="a factor of numpy widens bfloat16",
        kind="widening",
        case="bf16_forward",
        edits=(("hidden = hidden * 0.5", "hidden = hidden * np.float32(0.5)"),),
        moves=_WIDER,
        culprit=r"f(loat)?32",
        at=("hidden = hidden * np.float32(0.5)", 'hidden = jax.nn.relu(hidden @ params["second"])'),
    ),
    Fault(
        name="a vector of numpy widens bfloat16",
        kind="widening",
        case="bf16_forward",
        edits=(("hidden = hidden * 0.5", "hidden = hidden * np.linspace(0.5, 0.6, WIDTH, dtype=np.float32)"),),
        moves=_WIDER,
        culprit=r"f(loat)?32",
        at=("hidden = hidden * np.linspace(", 'hidden = jax.nn.relu(hidden @ params["second"])'),
    ),
    Fault(
        name="the result is left in the type of the accumulator",
        kind="widening",
        case="bf16_forward",
        edits=(
            (
                'return hidden @ params["third"]',
                'return jnp.matmul(hidden, params["third"], preferred_element_type=jnp.float32)',
            ),
        ),
        moves=_WIDER,
        culprit=r"f(loat)?32|result|output",
        at=("preferred_element_type",),
    ),
    Fault(
        name="activations are cast up for the layers after",
        kind="widening",
        case="bf16_forward",
        edits=(
            (
                'jax.nn.relu(hidden @ params["second"])',
                'jax.nn.relu(hidden.astype(jnp.float32) @ params["second"].astype(jnp.float32)).astype(jnp.bfloat16)',
            ),
        ),
        moves=frozenset({"widened_bytes"}),
        culprit=r"f(loat)?32",
        at=("hidden.astype(jnp.float32)",),
    ),
)

FAULTS = (*CONSTANTS, *CALLBACKS, *WIDENING)
