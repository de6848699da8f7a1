"""Arrays in a wrong place, numbers read too often, Python called from a step, keys and numbers made outside of it."""

from tests.faults.model import faults_of

placing = faults_of("workloads/placement/placing.py")
fetching = faults_of("workloads/placement/placing.py")
keys = faults_of("workloads/placement/keys.py")
nested = faults_of("workloads/placement/keys.py")
offload = faults_of("workloads/placement/keys.py")

FAULTS = (
    placing(
        "the batch is put without a sharding",
        "batch-spread-over-8-devices-vs-whole-on-each",
        ("placed = jax.device_put((x, y), spread)", "placed = jax.device_put((x, y))"),
        moves={"argument_bytes", "xla_flops"},
        culprit=r"[xy] takes 16,384 bytes of each device, 2,048 before: sharded less",
    ),
    placing(
        "the batch goes to the first device",
        "batch-put-sharded-vs-through-the-first-device",
        ("step(params, jax.device_put(x, spread))", "step(params, jnp.asarray(x))"),
        moves={"launches"},
        culprit=r"programs started in a call: (stage|_multi_slice) 0 → 1",
        at=("= step(params, jnp.asarray(x))",),
    ),
    placing(
        "the state is left uncommitted beside a committed batch",
        "state-committed-with-its-batch-vs-copied",
        ("params = jax.device_put(params, device)\n    return", "params = jax.device_put(params)\n    return"),
        moves={"compiles"},
        culprit=r"step 2 recompiled: params\[0\]\['bias'\]: uncommitted → committed",
    ),
    placing(
        "parameters stay NumPy arrays",
        "parameters-kept-on-the-device-vs-sent-at-every-call",
        ("step(placed, jax.device_put(x))", "step(params, jax.device_put(x))"),
        moves={"host_transfers"},
        culprit=r"moved between host and device in each call: 4 for mlp",
        at=("= step(params, jax.device_put(x))",),
    ),
    fetching(
        "the loss is read after each step",
        "loss-read-after-4-steps-vs-after-each",
        (
            "        params, total = step(params, total, x, y)\n",
            "        params, total = step(params, total, x, y)\n        print(end='' if total else ' ')\n",
        ),
        moves={"host_transfers"},
        culprit=r"moved between host and device in each call: 5 for the host",
        at=("print(end=",),
    ),
    fetching(
        "predictions are returned for the host to look at",
        "metrics-returned-vs-predictions-too",
        ('"absolute": jnp.abs(error).mean()}', '"absolute": jnp.abs(error).mean(), "error": error}'),
        moves={"output_bytes"},
        culprit=r"more is returned: result\['error'\] is float32\[64,64\]",
    ),
    fetching(
        "the host is asked for a function that it knows",
        "table-on-the-device-vs-pure-callback",
        ("subject=jax.jit(on_the_device)", "subject=jax.jit(by_the_host)"),
        moves={"host_callbacks"},
        culprit=r"the program calls Python: pure_callback of interpolated",
        at=("found: jax.Array = jax.pure_callback(",),
    ),
    fetching(
        "a callback for debugging is left in the step",
        "losses-returned-by-4-steps-vs-io-callback",
        (
            "        return jax.lax.scan(lambda p, _: train_step(p, x, y), params, length=STEPS)\n",
            "        def step(params, _):\n            params, loss = train_step(params, x, y)\n"
            "            jax.debug.callback(ignored, loss)\n            return params, loss\n\n"
            "        return jax.lax.scan(step, params, length=STEPS)\n",
        ),
        moves={"host_callbacks"},
        culprit=r"the program calls Python: jax\.debug\.callback",
        at=("jax.debug.callback(ignored, loss)",),
    ),
    keys(
        "Python makes a key for each step",
        "key-folded-within-the-step-vs-made-by-python",
        ("folded_step(params, x, key, number)", "folded_step(params, x, jax.random.key(number - number), number)"),
        moves={"launches"},
        culprit=r"programs started in a call: (_threefry_seed|stage) 0 → 1",
        at=("= folded_step(params, x, jax.random.key(",),
    ),
    keys(
        "the number of the step is a part of the program",
        "key-folded-within-the-step-vs-made-by-python",
        ("jax.random.fold_in(key, number)))", "jax.random.fold_in(key, number)), static_argnums=3)"),
        moves={"traces"},
        culprit=r"step 2 retraced: <lambda>: number: static 0 → static 1",
        at=("= folded_step(params, x, key, number)",),
    ),
    keys(
        "numbers are drawn while the program is traced",
        "key-carried-from-step-to-step-vs-numbers-compiled-in",
        ("return following, noisy(params, x, own)", "return following, compiled_in(params, x)"),
        moves={"constant_bytes"},
        culprit=r"drawn|64x64xf32",
    ),
    nested(
        "shard_map is called by itself",
        "shard_map-in-jit-vs-by-itself",
        ("compiled = jax.jit(mapped)", "compiled = mapped"),
        moves={"launches"},
        culprit=r"step 2 retraced: <unnamed function>: a new function object per call",
        at=("= compiled(kernel, x)",),
    ),
    nested(
        "every device works through all members",
        "ensemble-by-vmap-in-shard_map-vs-whole-on-each-device",
        (
            'jax.jit(jax.shard_map(batched, mesh=mesh, in_specs=(P("members"), P()), out_specs=P("members")))',
            "jax.jit(collected, out_shardings=spread)",
        ),
        moves={"collectives", "xla_flops"},
        culprit=r"all-gather",
    ),
    offload(
        "moments that waited on the host stay on the device",
        "moments-in-pinned-host-memory-vs-on-the-device",
        ("return params, jax.device_put(here, jax.memory.Space.Host)", "return params, here"),
        # Donated to a result in another memory, they end the process: JAX 0.10 and 0.12 alias the two.
        ("jax.jit(offloaded, donate_argnums=(0, 1))", "jax.jit(offloaded, donate_argnums=0)"),
        moves={"traces", "compiles"},
        culprit=r"pinned_host",
    ),
)
