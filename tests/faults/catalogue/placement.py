"""Arrays in a wrong place, numbers read too often, Python called from a step, keys and numbers made outside of it."""

from __future__ import annotations

from tests.faults.model import Fault

_PLACING = "workloads/placement/placing.py"
_FETCHING = "workloads/placement/fetching.py"
_KEYS = "workloads/placement/keys.py"
_NESTED = "workloads/placement/nested.py"
_OFFLOAD = "workloads/placement/offload.py"

FAULTS = (
    Fault(
        name="the batch is put without a sharding",
        file=_PLACING,
        case="batch-spread-over-8-devices-vs-whole-on-each",
        edits=(("placed = jax.device_put((x, y), spread)", "placed = jax.device_put((x, y))"),),
        moves=frozenset({"argument_bytes", "xla_flops"}),
        culprit=r"[xy] takes 16,384 bytes of each device, 2,048 before: sharded less",
    ),
    Fault(
        name="the batch goes to the first device",
        file=_PLACING,
        case="batch-put-sharded-vs-through-the-first-device",
        edits=(("step(params, jax.device_put(x, spread))", "step(params, jnp.asarray(x))"),),
        moves=frozenset({"launches"}),
        culprit=r"programs started in a call: (stage|_multi_slice) 0 → 1",
        at=("= step(params, jnp.asarray(x))",),
    ),
    Fault(
        name="the state is left uncommitted beside a committed batch",
        file=_PLACING,
        case="state-committed-with-its-batch-vs-copied",
        edits=(("params = jax.device_put(params, device)\n    return", "params = jax.device_put(params)\n    return"),),
        moves=frozenset({"compiles"}),
        culprit=r"step 2 recompiled: params\[0\]\['bias'\]: uncommitted → committed",
    ),
    Fault(
        name="parameters stay NumPy arrays",
        file=_PLACING,
        case="parameters-kept-on-the-device-vs-sent-at-every-call",
        edits=(("step(placed, jax.device_put(x))", "step(params, jax.device_put(x))"),),
        moves=frozenset({"host_transfers"}),
        culprit=r"moved between host and device in each call: 4 for mlp",
        at=("= step(params, jax.device_put(x))",),
    ),
    Fault(
        name="the loss is read after each step",
        file=_FETCHING,
        case="loss-read-after-4-steps-vs-after-each",
        edits=(
            (
                "        params, total = step(params, total, x, y)\n",
                "        params, total = step(params, total, x, y)\n        print(end='' if total else ' ')\n",
            ),
        ),
        moves=frozenset({"host_transfers"}),
        culprit=r"moved between host and device in each call: 5 for the host",
        at=("print(end=",),
    ),
    Fault(
        name="predictions are returned for the host to look at",
        file=_FETCHING,
        case="metrics-returned-vs-predictions-too",
        edits=(('"absolute": jnp.abs(error).mean()}', '"absolute": jnp.abs(error).mean(), "error": error}'),),
        moves=frozenset({"output_bytes"}),
        culprit=r"more is returned: result\['error'\] is float32\[64,64\]",
    ),
    Fault(
        name="the host is asked for a function that it knows",
        file=_FETCHING,
        case="table-on-the-device-vs-pure-callback",
        edits=(("subject=jax.jit(on_the_device)", "subject=jax.jit(by_the_host)"),),
        moves=frozenset({"host_callbacks"}),
        culprit=r"the program calls Python: pure_callback of interpolated",
        at=("found: jax.Array = jax.pure_callback(",),
    ),
    Fault(
        name="a callback for debugging is left in the step",
        file=_FETCHING,
        case="losses-returned-by-4-steps-vs-io-callback",
        edits=(
            (
                "        trained: tuple[Tree, jax.Array] = jax.lax.scan(lambda p, _: train_step(p, x, y), params, length=STEPS)\n",
                "        def step(params, _):\n            params, loss = train_step(params, x, y)\n"
                "            jax.debug.callback(ignored, loss)\n            return params, loss\n\n"
                "        trained = jax.lax.scan(step, params, length=STEPS)\n",
            ),
        ),
        moves=frozenset({"host_callbacks"}),
        culprit=r"the program calls Python: jax\.debug\.callback",
        at=("jax.debug.callback(ignored, loss)",),
    ),
    Fault(
        name="Python makes a key for each step",
        file=_KEYS,
        case="key-folded-within-the-step-vs-made-by-python",
        edits=(
            (
                "folded_step(params, x, key, number)",
                "folded_step(params, x, jax.random.key(number - number), number)",
            ),
        ),
        moves=frozenset({"launches"}),
        culprit=r"programs started in a call: (_threefry_seed|stage) 0 → 1",
        at=("= folded_step(params, x, jax.random.key(",),
    ),
    Fault(
        name="the number of the step is a part of the program",
        file=_KEYS,
        case="key-folded-within-the-step-vs-made-by-python",
        edits=(("jax.random.fold_in(key, number)))", "jax.random.fold_in(key, number)), static_argnums=3)"),),
        moves=frozenset({"traces"}),
        culprit=r"step 2 retraced: <lambda>: number: static 0 → static 1",
        at=("= folded_step(params, x, key, number)",),
    ),
    Fault(
        name="numbers are drawn while the program is traced",
        file=_KEYS,
        case="key-carried-from-step-to-step-vs-numbers-compiled-in",
        edits=(("return following, noisy(params, x, own)", "return following, compiled_in(params, x)"),),
        moves=frozenset({"constant_bytes"}),
        culprit=r"drawn|64x64xf32",
    ),
    Fault(
        name="shard_map is called by itself",
        file=_NESTED,
        case="shard_map-in-jit-vs-by-itself",
        edits=(("compiled = jax.jit(mapped)", "compiled = mapped"),),
        moves=frozenset({"launches"}),
        culprit=r"step 2 retraced: <unnamed function>: a new function object per call",
        at=("= compiled(kernel, x)",),
    ),
    Fault(
        name="every device works through all members",
        file=_NESTED,
        case="ensemble-by-vmap-in-shard_map-vs-whole-on-each-device",
        edits=(
            (
                'jax.jit(jax.shard_map(batched, mesh=mesh, in_specs=(P("members"), P()), out_specs=P("members")))',
                "jax.jit(collected, out_shardings=spread)",
            ),
        ),
        moves=frozenset({"collectives", "xla_flops"}),
        culprit=r"all-gather",
    ),
    Fault(
        name="moments that waited on the host stay on the device",
        file=_OFFLOAD,
        case="moments-in-pinned-host-memory-vs-on-the-device",
        edits=(
            ("return params, jax.device_put(here, jax.memory.Space.Host)", "return params, here"),
            # Donated to a result in another memory, they end the process: JAX 0.10 and 0.12 alias the two.
            ("jax.jit(offloaded, donate_argnums=(0, 1))", "jax.jit(offloaded, donate_argnums=0)"),
        ),
        moves=frozenset({"traces", "compiles"}),
        culprit=r"pinned_host",
    ),
)
