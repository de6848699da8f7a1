"""States that come back as something else, are not taken over, or lie on every device."""

from tests.faults.model import faults_of

fault = faults_of("workloads/checkpoint.py")

BETWEEN = "state-put-back-between-two-steps-at-once-vs-leaf-by-leaf"
AFTER = "step-after-a-restore-donated-vs-copied"
SHARDS = "state-restored-to-its-shards-on-8-devices-vs-whole-on-each"

FAULTS = (
    fault(
        "numbers come back as Python's",
        BETWEEN,
        ("subject=job(restored)", "subject=job(one_by_one)"),
        moves={"compiles"},
        culprit=r"state\['step'\]|step|compiles more programs",
    ),
    fault(
        "the state is fetched twice",
        BETWEEN,
        ("back(saved(state), state)", "back(saved(saved(state) and state), state)"),
        moves={"host_transfers"},
        culprit=r"moved between host and device in each call: \d+ for the host",
        at=("return jax.device_get(state)",),
    ),
    fault(
        "the restored state is not donated",
        AFTER,
        (
            "subject=jax.jit(step, donate_argnums=0),\n        reference=jax.jit(step),",
            "subject=jax.jit(step),\n        reference=jax.jit(step),",
        ),
        moves={"donated_bytes", "aliased_bytes"},
        culprit=r"no longer donated: state",
    ),
    fault(
        "moments come back in bfloat16",
        AFTER,
        (
            "    args = (restored(kept, here), *jax.device_put((x, y)))",
            '    moments = jax.tree.map(lambda leaf: leaf.astype("bfloat16") if leaf.ndim else leaf, kept["optimiser"])\n'
            '    kept = {**kept, "optimiser": moments}\n    args = (restored(kept, here), *jax.device_put((x, y)))',
        ),
        moves={"compiles", "lost_bytes"},
        culprit=r"step 2 retraced: state\['optimiser'\]\[0\]\.mu\[0\]\['bias'\]: bfloat16\[64\] → float32\[64\]",
    ),
    fault(
        "every device gets all of the state",
        SHARDS,
        (
            "layout = jax.tree.map(lambda leaf: rows if leaf.ndim else everywhere, kept)",
            "layout = jax.tree.map(lambda _: everywhere, kept)",
        ),
        moves={"argument_bytes", "replicated_bytes"},
        culprit=r"takes .* bytes of each device, .* before: sharded less",
    ),
)
