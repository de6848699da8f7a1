"""Batching that is lost, paid for twice, or wrong."""

from __future__ import annotations

from tests.faults.model import Fault

CHUNKED = "jax.lax.map(lambda example: function(params, *example), (xs, ys), batch_size=chunk)"
NORMS = "per-example-gradient-norms-in-chunks-of-8-lax.map-vs-vmap"

FAULTS = (
    Fault(
        name="the loop over examples sneaks back",
        file="workloads/vmap/examples.py",
        case="per-example-loss-vmap-vs-lax.map",
        edits=(("subject=jax.jit(batched(loss))", "subject=jax.jit(looped(loss))"),),
        moves=frozenset({"stablehlo_ops"}),
        culprit=r"stablehlo\.dot_general 4x64xf32 0 → 48",
    ),
    Fault(
        name="all examples at once in place of chunks",
        file="workloads/vmap/chunks.py",
        case=NORMS,
        edits=((CHUNKED, "batched(function)(params, xs, ys)"),),
        moves=frozenset({"temp_bytes"}),
        culprit=r"steps of a loop are done all at once: stablehlo\.while 1 → 0; stablehlo\.dot_general 164x64x64xf32 0 → 2",
    ),
    Fault(
        name="gradients are kept where only their norms are wanted",
        file="workloads/vmap/chunks.py",
        case=NORMS,
        edits=(
            (
                "in_chunks = chunked(gradient_norm, chunk)",
                "kept = chunked(jax.grad(loss), chunk)\n"
                "    in_chunks = lambda *args: jnp.sqrt(  # noqa: E731\n"
                "        sum((leaf**2).reshape(leaf.shape[0], -1).sum(1) for leaf in jax.tree.leaves(kept(*args)))\n"
                "    )",
            ),
        ),
        moves=frozenset({"temp_bytes"}),
        culprit=r"stablehlo\.(concatenate|multiply) 164x64x64xf32 0 → 2",
        at=("kept = chunked", "sum((leaf**2)"),
    ),
    Fault(
        name="examples that fill no chunk are cut",
        file="workloads/vmap/chunks.py",
        case=NORMS,
        edits=(
            (
                CHUNKED,
                "jnp.resize(jax.lax.map(lambda example: function(params, *example),"
                " (xs[: len(xs) // chunk * chunk], ys[: len(ys) // chunk * chunk]), batch_size=chunk), len(xs))",
            ),
        ),
        status="INVALID",
        culprit=r"sample 163 of 164 does not influence the result",
    ),
    Fault(
        name="a shared table is repeated for each reader",
        file="workloads/vmap/axes.py",
        case="reads-of-a-shared-table-broadcast-vs-tiled",
        edits=(
            (
                "jax.vmap(read, in_axes=(0, None))(questions, table)",
                "jax.vmap(read)(questions, jnp.repeat(table[None], len(questions), 0))",
            ),
        ),
        moves=frozenset({"temp_bytes"}),
        culprit=r"stablehlo\.broadcast_in_dim 1x32x128x32xf32 0 → 1",
        at=("jnp.repeat(",),
    ),
    Fault(
        name="members of an ensemble are fed copies of the data",
        file="workloads/vmap/axes.py",
        case="ensemble-predictions-on-shared-data-vmap-vs-loop",
        edits=(
            (
                "args=(members, x),\n        batch=Batch(argument=1, size=size.batch)",
                "args=(members, jnp.repeat(x[None], size.members, 0)),\n        batch=Batch(argument=1, size=size.batch, axis=1)",
            ),
            ("subject=jax.jit(each_member(mlp))", "subject=jax.jit(jax.vmap(mlp))"),
            (
                "reference=jax.jit(one_by_one(mlp))",
                "reference=jax.jit(lambda members, xs: one_by_one(mlp)(members, xs[0]))",
            ),
        ),
        moves=frozenset({"argument_bytes"}),
        culprit=r"largest argument: xs? is float32\[8,256,48\]",
    ),
    Fault(
        name="Python draws while tracing",
        file="workloads/vmap/paths.py",
        case="monte-carlo-with-one-key-split-outside-vmap-vs-loop",
        edits=(("jax.random.normal(key, (steps,))", "np.random.default_rng(0).standard_normal(steps, np.float32)"),),
        moves=frozenset({"constant_bytes"}),
        culprit=r"504xf32 \(2,016 bytes\)",
        at=("dt**0.5 * normals",),  # where it is used: it was made in Python
    ),
    Fault(
        name="Python draws paths that no key reaches",
        file="workloads/vmap/paths.py",
        case="monte-carlo-with-a-key-for-each-path-vmap-vs-lax.map",
        edits=(("jax.random.normal(key, (steps,))", "np.random.default_rng(0).standard_normal(steps, np.float32)"),),
        status="INVALID",
        culprit=r"sample 0 of 128 does not influence the result",
    ),
    Fault(
        name="one key serves all paths",
        file="workloads/vmap/paths.py",
        case="monte-carlo-with-a-key-for-each-path-vmap-vs-lax.map",
        edits=(
            (
                "jax.vmap(lambda key: payoff(market, key, steps))(keys)",
                "jax.vmap(lambda _: payoff(market, keys[0], steps))(keys)",
            ),
        ),
        status="INVALID",
        culprit=r"sample 1 of 128 does not influence the result",
    ),
)
