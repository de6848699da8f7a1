"""Donation that is dropped, lost or misplaced."""

from tests.faults.model import faults_of

steps = faults_of("workloads/donation.py")
unusable = faults_of("workloads/donation.py")
carried = faults_of("workloads/donation.py")
sharded = faults_of("workloads/donation.py")

RETURNED = "return (optax.apply_updates(params, updates), opt_state), loss"

FAULTS = (
    steps(
        "donation is dropped",
        "adamw-step-donated-vs-copied",
        ("jax.jit(step, donate_argnums=0)", "jax.jit(step)"),
        moves={"donated_bytes"},
        culprit=r"no longer donated: state\[0\]",
    ),
    steps(
        "the state drifts to another dtype, which the second step retraces for",
        "sgd-step-donated-vs-copied",
        (
            RETURNED,
            'params = jax.tree.map(lambda p: p.astype("bfloat16"), optax.apply_updates(params, updates))\n'
            "        return (params, opt_state), loss",
        ),
        moves={"traces", "compiles"},
        culprit=r"step 2 retraced: state\[0\]\[0\]\['bias'\]: float32\[256\] → bfloat16\[256\]",
    ),
    unusable(
        "a donated batch comes back in another dtype, of which JAX says nothing",
        "batch-donated-and-returned-in-the-same-shape-vs-copied",
        ("return 1.1 * images + 0.1", "return (1.1 * images + 0.1).astype(jnp.bfloat16)"),
        (
            "        preprocessing(size, brightened),\n        carry=0,",
            "        preprocessing(size, brightened),\n        next_args=lambda _, args: args,",
        ),
        moves={"lost_bytes", "aliased_bytes"},
        culprit=r"images \(float32\[64,32,32,3\].*the result of this shape is bfloat16",
    ),
    steps(
        "the batch is donated in the place of the optimiser state",
        "momentum-step-with-only-its-optimiser-state-donated-vs-copied",
        ("donate_argnums=PARTS.index(donated)", "donate_argnums=2"),
        moves={"lost_bytes", "aliased_bytes", "donated_bytes"},
        culprit=r"no longer donated: opt_state\[0\]|\bx .*no result of this shape",
    ),
    unusable(
        "a donated batch comes back cropped",
        "batch-donated-and-returned-in-the-same-shape-vs-copied",
        ("return 1.1 * images + 0.1", "return (1.1 * images + 0.1)[:, 1:]"),
        (
            "        preprocessing(size, brightened),\n        carry=0,",
            "        preprocessing(size, brightened),\n        next_args=lambda _, args: args,",
        ),
        moves={"lost_bytes", "aliased_bytes"},
        culprit=r"images \(float32\[64,32,32,3\].*no result of this shape",
    ),
    carried(
        "the carry of a scan is not donated, the batches are",
        "momentum-steps-in-one-scan-donated-vs-copied",
        ("subject=jax.jit(scanned(step), donate_argnums=0)", "subject=jax.jit(scanned(step), donate_argnums=1)"),
        moves={"lost_bytes", "aliased_bytes", "donated_bytes"},
        culprit=r"no longer donated: state\[0\]|\bxs .*no result of this shape",
    ),
    sharded(
        "the new state is gathered on every device, and its shards are lost",
        "momentum-step-with-sharded-state-on-8-devices-donated-vs-copied",
        ("subject=jitted(step, kept, donate=True)", "subject=jitted(step, other, donate=True)"),
        moves={"lost_bytes", "aliased_bytes"},
        culprit=r"result\[0\]\[0\]\[0\]\['kernel'\] takes .* sharded less",
    ),
)
