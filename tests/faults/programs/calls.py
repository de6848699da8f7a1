"""Faults of calls: retraces, donation, results that must not be judged, plain Python around jitted steps."""

from tests.faults.model import faults_of

retrace = faults_of(kind="retrace")
donation = faults_of(kind="donation")
validity = faults_of(kind="validity")
memory = faults_of(kind="memory")
host = faults_of(kind="host")

_TRACES = frozenset({"traces", "compiles", "lowerings"})
_DONATED = frozenset({"donated_bytes", "aliased_bytes", "lost_bytes"})
_SGD_RETURN = 'return {"params": params, "velocity": velocity, "scale": scale}, loss'
_SGD_NEXT = "next_args=lambda result, args: (result[0], args[1], args[2], args[3] + 1),"

RETRACES = (
    retrace(
        "the velocity comes back in another dtype",
        "mlp_sgd",
        (
            "velocity = jax.tree.map(lambda v, g: DECAY * v + g,",
            "velocity = jax.tree.map(lambda v, g: (DECAY * v + g).astype(jnp.bfloat16),",
        ),
        moves=_TRACES,
        culprit=r"state\['velocity'\]\[0\]\['bias'\]: float32\[64\] → bfloat16\[64\]",
    ),
    retrace(
        "the loss scale is reset by a Python number",
        "mlp_sgd",
        (_SGD_RETURN, 'return {"params": params, "velocity": velocity, "scale": 1.0}, loss'),
        moves=_TRACES,
        culprit=r"state\['scale'\].*weak",
    ),
    retrace(
        "the step's number is counted in Python",
        "mlp_sgd",
        (_SGD_NEXT, "next_args=lambda result, args: (result[0], args[1], args[2], int(args[3]) + 1),"),
        moves=_TRACES,
        culprit=r"count: int32\[\] → Python int",
    ),
    retrace(
        "the last batch is ragged",
        "mlp_sgd",
        (_SGD_NEXT, "next_args=lambda result, args: (result[0], args[1][:-5], args[2][:-5], args[3] + 1),"),
        moves=_TRACES,
        culprit=r"\bx: float32\[32,64\] → float32\[27,64\]",
    ),
    retrace(
        "the state gains a key in the first step",
        "mlp_sgd",
        (_SGD_RETURN, 'return {"params": params, "velocity": velocity, "scale": scale, "last_loss": loss}, loss'),
        moves=_TRACES,
        culprit=r"state\['last_loss'\]",
    ),
    retrace(
        "a list of layers comes back as a tuple",
        "mlp_sgd",
        (_SGD_RETURN, 'return {"params": tuple(params), "velocity": tuple(velocity), "scale": scale}, loss'),
        moves=_TRACES,
        culprit=r"state\['params'\].*(list.*tuple|tuple)",
    ),
    retrace(
        "the batch is committed to a device after the first step",
        "mlp_sgd",
        (
            _SGD_NEXT,
            "next_args=lambda result, args: (result[0], jax.device_put(args[1], jax.devices()[0]), args[2], args[3] + 1),",
        ),
        moves=_TRACES,
        culprit=r"\bx: .*committed",
    ),
    retrace(
        "the cache grows by concatenation",
        "decode",
        (
            'keys = jax.lax.dynamic_update_slice(cache["keys"], key[:, None], (0, position, 0))',
            'keys = jnp.concatenate([cache["keys"], key[:, None]], axis=1)',
        ),
        (
            'values = jax.lax.dynamic_update_slice(cache["values"], value[:, None], (0, position, 0))',
            'values = jnp.concatenate([cache["values"], value[:, None]], axis=1)',
        ),
        moves=_TRACES,
        culprit=r"cache\['keys'\]: float32\[4,32,32\] → float32\[4,33,32\]",
    ),
    retrace(
        "a static argument takes another value each step",
        "low_rank",
        ("(args[0], result, args[2]))", "(args[0], result, args[2] + 1))"),
        moves=_TRACES,
        culprit=r"depth: .*2.*→.*3",
    ),
    retrace(
        "the parameters come back in another layout",
        "tensor_parallel",
        (
            "subject=jax.jit(make_step(mesh), donate_argnums=0, out_shardings=(layout, None)),",
            "subject=jax.jit(make_step(mesh), donate_argnums=0, out_shardings=(NamedSharding(mesh, P()), None)),",
        ),
        moves=_TRACES,
        culprit=r"\['down'\].*shard",
    ),
)

DONATION = (
    donation(
        "donation is dropped",
        "mlp_sgd",
        ("jax.jit(step, donate_argnums=0)", "jax.jit(step)"),
        moves=_DONATED,
        culprit=r"donated.*state\[",
    ),
    donation(
        "the optimiser's state is no longer donated",
        "adamw",
        ("donate_argnums=(0, 1)", "donate_argnums=0"),
        moves=_DONATED,
        culprit=r"donated.*opt_state\[",
    ),
    donation(
        "a donated batch comes back in another dtype",
        "preprocess",
        ("return centred * scale", "return (centred * scale).astype(jax.numpy.bfloat16)"),
        moves=_DONATED,
        culprit=r"donated.*images.*float32.*bfloat16|donated.*images.*dtype",
    ),
    donation(
        "a donated batch comes back cropped",
        "preprocess",
        ("return centred * scale", "return (centred * scale)[:, 2:-2, 2:-2]"),
        moves=_DONATED,
        culprit=r"donated.*images.*(shape|28)",
    ),
    donation(
        "the donated velocity is not read any more",
        "mlp_sgd",
        ("DECAY * v + g", "g"),
        moves=_DONATED,
        culprit=r"donated.*state\['velocity'\].*unused|state\['velocity'\].*unused",
    ),
    donation(
        "velocity starts as the parameters themselves: one buffer donated twice",
        "mlp_sgd",
        ("velocity = jax.tree.map(jnp.zeros_like, params)", "velocity = params"),
        status="INVALID",
        culprit=r"state\['params'\].*state\['velocity'\]|state\['velocity'\].*state\['params'\]",
    ),
)

VALIDITY = (
    validity(
        "samples that do not fill a multiple of eight are cut off",
        "inference",
        ("scores = scores_of(params, x)\n", "x = x[: x.shape[0] // 8 * 8]\n    scores = scores_of(params, x)\n"),
        status="INVALID",
        culprit=r"sample 59 of 60",
    ),
    validity(
        "the psum of the gradients is forgotten",
        "data_parallel",
        ('jax.lax.psum(g, "data") / DEVICES', "g"),
        status="INVALID",
        culprit=r"result\['first'\].*reference",
    ),
    validity(
        "the pmean of a pmap is forgotten",
        "pmap_step",
        ('    grads = jax.lax.pmean(grads, "data")\n', ""),
        status="INVALID",
        culprit=r"result.*reference",
    ),
    validity(
        "the logarithm of a softmax runs into not-a-number",
        "inference",
        ("sure = jnp.max(jax.nn.softmax(scores), axis=-1)", "sure = jnp.max(jnp.log(scores), axis=-1)"),
        status="INVALID",
        culprit=r"NaN.*result\[1\]",
    ),
    validity(
        "the probabilities are repeated once too often: elements, not samples",
        "inference",
        ("return best, sure", "return best, jnp.tile(sure, 1 << 44)"),
        status="RESOURCE_EXHAUSTED",
        culprit=r"asked for \d.*PB",
    ),
    validity(
        "Python asks for the value of a traced number",
        "mlp_sgd",
        (
            "    rate = RATE /",
            "    if float(loss) > 100.0:\n        grads = jax.tree.map(jnp.zeros_like, grads)\n    rate = RATE /",
        ),
        status="INVALID",
        culprit=r"concret",
        at=("if float(loss)",),
    ),
    validity(
        "a static argument cannot be hashed",
        "low_rank",
        ("args=(params, x, 2)", "args=(params, x, [2])"),
        ("range(depth)", "range(depth[0])"),
        status="INVALID",
        culprit=r"hashable.*depth|depth.*hashable|unhashable|non-hashable static",
    ),
    memory(
        "the first moments are kept in float32",
        "adamw",
        ("optax.adamw(1e-3, mu_dtype=jnp.bfloat16)", "optax.adamw(1e-3)"),
        status="STALE_BASELINE",
        culprit=r"opt_state.*mu.*bfloat16.*float32",
    ),
)

_LAUNCHES = frozenset({"launches", "host_transfers", "traces", "compiles", "lowerings"})
HOST = (
    host(
        "the loss is read in every step",
        "host_loop",
        ("losses.append(loss)", "losses.append(float(loss))"),
        moves={"host_transfers"},
        at=("losses.append(float(loss))",),
    ),
    host(
        "each step is waited for",
        "host_loop",
        ("losses.append(loss)", "losses.append(loss.block_until_ready())"),
        moves={"host_waits"},
        culprit=r"^waits for the device in each call: jax\.Array\.block_until_ready 0 → 4 at",
        at=("loss.block_until_ready()",),
    ),
    host(
        "each step is timed",
        "host_loop",
        (
            "        params, loss = step(params, x, y)\n",
            "        begin = time.perf_counter()\n        params, loss = jax.block_until_ready(step(params, x, y))\n"
            "        took = time.perf_counter() - begin\n",
        ),
        ("import jax\n", "import time\n\nimport jax\n"),
        moves={"host_waits"},
        culprit=r"^waits for the device in each call: jax\._src\.api\.block_until_ready 0 → 4 at",
        at=("jax.block_until_ready(",),
    ),
    host(
        "prints of each step are waited for",
        "host_loop",
        ("losses.append(loss)", "losses.append(loss)\n        jax.effects_barrier()"),
        moves={"host_waits"},
        culprit=r"^waits for the device in each call: .*effects_barrier 0 → 4 at",
        at=("jax.effects_barrier()",),
    ),
    host(
        "each step gives another process time",
        "host_loop",
        ("losses.append(loss)", "losses.append(loss)\n        time.sleep(0)"),
        ("import jax\n", "import time\n\nimport jax\n"),
        moves={"host_waits"},
        culprit=r"^waits in each call: time\.sleep 0 → 4 at",
        at=("time.sleep(0)",),
    ),
    host(
        "each step is logged by a thread of its own",
        "host_loop",
        (
            "losses.append(loss)",
            "losses.append(loss)\n        threading.Thread(target=str, args=(loss.shape,)).start()",
        ),
        ("import jax\n", "import threading\n\nimport jax\n"),
        moves={"host_waits"},
        culprit=r"^waits in each call: threading\.Thread\.start 0 → 4 at",
        at=("threading.Thread(",),
    ),
    host(
        "the number of a step is a static argument",
        "host_loop",
        (
            "@jax.jit\ndef step(params, x, y)",
            '@functools.partial(jax.jit, static_argnames="number")\ndef step(params, x, y, number)',
        ),
        ("import jax\n", "import functools\n\nimport jax\n"),
        (
            "    for _ in range(STEPS):\n        params, loss = step(params, x, y)",
            "    for number in range(STEPS):\n        params, loss = step(params, x, y, number=number)",
        ),
        ("return params - RATE * grads, loss", "return params - RATE / (1 + number) * grads, loss"),
        moves={"program_variants"},
        culprit=r"^a program for each value of a static argument, or each shape: step 1 → 4 at",
        at=("loss = step(params, x, y, number=number)",),
    ),
    host(
        "batches are cut to other lengths",
        "host_loop",
        ("params, loss = step(params, x, y)", "params, loss = step(params, x[len(losses) :], y[len(losses) :])"),
        moves={"program_variants", "launches"},
        culprit=r"^(a program for each value of a static argument, or each shape: |programs started in a call: )",
    ),
    host(
        "an eager metric between the steps",
        "host_loop",
        ("losses.append(loss)", "losses.append(loss + 0.0 * jnp.sum(params**2))"),
        moves={"launches"},
        at=("losses.append(loss + 0.0",),
    ),
    host(
        "the losses of all steps are kept",
        "host_loop",
        ("def train(params", "LOSSES = []\n\n\ndef train(params"),
        ("    return params, losses[-1]", "    LOSSES.extend(losses)\n    return params, losses[-1]"),
        moves={"kept_arrays"},
        culprit=r"^each step leaves arrays behind: 4 × float32\[\], held by \S*LOSSES",
    ),
    host(
        "what is kept of each step is doubled first",
        "host_loop",
        ("def train(params", "LOSSES = []\n\n\ndef train(params"),
        ("    return params, losses[-1]", "    LOSSES.append(losses[-1] * 2.0)\n    return params, losses[-1]"),
        moves={"kept_arrays", "launches"},
        culprit=r"^each step leaves arrays behind: 1 × float32\[\], held by \S*LOSSES",
    ),
    host(
        "samples are sent one by one, and put together on the device",
        "host_loop",
        ("params, loss = step(params, x, y)", "params, loss = step(params, jnp.stack([*map(jax.device_put, x)]), y)"),
        moves={"launches", "host_transfers"},
        culprit=r"^moved between host and device in each call: \d+ for device_put at ",
    ),
    host(
        "the weights of each step stay in a table by their number",
        "host_loop",
        ("def train(params", "SEEN = {}\n\n\ndef train(params"),
        ("        losses.append(loss)", "        losses.append(loss)\n        SEEN[len(SEEN)] = params"),
        moves={"kept_arrays"},
        culprit=r"^each step leaves arrays behind: 4 × float32\[32,32\], held by \S*SEEN",
    ),
    host(
        "a function remembers the best weights, and all before them",
        "host_loop",
        ("def train(params", "def note(params, best=[]):  # noqa: B006\n    best.append(params)\n\n\ndef train(params"),
        ("        losses.append(loss)", "        losses.append(loss)\n        note(params)"),
        moves={"kept_arrays"},
        culprit=r"^each step leaves arrays behind: 4 × float32\[32,32\], held by ",
    ),
    host(
        "each step makes a function that calls itself and knows the weights",
        "host_loop",
        (
            "def train(params",
            "def averager(params):\n    def average(depth):\n        return average(depth - 1) if depth else params\n\n"
            "    return average\n\n\ndef train(params",
        ),
        ("        losses.append(loss)", "        averager(params)(1)\n        losses.append(loss)"),
        moves={"cyclic_objects", "cyclic_arrays"},
        culprit=r"^each step makes reference cycles, which only the collector frees: 4 × .*average",
        at=("def average(", "def averager("),
    ),
    host(
        "each step makes a tracker that knows itself and holds the weights",
        "host_loop",
        (
            "def train(params",
            "class Tracker:\n    def __init__(self, params):\n        self.of = {'me': self, 'params': params}\n\n\ndef train(params",
        ),
        ("        losses.append(loss)", "        losses.append(loss)\n        Tracker(params)"),
        moves={"cyclic_arrays"},
        culprit=r"^each step makes reference cycles, which only the collector frees: 4 × Tracker",
        at=("def __init__(self, params)",),
    ),
    host(
        "an error is kept in the frame that caught it",
        "host_loop",
        (
            "        losses.append(loss)",
            "        try:\n            float('a number')\n        except ValueError as error:\n            kept = error\n"
            "        losses.append(loss)",
        ),
        moves={"cyclic_objects", "cyclic_arrays"},
        culprit=r"^each step makes reference cycles, which only the collector frees: .*frame of train",
        at=("def train(",),
    ),
    host(
        "a function that calls itself is made in each step",
        "host_loop",
        (
            "def train(params",
            "def depth_of(tree):\n    def depth(tree):\n        return 1 + depth(tree[0]) if isinstance(tree, list) else 0\n\n"
            "    return depth(tree)\n\n\ndef train(params",
        ),
        ("        losses.append(loss)", "        depth_of([[loss]])\n        losses.append(loss)"),
        moves={"cyclic_objects"},
        culprit=r"^each step makes reference cycles, which only the collector frees: \d+ × function depth",
        at=("def depth(tree)",),
    ),
    host(
        "a plain function jits another one anew",
        "inference",
        ("subject=jax.jit(classify)", "subject=classify"),
        ("scores = scores_of(params, x)", "scores = jax.jit(lambda p, v: scores_of(p, v))(params, x)"),
        moves={"remade_jits"},
        culprit=r"no longer jitted by its own code|jitted anew at each call",
    ),
    host(
        "names are sorted in Python in every step",
        "host_loop",
        (
            "losses.append(loss)",
            "losses.append(loss)\n        sorted(map(str, range(100)), key=lambda name: name[::-1])",
        ),
        moves={"python_calls"},
        at=("key=lambda name",),
    ),
    host(
        "a function is jitted anew in every step",
        "host_loop",
        ("params, loss = step(params, x, y)", "params, loss = jax.jit(lambda p: step(p, x, y))(params)"),
        moves=_LAUNCHES,
        culprit=r"new function|<lambda>",
    ),
    host(
        "the parameters visit the host in every step",
        "host_loop",
        ("losses.append(loss)", "losses.append(loss)\n        params = np.asarray(params)"),
        moves={"host_transfers"},
        at=("params = np.asarray(params)", "params, loss = step(params"),
    ),
    host(
        "the function is left to whoever calls it",
        "inference",
        ("subject=jax.jit(classify)", "subject=classify"),
        moves={"jitted"},
        culprit=r"no longer jitted by its own code",
    ),
    host(
        "the step is no longer jitted",
        "host_loop",
        ("@jax.jit\ndef step", "def step"),
        moves={"launches"},
        at=("lambda p: jnp.mean(", "return params - RATE"),
    ),
)

FAULTS = (*RETRACES, *DONATION, *VALIDITY, *HOST)
