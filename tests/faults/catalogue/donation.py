"""Donation that is dropped, lost or misplaced."""

from __future__ import annotations

from tests.faults.model import Fault

STEPS = "workloads/donation/steps.py"
RETURNED = "return (optax.apply_updates(params, updates), opt_state), loss"

FAULTS = (
    Fault(
        name="donation is dropped",
        file=STEPS,
        case="adamw-step-donated-vs-copied",
        edits=(("jax.jit(step, donate_argnums=0)", "jax.jit(step)"),),
        moves=frozenset({"donated_bytes"}),
        culprit=r"no longer donated: state\[0\]",
    ),
    Fault(
        name="the state drifts to another dtype, which the second step retraces for",
        file=STEPS,
        case="sgd-step-donated-vs-copied",
        edits=(
            (
                RETURNED,
                'params = jax.tree.map(lambda p: p.astype("bfloat16"), optax.apply_updates(params, updates))\n'
                "        return (params, opt_state), loss",
            ),
        ),
        moves=frozenset({"traces", "compiles"}),
        culprit=r"step 2 retraced: state\[0\]\[0\]\['bias'\]: float32\[256\] → bfloat16\[256\]",
    ),
    Fault(
        name="a donated batch comes back in another dtype, of which JAX says nothing",
        file="workloads/donation/unusable.py",
        case="batch-donated-and-returned-in-the-same-shape-vs-copied",
        edits=(
            ("return 1.1 * images + 0.1", "return (1.1 * images + 0.1).astype(jnp.bfloat16)"),
            ("(result,) if returned not in LOST else args", "args"),
        ),
        moves=frozenset({"lost_bytes", "aliased_bytes"}),
        culprit=r"images \(float32\[64,32,32,3\].*the result of this shape is bfloat16",
    ),
    Fault(
        name="the batch is donated in the place of the optimiser state",
        file=STEPS,
        case="momentum-step-with-only-its-optimiser-state-donated-vs-copied",
        edits=(("donate_argnums=PARTS.index(donated)", "donate_argnums=2"),),
        moves=frozenset({"lost_bytes", "aliased_bytes", "donated_bytes"}),
        culprit=r"no longer donated: opt_state\[0\]|\bx .*no result of this shape",
    ),
    Fault(
        name="a donated batch comes back cropped",
        file="workloads/donation/unusable.py",
        case="batch-donated-and-returned-in-the-same-shape-vs-copied",
        edits=(
            ("return 1.1 * images + 0.1", "return (1.1 * images + 0.1)[:, 1:]"),
            ("(result,) if returned not in LOST else args", "args"),
        ),
        moves=frozenset({"lost_bytes", "aliased_bytes"}),
        culprit=r"images \(float32\[64,32,32,3\].*no result of this shape",
    ),
    Fault(
        name="the carry of a scan is not donated, the batches are",
        file="workloads/donation/carried.py",
        case="momentum-steps-in-one-scan-donated-vs-copied",
        edits=(
            ("subject=jax.jit(scanned(step), donate_argnums=0)", "subject=jax.jit(scanned(step), donate_argnums=1)"),
        ),
        moves=frozenset({"lost_bytes", "aliased_bytes", "donated_bytes"}),
        culprit=r"no longer donated: state\[0\]|\bxs .*no result of this shape",
    ),
    Fault(
        name="the new state is gathered on every device, and its shards are lost",
        file="workloads/donation/sharded.py",
        case="momentum-step-with-sharded-state-on-8-devices-donated-vs-copied",
        edits=(("subject=jitted(step, kept, donate=True)", "subject=jitted(step, other, donate=True)"),),
        moves=frozenset({"lost_bytes", "aliased_bytes"}),
        culprit=r"result\[0\]\[0\]\[0\]\['kernel'\] takes .* sharded less",
    ),
)
