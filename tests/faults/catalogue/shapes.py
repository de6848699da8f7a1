"""Shapes, static arguments and Python numbers that make a new program of each call, and padding that is counted or cut."""

from tests.faults.model import faults_of

padded = faults_of("workloads/shapes/texts.py")
ragged = faults_of("workloads/shapes/texts.py")
batches = faults_of("workloads/shapes/values.py")
arguments = faults_of("workloads/shapes/values.py")

FAULTS = (
    padded(
        "batches come in their own shapes",
        "ragged-batches-padded-to-2-shapes-vs-one",
        ("BUCKETS = (1 / 2, 1)", "BUCKETS = (3 / 8, 5 / 8, 1)"),
        ("expected_traces=len({", "expected_traces=2 or len({"),
        moves={"traces"},
        culprit=r"step [23] retraced: tokens: int32\[6,(24|40)\] → int32\[6,(40|64)\]",
    ),
    padded(
        "everything is padded to the longest text of all",
        "ragged-batches-padded-to-2-shapes-vs-one",
        ("return min(bucket for bucket in buckets if bucket >= length)", "return max(buckets)"),
        ("expected_traces=len({", "expected_traces=1 or len({"),
        moves={"matmul_flops"},
        culprit=r"6,64,32",
    ),
    padded(
        "the mean is taken over the padding, too",
        "ragged-batches-padded-to-2-shapes-vs-one",
        ("jax.jit(train_step(encode)", "jax.jit(train_step(lambda p, t, n: encode(p, t, 0 * n + t.shape[1]))"),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    ragged(
        "texts are cut at the length of the bucket",
        "ragged-texts-padded-by-the-host-to-1-shapes-vs-one-by-one",
        (
            "    tokens = np.zeros((rows, length), np.int32)\n",
            "    tokens = np.zeros((rows, length), np.int32)\n    texts = [text[: length // 2] for text in texts]\n",
        ),
        status="INVALID",
        culprit=r"sample \d+ of \d+ does not influence the result",
    ),
    ragged(
        "a bucket has as many rows as it has texts",
        "ragged-texts-padded-by-the-host-to-2-shapes-vs-one-by-one",
        ("fill([texts[i] for i in chunk], rows, length)", "fill([texts[i] for i in chunk], len(chunk), length)"),
        moves={"traces"},
        culprit=r"step 2 retraced: encode: tokens: int32\[3,\d+\] → int32\[2,32\]",
        at=("parts.append((score(params, *fill(",),
    ),
    ragged(
        "each text is scored by itself",
        "ragged-texts-padded-by-the-host-to-1-shapes-vs-one-by-one",
        ("subject=in_buckets(score, rows_of)", "subject=in_buckets(score, dict.fromkeys(rows_of, 1))"),
        moves={"launches", "host_transfers"},
        culprit=r"encode",
        at=("parts.append((score(params, *fill(",),
    ),
    batches(
        "the last batch is left short",
        "last-batch-filled-up-vs-left-short",
        ("subject=over_batches(size.batch, filled_up)", "subject=over_batches(size.batch, left_short)"),
        moves={"traces"},
        culprit=r"step 2 retraced: error_sum: x: float32\[4,64\] → float32\[16,64\]",
        at=("total = add(params,",),
    ),
    batches(
        "the last batch is dropped",
        "last-batch-filled-up-vs-left-short",
        ("range(0, len(x), batch)", "range(0, len(x) - batch + 1, batch)"),
        status="INVALID",
        culprit=r"sample 99 of 100 does not influence the result",
    ),
    arguments(
        "a number that changes is static",
        "rate-as-an-argument-vs-static",
        ("subject=jax.jit(step, donate_argnums=0)", 'subject=jax.jit(step, donate_argnums=0, static_argnames="rate")'),
        moves={"traces"},
        culprit=r"step 2 retraced: rate: static 0\.1 → static 0\.099",
    ),
    arguments(
        "the rate is a Python number first, then an array",
        "rate-as-an-argument-vs-static",
        ("0.99 * args[3])", "jax.device_put(np.float32(0.99 * args[3])))"),
        moves={"traces"},
        culprit=r"step 2 retraced: rate: Python float \(weak type\) → float32\[\]",
    ),
    arguments(
        "the state starts with a Python number",
        "rate-as-an-argument-vs-static",
        ("average = jax.device_put(np.float32(0))", "average = 0.0"),
        moves={"traces"},
        culprit=r"step 2 retraced: state\['average'\]: Python float",
    ),
    arguments(
        "a scalar of float32 widens what it multiplies",
        "bfloat16-scaled-by-a-python-number-vs-a-float32-scalar",
        ("lambda p: p * factor, params)", "lambda p: (p * jnp.float32(factor)).astype(p.dtype), params)"),
        moves={"widened_bytes"},
        culprit=r"wider floats: .*bfloat16\[64,64\] → float32",
        at=("lambda p: (p * jnp.float32(factor)).astype(p.dtype), params)",),
    ),
)
