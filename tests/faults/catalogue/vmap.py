"""Batching that is lost, paid for twice, or wrong."""

from tests.faults.model import faults_of

examples = faults_of("workloads/vmap.py")
chunks = faults_of("workloads/vmap.py")
axes = faults_of("workloads/vmap.py")
paths = faults_of("workloads/vmap.py")

CHUNKED = "jax.lax.map(lambda example: function(params, *example), (xs, ys), batch_size=chunk)"
NORMS = "per-example-gradient-norms-in-chunks-of-8-lax.map-vs-vmap"

FAULTS = (
    examples(
        "the loop over examples sneaks back",
        "per-example-loss-vmap-vs-lax.map",
        ("subject=jax.jit(batched(loss))", "subject=jax.jit(looped(loss))"),
        moves={"stablehlo_ops"},
        culprit=r"stablehlo\.\w+ 4x64xf32 0 → 48",
    ),
    chunks(
        "all examples at once in place of chunks",
        NORMS,
        (CHUNKED, "batched(function)(params, xs, ys)"),
        moves={"temp_bytes"},
        culprit=r"steps of a loop are done all at once: stablehlo\.while 1 → 0",
    ),
    chunks(
        "gradients are kept where only their norms are wanted",
        NORMS,
        (
            "in_chunks = chunked(gradient_norm, chunk)",
            "kept = chunked(jax.grad(loss), chunk)\n"
            "    in_chunks = lambda *args: jnp.sqrt(  # noqa: E731\n"
            "        sum((leaf**2).reshape(leaf.shape[0], -1).sum(1) for leaf in jax.tree.leaves(kept(*args)))\n"
            "    )",
        ),
        moves={"temp_bytes"},
        culprit=r"stablehlo\.(concatenate|multiply) 164x64x64xf32 0 → 2",
        at=("batch_size=chunk", "kept = chunked", "sum((leaf**2)"),
    ),
    chunks(
        "examples that fill no chunk are cut",
        NORMS,
        (
            CHUNKED,
            "jnp.resize(jax.lax.map(lambda example: function(params, *example),"
            " (xs[: len(xs) // chunk * chunk], ys[: len(ys) // chunk * chunk]), batch_size=chunk), len(xs))",
        ),
        status="INVALID",
        culprit=r"sample 163 of 164 does not influence the result",
    ),
    axes(
        "a shared table is repeated for each reader",
        "reads-of-a-shared-table-broadcast-vs-tiled",
        (
            "jax.vmap(read, in_axes=(0, None))(questions, table)",
            "jax.vmap(read)(questions, jnp.repeat(table[None], len(questions), 0))",
        ),
        moves={"temp_bytes"},
        culprit=r"an array is repeated: stablehlo\.broadcast_in_dim 1x32x128x32xf32 0 → 1",
        at=("jnp.repeat(",),
    ),
    axes(
        "members of an ensemble are fed copies of the data",
        "ensemble-predictions-on-shared-data-vmap-vs-loop",
        (
            "args=(members, x),\n        batch=Batch(argument=1, size=size.batch)",
            "args=(members, jnp.repeat(x[None], size.members, 0)),\n        batch=Batch(argument=1, size=size.batch, axis=1)",
        ),
        ("subject=jax.jit(each_member(mlp))", "subject=jax.jit(jax.vmap(mlp))"),
        (
            "reference=jax.jit(one_by_one(mlp))",
            "reference=jax.jit(lambda members, xs: one_by_one(mlp)(members, xs[0]))",
        ),
        moves={"argument_bytes"},
        culprit=r"largest argument: xs? is float32\[8,256,48\]",
    ),
    paths(
        "Python draws while tracing",
        "monte-carlo-with-one-key-split-outside-vmap-vs-loop",
        ("jax.random.normal(key, (steps,))", "np.random.default_rng(0).standard_normal(steps, np.float32)"),
        moves={"constant_bytes"},
        culprit=r"504xf32 \(2,016 bytes\)",
        # where it is used: it was made in Python
        at=("dt**0.5 * normals",),
    ),
    paths(
        "Python draws paths that no key reaches",
        "monte-carlo-with-a-key-for-each-path-vmap-vs-lax.map",
        ("jax.random.normal(key, (steps,))", "np.random.default_rng(0).standard_normal(steps, np.float32)"),
        status="INVALID",
        culprit=r"sample 0 of 128 does not influence the result",
    ),
    paths(
        "one key serves all paths",
        "monte-carlo-with-a-key-for-each-path-vmap-vs-lax.map",
        (
            "jax.vmap(lambda key: payoff(market, key, steps))(keys)",
            "jax.vmap(lambda _: payoff(market, keys[0], steps))(keys)",
        ),
        status="INVALID",
        culprit=r"sample 1 of 128 does not influence the result",
    ),
)
