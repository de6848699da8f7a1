"""Loops that lose what a scan is for: one body, one carried state, one cache."""

from tests.faults.model import faults_of

rnn = faults_of("workloads/scan/rnn.py")
lstm = faults_of("workloads/scan/rnn.py")
decode = faults_of("workloads/scan/decode.py")
loops = faults_of("workloads/scan/loops.py")
recurrence = faults_of("workloads/scan/loops.py")

FAULTS = (
    rnn(
        "a Python loop over time comes back",
        "rnn-forward-over-32-steps-scan-vs-loop",
        (
            "    last, _ = jax.lax.scan(lambda h, x: (cell(params, h, x), None), hidden, xs)\n    return last\n",
            "    for x in xs:\n        hidden = cell(params, hidden, x)\n    return hidden\n",
        ),
        moves={"stablehlo_ops"},
        culprit=r"loop|scan|while",
        at=("for x in xs:", "hidden = cell(params, hidden, x)", "return jnp.tanh(x @"),
    ),
    rnn(
        "the loop is unrolled to its whole length",
        "rnn-over-64-steps-with-4-in-each-turn-vs-loop",
        ("unroll=copies)", "unroll=xs.shape[0])"),
        moves={"stablehlo_ops"},
        at=("unroll=xs.shape[0]", "return jnp.tanh(x @"),
    ),
    lstm(
        "the states of all steps are kept to return the last one",
        "lstm-forward-in-float32-over-32-steps-scan-vs-loop",
        (
            "        state, _ = turns(lambda state, x: (lstm_cell(params, state, x), None), state, xs)\n        return state\n",
            "        _, states = turns(lambda state, x: (lstm_cell(params, state, x),) * 2, state, xs)\n"
            "        return jax.tree.map(lambda leaf: leaf[-1], states)\n",
        ),
        moves={"temp_bytes"},
        culprit=r"32,8,32|32x8x32|dynamic_update_slice|dynamic-update-slice",
    ),
    lstm(
        "what is carried is widened so that the types fit",
        "lstm-forward-in-bfloat16-over-32-steps-scan-vs-loop",
        ('"hidden": hidden.astype(x.dtype)', '"hidden": hidden'),
        ("None), state, xs)", 'None), jax.tree.map(lambda leaf: leaf.astype("float32"), state), xs)'),
        moves={"traces"},
        # Either says it: 0.10.2 explains more of what is red by the retrace, 0.12 by what meets the wider state.
        culprit=r"wider floats: bfloat16\[\d+,128\] → float32 0 → 32|step 2 retraced: state\['hidden'\]: bfloat16",
    ),
    decode(
        "the position comes back as a Python number",
        "decode-of-one-token-with-its-cache-donated-vs-copied",
        ("return (cache, token, position + 1), token\n\n\n@CASES", "return (cache, token, 65), token\n\n\n@CASES"),
        moves={"traces"},
        culprit=r"step 2 retraced: position",
    ),
    decode(
        "the cache grows with every token",
        "decode-of-one-token-with-its-cache-donated-vs-copied",
        (
            "    return jax.lax.dynamic_update_slice_in_dim(cached, new[:, :, None], slot, axis=2)\n",
            "    del slot\n    return jnp.concatenate([cached, new[:, :, None]], axis=2)\n",
        ),
        ("jnp.where(jnp.arange(context) <= position, scores, -1e9)", "scores"),
        moves={"traces"},
        culprit=r"step 2 retraced: cache\[0\]\['keys'\]: float32\[4,2,128,16\] → float32\[4,2,129,16\]",
    ),
    decode(
        "the whole cache is rewritten for each token",
        "decode-of-one-token-with-its-cache-donated-vs-copied",
        (
            "    return jax.lax.dynamic_update_slice_in_dim(cached, new[:, :, None], slot, axis=2)\n",
            "    here = (jnp.arange(cached.shape[2]) == slot)[:, None]\n    return jnp.where(here, new[:, :, None], cached)\n",
        ),
        moves={"xla_bytes", "xla_flops", "temp_bytes"},
        at=("return jnp.where(here", "here = (jnp.arange"),
    ),
    decode(
        "the whole text is read again for each token",
        "decode-of-16-tokens-in-a-scan-with-cache-vs-reading-all-again",
        ("subject=jax.jit(partial(with_cache, size=size))", "subject=jax.jit(partial(without_cache, size=size))"),
        moves={"matmul_flops"},
        culprit=r"float32\[4,16,32\]",
    ),
    loops(
        "noise is drawn once and compiled in",
        "denoising-over-16-steps-scan-vs-loop",
        ("jax.random.normal(key, x.shape)", "np.random.default_rng(7).standard_normal(x.shape).astype(np.float32)"),
        moves={"constant_bytes"},
        culprit=r"16x32xf32 \(2,048 bytes\)",
        at=("default_rng(7)",),
    ),
    loops(
        "noise comes from Python",
        "denoising-over-16-steps-scan-vs-loop",
        ("jax.random.normal(key, x.shape)", "np.random.standard_normal(x.shape).astype(np.float32)"),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    loops(
        "the fixed point is iterated to the limit",
        "fixed-point-by-while-loop-vs-24-unrolled-steps",
        (
            "    found, _, _ = jax.lax.while_loop(moving, move, (x, jnp.float32(jnp.inf), jnp.int32(0)))\n    return found\n",
            "    return jax.lax.fori_loop(0, LIMIT, lambda _, x: step(x), x)\n",
        ),
        status="INVALID",
        culprit=r"matmul_flops 2\.1 MFLOP against 32\.8 kFLOP .* loop of unknown length",
    ),
    loops(
        "the gradient goes back through every step",
        "gradient-of-a-fixed-point-vs-24-unrolled-steps",
        ("train_step(implicit)", "train_step(unrolled)"),
        status="INVALID",
        culprit=r"matmul_flops 2\.33 MFLOP against 131 kFLOP .* loop of unknown length",
    ),
    recurrence(
        "the recurrence takes one step after the other",
        "linear-recurrence-over-64-steps-associative-vs-sequential",
        ("subject = jax.jit(at_once)", "subject = jax.jit(one_by_one)"),
        moves={"stablehlo_ops"},
        culprit=r"while|scan|dynamic_update_slice 64x4x8xf32",
    ),
)
