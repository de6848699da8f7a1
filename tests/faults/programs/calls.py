"""Faults of calls: retraces, donation, results that must not be judged, plain Python around jitted steps."""

from __future__ import annotations

from tests.faults.model import Fault

_TRACES = frozenset({"traces", "compiles", "lowerings"})
_DONATED = frozenset({"donated_bytes", "aliased_bytes", "lost_bytes"})
_SGD_RETURN = 'return {"params": params, "velocity": velocity, "scale": scale}, loss'
_SGD_NEXT = "next_args=lambda result, args: (result[0], args[1], args[2], args[3] + 1),"

RETRACES = (
    Fault(
        name="the velocity comes back in another dtype",
        kind="retrace",
        case="mlp_sgd",
        edits=(
            (
                "velocity = jax.tree.map(lambda v, g: DECAY * v + g,",
                "velocity = jax.tree.map(lambda v, g: (DECAY * v + g).astype(jnp.bfloat16),",
            ),
        ),
        moves=_TRACES,
        culprit=r"state\['velocity'\]\[0\]\['bias'\]: float32\[64\] → bfloat16\[64\]",
    ),
    Fault(
        name="the loss scale is reset by a Python number",
        kind="retrace",
        case="mlp_sgd",
        edits=((_SGD_RETURN, 'return {"params": params, "velocity": velocity, "scale": 1.0}, loss'),),
        moves=_TRACES,
        culprit=r"state\['scale'\].*weak",
    ),
    Fault(
        name="the step's number is counted in Python",
        kind="retrace",
        case="mlp_sgd",
        edits=((_SGD_NEXT, "next_args=lambda result, args: (result[0], args[1], args[2], int(args[3]) + 1),"),),
        moves=_TRACES,
        culprit=r"count: int32\[\] → Python int",
    ),
    Fault(
        name="the last batch is ragged",
        kind="retrace",
        case="mlp_sgd",
        edits=((_SGD_NEXT, "next_args=lambda result, args: (result[0], args[1][:-5], args[2][:-5], args[3] + 1),"),),
        moves=_TRACES,
        culprit=r"\bx: float32\[32,64\] → float32\[27,64\]",
    ),
    Fault(
        name="the state gains a key in the first step",
        kind="retrace",
        case="mlp_sgd",
        edits=(
            (_SGD_RETURN, 'return {"params": params, "velocity": velocity, "scale": scale, "last_loss": loss}, loss'),
        ),
        moves=_TRACES,
        culprit=r"state\['last_loss'\]",
    ),
    Fault(
        name="a list of layers comes back as a tuple",
        kind="retrace",
        case="mlp_sgd",
        edits=((_SGD_RETURN, 'return {"params": tuple(params), "velocity": tuple(velocity), "scale": scale}, loss'),),
        moves=_TRACES,
        culprit=r"state\['params'\].*(list.*tuple|tuple)",
    ),
    Fault(
        name="the batch is committed to a device after the first step",
        kind="retrace",
        case="mlp_sgd",
        edits=(
            (
                _SGD_NEXT,
                "next_args=lambda result, args: (result[0], jax.device_put(args[1], jax.devices()[0]), args[2], args[3] + 1),",
            ),
        ),
        moves=_TRACES,
        culprit=r"\bx: .*committed",
    ),
    Fault(
        name="the cache grows by concatenation",
        kind="retrace",
        case="decode",
        edits=(
            (
                'keys = jax.lax.dynamic_update_slice(cache["keys"], key[:, None], (0, position, 0))',
                'keys = jnp.concatenate([cache["keys"], key[:, None]], axis=1)',
            ),
            (
                'values = jax.lax.dynamic_update_slice(cache["values"], value[:, None], (0, position, 0))',
                'values = jnp.concatenate([cache["values"], value[:, None]], axis=1)',
            ),
        ),
        moves=_TRACES,
        culprit=r"cache\['keys'\]: float32\[4,32,32\] → float32\[4,33,32\]",
    ),
    Fault(
        name="a static argument takes another value each step",
        kind="retrace",
        case="low_rank",
        edits=(("(args[0], result, args[2]))", "(args[0], result, args[2] + 1))"),),
        moves=_TRACES,
        culprit=r"depth: .*2.*→.*3",
    ),
    Fault(
        name="the parameters come back in another layout",
        kind="retrace",
        case="tensor_parallel",
        edits=(
            (
                "subject=jax.jit(make_step(mesh), donate_argnums=0, out_shardings=(layout, None)),",
                "subject=jax.jit(make_step(mesh), donate_argnums=0, out_shardings=(NamedSharding(mesh, P()), None)),",
            ),
        ),
        moves=_TRACES,
        culprit=r"\['down'\].*shard",
    ),
)

DONATION = (
    Fault(
        name="donation is dropped",
        kind="donation",
        case="mlp_sgd",
        edits=(("jax.jit(step, donate_argnums=0)", "jax.jit(step)"),),
        moves=_DONATED,
        culprit=r"donated.*state\[",
    ),
    Fault(
        name="the optimiser's state is no longer donated",
        kind="donation",
        case="adamw",
        edits=(("donate_argnums=(0, 1)", "donate_argnums=0"),),
        moves=_DONATED,
        culprit=r"donated.*opt_state\[",
    ),
    Fault(
        name="a donated batch comes back in another dtype",
        kind="donation",
        case="preprocess",
        edits=(("return centred * scale", "return (centred * scale).astype(jax.numpy.bfloat16)"),),
        moves=_DONATED,
        culprit=r"donated.*images.*float32.*bfloat16|donated.*images.*dtype",
    ),
    Fault(
        name="a donated batch comes back cropped",
        kind="donation",
        case="preprocess",
        edits=(("return centred * scale", "return (centred * scale)[:, 2:-2, 2:-2]"),),
        moves=_DONATED,
        culprit=r"donated.*images.*(shape|28)",
    ),
    Fault(
        name="the donated velocity is not read any more",
        kind="donation",
        case="mlp_sgd",
        edits=(("DECAY * v + g", "g"),),
        moves=_DONATED,
        culprit=r"donated.*state\['velocity'\].*unused|state\['velocity'\].*unused",
    ),
    Fault(
        name="velocity starts as the parameters themselves: one buffer donated twice",
        kind="donation",
        case="mlp_sgd",
        edits=(("velocity = jax.tree.map(jnp.zeros_like, params)", "velocity = params"),),
        status="INVALID",
        culprit=r"state\['params'\].*state\['velocity'\]|state\['velocity'\].*state\['params'\]",
    ),
)

VALIDITY = (
    Fault(
        name="samples that do not fill a multiple of eight are cut off",
        kind="validity",
        case="inference",
        edits=(
            ("scores = scores_of(params, x)\n", "x = x[: x.shape[0] // 8 * 8]\n    scores = scores_of(params, x)\n"),
        ),
        status="INVALID",
        culprit=r"sample 59 of 60",
    ),
    Fault(
        name="the psum of the gradients is forgotten",
        kind="validity",
        case="data_parallel",
        edits=(('jax.lax.psum(g, "data") / DEVICES', "g"),),
        status="INVALID",
        culprit=r"result\['first'\].*reference",
    ),
    Fault(
        name="the pmean of a pmap is forgotten",
        kind="validity",
        case="pmap_step",
        edits=(('    grads = jax.lax.pmean(grads, "data")\n', ""),),
        status="INVALID",
        culprit=r"result.*reference",
    ),
    Fault(
        name="the logarithm of a softmax runs into not-a-number",
        kind="validity",
        case="inference",
        edits=(("sure = jnp.max(jax.nn.softmax(scores), axis=-1)", "sure = jnp.max(jnp.log(scores), axis=-1)"),),
        status="INVALID",
        culprit=r"NaN.*result\[1\]",
    ),
    Fault(
        name="the probabilities are repeated once too often: elements, not samples",
        kind="validity",
        case="inference",
        edits=(("return best, sure", "return best, jnp.tile(sure, 1 << 44)"),),
        status="RESOURCE_EXHAUSTED",
        culprit=r"asked for \d.*PB",
    ),
    Fault(
        name="Python asks for the value of a traced number",
        kind="validity",
        case="mlp_sgd",
        edits=(
            (
                "    rate = RATE /",
                "    if float(loss) > 100.0:\n        grads = jax.tree.map(jnp.zeros_like, grads)\n    rate = RATE /",
            ),
        ),
        status="INVALID",
        culprit=r"concret",
        at=("if float(loss)",),
    ),
    Fault(
        name="a static argument cannot be hashed",
        kind="validity",
        case="low_rank",
        edits=(("args=(params, x, 2)", "args=(params, x, [2])"), ("range(depth)", "range(depth[0])")),
        status="INVALID",
        culprit=r"hashable.*depth|depth.*hashable|unhashable|non-hashable static",
    ),
    Fault(
        name="the first moments are kept in float32",
        kind="memory",
        case="adamw",
        edits=(("optax.adamw(1e-3, mu_dtype=jnp.bfloat16)", "optax.adamw(1e-3)"),),
        status="STALE_BASELINE",
        culprit=r"opt_state.*mu.*bfloat16.*float32",
    ),
)

_LAUNCHES = frozenset({"launches", "host_transfers", "traces", "compiles", "lowerings"})
HOST = (
    Fault(
        name="the loss is read in every step",
        kind="host",
        case="host_loop",
        edits=(("losses.append(loss)", "losses.append(float(loss))"),),
        moves=frozenset({"host_transfers"}),
        at=("losses.append(float(loss))",),
    ),
    Fault(
        name="an eager metric between the steps",
        kind="host",
        case="host_loop",
        edits=(("losses.append(loss)", "losses.append(loss + 0.0 * jnp.sum(params**2))"),),
        moves=frozenset({"launches"}),
        at=("losses.append(loss + 0.0",),
    ),
    Fault(
        name="a function is jitted anew in every step",
        kind="host",
        case="host_loop",
        edits=(("params, loss = step(params, x, y)", "params, loss = jax.jit(lambda p: step(p, x, y))(params)"),),
        moves=_LAUNCHES,
        culprit=r"new function|<lambda>",
    ),
    Fault(
        name="the parameters visit the host in every step",
        kind="host",
        case="host_loop",
        edits=(("losses.append(loss)", "losses.append(loss)\n        params = np.asarray(params)"),),
        moves=frozenset({"host_transfers"}),
        at=("params = np.asarray(params)", "params, loss = step(params"),
    ),
    Fault(
        name="the step is no longer jitted",
        kind="host",
        case="host_loop",
        edits=(("@jax.jit\ndef step", "def step"),),
        moves=frozenset({"launches"}),
        at=("lambda p: jnp.mean(", "return params - RATE"),
    ),
)

FAULTS = (*RETRACES, *DONATION, *VALIDITY, *HOST)
