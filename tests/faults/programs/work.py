"""Faults of work: what is computed twice, in vain, or the long way."""

from tests.faults.model import faults_of

program = faults_of(kind="program")

_WORK = frozenset({"matmul_flops", "xla_flops"})

FAULTS = (
    program(
        "the scan is unrolled",
        "rnn_scan",
        ("first, xs)\n    return last", "first, xs, unroll=True)\n    return last"),
        moves={"stablehlo_ops"},
        at=("jnp.tanh(x @", "jax.lax.scan("),
    ),
    program(
        "the scan is unrolled beside an optimiser whose arrays have the shapes of the cell's",
        "rnn_adamw",
        ("first, xs)\n    return jnp", "first, xs, unroll=True)\n    return jnp"),
        moves={"stablehlo_ops"},
        culprit=r"a loop is unrolled",
        at=("jnp.tanh(x @", "jax.lax.scan("),
    ),
    program(
        "a Python loop instead of the scan",
        "rnn_scan",
        (
            "last, _ = jax.lax.scan(lambda hidden, x: (cell(params, hidden, x), None), first, xs)",
            "last = first\n    for x in xs:\n        last = cell(params, last, x)",
        ),
        moves={"stablehlo_ops"},
        at=("jnp.tanh(x @", "last = cell(", "for x in xs:"),
    ),
    program(
        "a Python loop instead of vmap",
        "per_example",
        (
            "grads = jax.vmap(clipped, in_axes=(None, 0, 0))(params, xs, ys)",
            "each = [clipped(params, x, y) for x, y in zip(xs, ys)]\n    grads = jax.tree.map(lambda *g: jnp.stack(g), *each)",
        ),
        moves={"stablehlo_ops"},
        at=(
            "each = [clipped(", "grads = jax.tree.map(lambda *g", "hidden = jnp.tanh", "return jnp.sum((hidden",
            "norm = jnp.sqrt", "factor", "grads = jax.grad(",
        ),
    ),
    program(
        "a second forward pass for the metric",
        "mlp_sgd",
        (", loss\n\n\ndef build", ", loss_of(params, x, y)\n\n\ndef build"),
        moves=_WORK,
        culprit=r"32,64\] x float32\[64,64\]|dot_general",
        at=('x = jnp.tanh(x @ layer["kernel"]',),
    ),
    program(
        "the loss and its gradient are computed apart",
        "rnn_scan",
        (
            "loss, grads = jax.value_and_grad(loss_of)(params, xs, targets)",
            "loss, grads = loss_of(params, xs, targets), jax.grad(loss_of)(params, xs, targets)",
        ),
        moves=_WORK,
        at=("jnp.tanh(x @", "loss, grads = loss_of"),
    ),
    program(
        "a layer is applied twice",
        "bf16_forward",
        (
            'hidden = jax.nn.relu(hidden @ params["second"])',
            'hidden = jax.nn.relu(hidden @ params["second"])\n    hidden = jax.nn.relu(hidden @ params["second"])',
        ),
        moves=_WORK,
        culprit=r"bfloat16\[64,64\]|dot_general",
        at=('params["second"])',),
    ),
    program(
        "the thin matrices are multiplied first",
        "low_rank",
        ('(x @ params["down"]) @ params["up"]', 'x @ (params["down"] @ params["up"])'),
        moves=_WORK,
        culprit=r"float32\[128,4\] x float32\[4,128\]|float32\[16,128\] x float32\[128,128\]",
        at=('x = x + x @ (params["down"]',),
    ),
    program(
        "classes are found by sorting",
        "inference",
        ("best = jnp.argmax(scores, axis=-1)", "best = jnp.argsort(scores, axis=-1)[:, -1]"),
        moves={"temp_bytes", "stablehlo_ops", "xla_flops", "xla_bytes"},
        culprit=r"sort",
        at=("jnp.argsort(",),
    ),
    program(
        "the running total is a product with a triangle",
        "embedding",
        ("return jnp.cumsum(projected, axis=0)", "return jnp.tril(jnp.ones((BAGS, BAGS))) @ projected"),
        moves=_WORK,
        culprit=r"float32\[12,12\] x float32\[12,32\]|dot_general",
        at=("return jnp.tril(",),
    ),
    program(
        "rows are looked up by a one-hot product",
        "embedding",
        ("rows = jnp.take(table, items, axis=0)", "rows = jax.nn.one_hot(items, ROWS) @ table"),
        moves=_WORK,
        culprit=r"float32\[96,256\] x float32\[256,32\]|dot_general",
        at=("rows = jax.nn.one_hot(",),
    ),
    program(
        "what does not change is computed in every step of the scan",
        "rnn_context",
        ('    mixed = context @ params["context"]\n\n', ""),
        ("+ x + mixed)", '+ x + context @ params["context"])'),
        moves=_WORK,
        culprit=r"float32\[8,32\] x float32\[32,32\]|dot_general",
        at=('context @ params["context"])',),
    ),
    program(
        "what does not change is computed in every round of a while loop",
        "fixed_point",
        ("    shrunk = matrix / jnp.linalg.norm(matrix)\n\n", ""),
        ("jnp.tanh(shrunk @ x)", "jnp.tanh((matrix @ matrix.T @ matrix / jnp.linalg.norm(matrix) ** 3) @ x)"),
        moves=_WORK,
        at=("jnp.tanh((matrix @",),
    ),
    program(
        "a convolution is a product with gathered patches",
        "convnet",
        (
            'return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))',
            'order = ("NHWC", "HWIO", "NHWC")\n    patches = jax.lax.conv_general_dilated_patches(x, (3, 3), (1, 1), "SAME", dimension_numbers=order)\n    return patches @ kernel.transpose(2, 0, 1, 3).reshape(-1, kernel.shape[-1])',
        ),
        moves=_WORK | {"temp_bytes", "xla_bytes", "stablehlo_ops"},
        culprit=r"patches|convolution|dot_general| x float32",
        at=("patches = jax.lax", "return patches @"),
    ),
)  # fmt: skip
