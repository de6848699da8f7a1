"""Loops that lose what a scan is for: one body, one carried state, one cache."""

from __future__ import annotations

from tests.faults.model import Fault

_RNN = "workloads/scan/rnn.py"
_LSTM = "workloads/scan/lstm.py"
_DECODE = "workloads/scan/decode.py"
_LOOPS = "workloads/scan/loops.py"

FAULTS = (
    Fault(
        name="a Python loop over time comes back",
        file=_RNN,
        case="rnn-forward-over-32-steps-scan-vs-loop",
        edits=(
            (
                "    last, _ = jax.lax.scan(lambda h, x: (cell(params, h, x), None), hidden, xs)\n    return last\n",
                "    for x in xs:\n        hidden = cell(params, hidden, x)\n    return hidden\n",
            ),
        ),
        moves=frozenset({"stablehlo_ops"}),
        culprit=r"loop|scan|while",
        at=("for x in xs:", "hidden = cell(params, hidden, x)", "return jnp.tanh(x @"),
    ),
    Fault(
        name="the loop is unrolled to its whole length",
        file=_RNN,
        case="rnn-over-64-steps-with-4-in-each-turn-vs-loop",
        edits=(("unroll=copies)", "unroll=xs.shape[0])"),),
        moves=frozenset({"stablehlo_ops"}),
        at=("unroll=xs.shape[0]", "return jnp.tanh(x @"),
    ),
    Fault(
        name="the states of all steps are kept to return the last one",
        file=_LSTM,
        case="lstm-forward-in-float32-over-32-steps-scan-vs-loop",
        edits=(
            (
                "        state, _ = turns(lambda state, x: (cell(params, state, x), None), state, xs)\n        return state\n",
                "        _, states = turns(lambda state, x: (cell(params, state, x),) * 2, state, xs)\n"
                "        return jax.tree.map(lambda leaf: leaf[-1], states)\n",
            ),
        ),
        moves=frozenset({"temp_bytes"}),
        culprit=r"32,8,32|32x8x32|dynamic_update_slice|dynamic-update-slice",
    ),
    Fault(
        name="what is carried is widened so that the types fit",
        file=_LSTM,
        case="lstm-forward-in-bfloat16-over-32-steps-scan-vs-loop",
        edits=(
            ('"hidden": hidden.astype(x.dtype)', '"hidden": hidden'),
            ("None), state, xs)", 'None), jax.tree.map(lambda leaf: leaf.astype("float32"), state), xs)'),
        ),
        moves=frozenset({"traces"}),
        # Either says it: 0.10.2 explains more of what is red by the retrace, 0.12 by what meets the wider state.
        culprit=r"wider floats: bfloat16\[\d+,128\] → float32 0 → 32|step 2 retraced: state\['hidden'\]: bfloat16",
    ),
    Fault(
        name="the position comes back as a Python number",
        file=_DECODE,
        case="decode-of-one-token-with-its-cache-donated-vs-copied",
        edits=(
            (
                "return (cache, token, position + 1), token\n\n\ndef single",
                "return (cache, token, 65), token\n\n\ndef single",
            ),
        ),
        moves=frozenset({"traces"}),
        culprit=r"step 2 retraced: position",
    ),
    Fault(
        name="the cache grows with every token",
        file=_DECODE,
        case="decode-of-one-token-with-its-cache-donated-vs-copied",
        edits=(
            (
                "    return jax.lax.dynamic_update_slice_in_dim(cached, new[:, :, None], slot, axis=2)\n",
                "    del slot\n    return jnp.concatenate([cached, new[:, :, None]], axis=2)\n",
            ),
            ("jnp.where(jnp.arange(context) <= position, scores, -1e9)", "scores"),
        ),
        moves=frozenset({"traces"}),
        culprit=r"step 2 retraced: cache\[0\]\['keys'\]: float32\[4,2,128,16\] → float32\[4,2,129,16\]",
    ),
    Fault(
        name="the whole cache is rewritten for each token",
        file=_DECODE,
        case="decode-of-one-token-with-its-cache-donated-vs-copied",
        edits=(
            (
                "    return jax.lax.dynamic_update_slice_in_dim(cached, new[:, :, None], slot, axis=2)\n",
                "    here = (jnp.arange(cached.shape[2]) == slot)[:, None]\n    return jnp.where(here, new[:, :, None], cached)\n",
            ),
        ),
        moves=frozenset({"xla_bytes", "xla_flops", "temp_bytes"}),
        at=("return jnp.where(here", "here = (jnp.arange"),
    ),
    Fault(
        name="the whole text is read again for each token",
        file=_DECODE,
        case="decode-of-16-tokens-in-a-scan-with-cache-vs-reading-all-again",
        edits=(
            ("subject=jax.jit(partial(with_cache, size=size))", "subject=jax.jit(partial(without_cache, size=size))"),
        ),
        moves=frozenset({"matmul_flops"}),
        culprit=r"float32\[4,16,32\]",
    ),
    Fault(
        name="noise is drawn once and compiled in",
        file=_LOOPS,
        case="denoising-over-16-steps-scan-vs-loop",
        edits=(
            (
                "jax.random.normal(key, x.shape)",
                "np.random.default_rng(7).standard_normal(x.shape).astype(np.float32)",
            ),
        ),
        moves=frozenset({"constant_bytes"}),
        culprit=r"16x32xf32 \(2,048 bytes\)",
        at=("default_rng(7)",),
    ),
    Fault(
        name="noise comes from Python",
        file=_LOOPS,
        case="denoising-over-16-steps-scan-vs-loop",
        edits=(("jax.random.normal(key, x.shape)", "np.random.standard_normal(x.shape).astype(np.float32)"),),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    Fault(
        name="the fixed point is iterated to the limit",
        file=_LOOPS,
        case="fixed-point-by-while-loop-vs-24-unrolled-steps",
        edits=(
            (
                "    found, _, _ = jax.lax.while_loop(moving, move, (x, jnp.float32(jnp.inf), jnp.int32(0)))\n    return found\n",
                "    return jax.lax.fori_loop(0, LIMIT, lambda _, x: step(x), x)\n",
            ),
        ),
        status="INVALID",
        culprit=r"matmul_flops 2\.1 MFLOP against 32\.8 kFLOP .* loop of unknown length",
    ),
    Fault(
        name="the gradient goes back through every step",
        file=_LOOPS,
        case="gradient-of-a-fixed-point-vs-24-unrolled-steps",
        edits=(("train_step(implicit)", "train_step(unrolled)"),),
        status="INVALID",
        culprit=r"matmul_flops 2\.33 MFLOP against 131 kFLOP .* loop of unknown length",
    ),
    Fault(
        name="the recurrence takes one step after the other",
        file="workloads/scan/recurrence.py",
        case="linear-recurrence-over-64-steps-associative-vs-sequential",
        edits=(("subject = jax.jit(at_once)", "subject = jax.jit(one_by_one)"),),
        moves=frozenset({"stablehlo_ops"}),
        culprit=r"while|scan",
    ),
)
