"""A program for each length, a cache that is copied or grows, tokens fetched one by one."""

from tests.faults.model import faults_of

fault = faults_of("workloads/serving.py")

TEXTS = "texts-in-two-buckets-and-a-cache-with-slots-vs-read-again-for-each-token"
TOKEN = "a-token-of-each-slot-with-a-donated-cache-vs-copied"

FAULTS = (
    fault(
        "each text is read in its own shape",
        TEXTS,
        ("text = np.zeros(bucket_of(length, size.longest), np.int32)", "text = np.zeros(length, np.int32)"),
        moves={"traces", "compiles"},
        culprit=r"step 2 retraced: prefill: text: int32\[\d+\] → int32\[\d+\]",
    ),
    fault(
        "each token is fetched before the next one",
        TEXTS,
        ("            said.append(token)\n", "            said.append(np.asarray(token))\n"),
        moves={"host_transfers", "host_reads"},
        culprit=r"moved between host and device in each call|read",
    ),
    fault(
        "the cache is copied for each token",
        TOKEN,
        ("subject=jax.jit(decode, donate_argnums=1)", "subject=jax.jit(decode)"),
        moves={"donated_bytes", "aliased_bytes"},
        culprit=r"no longer donated: cache",
    ),
    fault(
        "a token attends in bfloat16 to a cache that is widened again",
        TOKEN,
        (
            'scores = exactly("sw,slw->sl", exactly("sw,wv->sv", x, params["query"]), cache["key"])',
            'keys = cache["key"].astype(jnp.bfloat16).astype(jnp.float32)\n'
            '    scores = exactly("sw,slw->sl", exactly("sw,wv->sv", x, params["query"]), keys)',
        ),
        moves={"widened_bytes"},
        culprit=r"wider floats: bfloat16\[4,32,32\] → float32 0 → 1",
    ),
)
