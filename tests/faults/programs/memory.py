"""Faults of memory: what is kept, returned or spread out without need."""

from tests.faults.model import faults_of

memory = faults_of(kind="memory")

_MEMORY = frozenset({"temp_bytes", "output_bytes"})
_WORK = frozenset({"matmul_flops", "xla_flops"})

FAULTS = (
    memory(
        "remat is removed",
        "blocks",
        ("body = jax.checkpoint(block)", "body = block"),
        moves=_MEMORY,
        culprit=r"remat|checkpoint|optimization_barrier|f(loat)?32\[6,64,128\]|6x64x128xf32",
    ),
    memory(
        "remat saves everything",
        "blocks",
        ("jax.checkpoint(block)", "jax.checkpoint(block, policy=jax.checkpoint_policies.everything_saveable)"),
        moves=_MEMORY,
        culprit=r"remat|checkpoint|optimization_barrier|f(loat)?32\[6,64,128\]|6x64x128xf32",
    ),
    memory(
        "the matrix of attention is returned",
        "attention",
        (
            "return mixed.reshape(batch, length, heads * dim)",
            "return mixed.reshape(batch, length, heads * dim), weights",
        ),
        ("mixed = attend(query, key, value)", "mixed, weights = attend(query, key, value)"),
        ('return mixed @ params["out"]', 'return mixed @ params["out"], weights'),
        moves=_MEMORY,
        culprit=r"result\[1\]|output|f(loat)?32\[2,2,4,64,64\]",
    ),
    memory(
        "all logits are returned beside the classes",
        "inference",
        ("return best, sure", "return best, sure, scores"),
        moves=_MEMORY,
        culprit=r"result\[2\]|output|f(loat)?32\[60,16\]",
    ),
    memory(
        "the gradients are returned beside the new state",
        "mlp_sgd",
        ('"scale": scale}, loss', '"scale": scale}, (loss, grads)'),
        moves=_MEMORY,
        culprit=r"result\[1\]|output",
    ),
    memory(
        "the scan stacks every hidden state",
        "rnn_context",
        ("return hidden, None", "return hidden, hidden"),
        ("last, _ = jax.lax.scan", "last, states = jax.lax.scan"),
        ("return last\n", "return last, states\n"),
        moves=_MEMORY,
        culprit=r"result\[1\]|output|f(loat)?32\[16,8,32\]|16x8x32xf32|dynamic_update_slice",
    ),
    memory(
        "the loss over the vocabulary is no longer chunked",
        "token_loss",
        (
            'one = jax.checkpoint(lambda part: chunk_loss(params["head"], *part))\n    total = jnp.sum(jax.lax.map(one, parts))',
            'total = chunk_loss(params["head"], hidden, targets, mask)',
        ),
        moves=_MEMORY,
        culprit=r"f(loat)?32\[64,256\]|64x256xf32|dot_general|log_softmax|while",
        at=("total = chunk_loss", "scores = jax.nn.log_softmax", "chosen = jnp.take"),
    ),
    memory(
        "the target is compared by a one-hot matrix",
        "token_loss",
        (
            "chosen = jnp.take_along_axis(scores, targets[:, None], axis=1)[:, 0]",
            "chosen = jnp.sum(jax.nn.one_hot(targets, VOCABULARY) * scores, axis=1)",
        ),
        moves=_MEMORY | {"xla_bytes", "xla_flops"},
        at=("jax.nn.one_hot",),
    ),
    memory(
        "the whole cache is rewritten to change one row",
        "decode",
        (
            'keys = jax.lax.dynamic_update_slice(cache["keys"], key[:, None], (0, position, 0))',
            'keys = jnp.where((jnp.arange(LENGTH) == position)[:, None], key[:, None], cache["keys"])',
        ),
        moves=_MEMORY | {"xla_bytes", "xla_flops"},
        culprit=r"select|where|dynamic_update_slice|iota|compare",
        at=("keys = jnp.where(",),
    ),
    memory(
        "the gradients of all micro-batches are kept and averaged at the end",
        "accumulate",
        ("return jax.tree.map(jnp.add, total, grads), None", "return total, grads"),
        ("total, _ = jax.lax.scan", "_, grads = jax.lax.scan"),
        ("lambda g: g / MICRO, total)", "lambda g: jnp.sum(g, axis=0) / MICRO, grads)"),
        moves=_MEMORY,
        culprit=r"f(loat)?32\[8,16,128\]|8x16x128xf32|dynamic_update_slice|reduce",
        at=("_, grads = jax.lax.scan", "jnp.sum(g, axis=0) / MICRO"),
    ),
    memory(
        "the parameters are repeated for each example",
        "per_example",
        (
            "grads = jax.vmap(clipped, in_axes=(None, 0, 0))(params, xs, ys)",
            "params = jax.tree.map(lambda p: jnp.repeat(p[None], BATCH, axis=0), params)\n    grads = jax.vmap(clipped)(params, xs, ys)",
        ),
        moves=_MEMORY | {"xla_bytes"},
        culprit=r"repeat|broadcast|float32\[16,",
        at=("jnp.repeat(p[None]", "hidden = jnp.tanh(", "jnp.sum((hidden"),
    ),
    memory(
        "accumulation over micro-batches is lost",
        "accumulate",
        ("MICRO, BATCH, WIDTH, HIDDEN = 8,", "MICRO, BATCH, WIDTH, HIDDEN = 1,"),
        moves=_MEMORY,
        culprit=r"f(loat)?32\[128,128\]|128x128xf32|f(loat)?32\[128,16\]",
        at=('hidden = jax.nn.gelu(x @ params["up"])', 'jnp.mean((hidden @ params["down"]'),
    ),
    memory(
        "segments are summed through a matrix of membership",
        "embedding",
        (
            "sums = jax.ops.segment_sum(rows, bags, num_segments=BAGS)",
            "sums = jnp.sum(jnp.where(bags[:, None, None] == jnp.arange(BAGS)[:, None], rows[:, None], 0.0), axis=0)",
        ),
        moves=_MEMORY | {"xla_bytes", "xla_flops"},
        at=("sums = jnp.sum(jnp.where(",),
    ),
)
