"""Shapes, static arguments and Python numbers that make a new program of each call, and padding that is counted or cut."""

from __future__ import annotations

from tests.faults.model import Fault

_ENCODER = "workloads/shapes/encoder.py"
_PADDED = "workloads/shapes/padded.py"
_RAGGED = "workloads/shapes/ragged.py"
_BATCHES = "workloads/shapes/batches.py"
_ARGUMENTS = "workloads/shapes/arguments.py"

FAULTS = (
    Fault(
        name="batches come in their own shapes",
        file=_PADDED,
        case="ragged-batches-padded-to-2-shapes-vs-one",
        edits=(("2: (1 / 2, 1)", "2: (3 / 8, 5 / 8, 1)"), ("expected_traces=len({", "expected_traces=2 or len({")),
        moves=frozenset({"traces"}),
        culprit=r"step 2 retraced: tokens: int32\[6,24\] → int32\[6,40\]",
    ),
    Fault(
        name="everything is padded to the longest text of all",
        file=_PADDED,
        case="ragged-batches-padded-to-2-shapes-vs-one",
        edits=(
            ("return min(bucket for bucket in buckets if bucket >= length)", "return max(buckets)"),
            ("expected_traces=len({", "expected_traces=1 or len({"),
        ),
        moves=frozenset({"matmul_flops"}),
        culprit=r"6,64,32",
    ),
    Fault(
        name="the mean is taken over the padding, too",
        file=_PADDED,
        case="ragged-batches-padded-to-2-shapes-vs-one",
        edits=(("jax.jit(train_step(encode)", "jax.jit(train_step(lambda p, t, n: encode(p, t, 0 * n + t.shape[1]))"),),
        status="INVALID",
        culprit=r"subject gives .*, reference",
    ),
    Fault(
        name="texts are cut at the length of the bucket",
        file=_RAGGED,
        case="ragged-texts-padded-by-the-host-to-1-shapes-vs-one-by-one",
        edits=(
            (
                "    tokens = np.zeros((rows, length), np.int32)\n",
                "    tokens = np.zeros((rows, length), np.int32)\n    texts = [text[: length // 2] for text in texts]\n",
            ),
        ),
        status="INVALID",
        culprit=r"sample \d+ of \d+ does not influence the result",
    ),
    Fault(
        name="a bucket has as many rows as it has texts",
        file=_RAGGED,
        case="ragged-texts-padded-by-the-host-to-2-shapes-vs-one-by-one",
        edits=(
            ("fill([texts[i] for i in chunk], rows, length)", "fill([texts[i] for i in chunk], len(chunk), length)"),
        ),
        moves=frozenset({"traces"}),
        culprit=r"step 2 retraced: encode: tokens: int32\[3,\d+\] → int32\[2,32\]",
        at=("parts.append((score(params, *fill(",),
    ),
    Fault(
        name="each text is scored by itself",
        file=_RAGGED,
        case="ragged-texts-padded-by-the-host-to-1-shapes-vs-one-by-one",
        edits=(("subject=in_buckets(score, rows_of)", "subject=in_buckets(score, dict.fromkeys(rows_of, 1))"),),
        moves=frozenset({"launches", "host_transfers"}),
        culprit=r"encode",
        at=("parts.append((score(params, *fill(",),
    ),
    Fault(
        name="the last batch is left short",
        file=_BATCHES,
        case="last-batch-filled-up-vs-left-short",
        edits=(("subject=over_batches(size.batch, filled_up)", "subject=over_batches(size.batch, left_short)"),),
        moves=frozenset({"traces"}),
        culprit=r"step 2 retraced: error_sum: x: float32\[4,64\] → float32\[16,64\]",
        at=("total = add(params,",),
    ),
    Fault(
        name="the last batch is dropped",
        file=_BATCHES,
        case="last-batch-filled-up-vs-left-short",
        edits=(("range(0, len(x), batch)", "range(0, len(x) - batch + 1, batch)"),),
        status="INVALID",
        culprit=r"sample 99 of 100 does not influence the result",
    ),
    Fault(
        name="a number that changes is static",
        file=_ARGUMENTS,
        case="rate-as-an-argument-vs-static",
        edits=(
            (
                "subject=jax.jit(step, donate_argnums=0)",
                'subject=jax.jit(step, donate_argnums=0, static_argnames="rate")',
            ),
        ),
        moves=frozenset({"traces"}),
        culprit=r"step 2 retraced: rate: static 0\.1 → static 0\.099",
    ),
    Fault(
        name="the rate is a Python number first, then an array",
        file=_ARGUMENTS,
        case="rate-as-an-argument-vs-static",
        edits=(("0.99 * args[3])", "jax.device_put(np.float32(0.99 * args[3])))"),),
        moves=frozenset({"traces"}),
        culprit=r"step 2 retraced: rate: Python float \(weak type\) → float32\[\]",
    ),
    Fault(
        name="the state starts with a Python number",
        file=_ARGUMENTS,
        case="rate-as-an-argument-vs-static",
        edits=(("average = jax.device_put(np.float32(0))", "average = 0.0"),),
        status="INVALID",
        culprit=r"state\['average'\] is donated, but a float was given",
    ),
    Fault(
        name="a scalar of float32 widens what it multiplies",
        file=_ARGUMENTS,
        case="bfloat16-scaled-by-a-python-number-vs-a-float32-scalar",
        edits=(("lambda p: p * factor, params)", "lambda p: (p * jnp.float32(factor)).astype(p.dtype), params)"),),
        moves=frozenset({"widened_bytes"}),
        culprit=r"wider floats: .*bfloat16\[64,64\] → float32",
        at=("lambda p: (p * jnp.float32(factor)).astype(p.dtype), params)",),
    ),
)
