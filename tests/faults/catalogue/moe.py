"""Every expert for every token, experts and tokens that are sent where nobody needs them."""

from tests.faults.model import faults_of

fault = faults_of("workloads/moe.py")

SPREAD = "experts-on-8-devices-tokens-travel-vs-experts-gathered"

FAULTS = (
    fault(
        "every expert sees every token",
        "tokens-sorted-by-expert-vs-by-every-expert",
        ("subject=jax.jit(sorted_by_expert)", "subject=jax.jit(by_every_expert)"),
        moves={"matmul_flops"},
        culprit=r"^float32\[256,64\] x float32\[8,64,64\] 0 → 1",
    ),
    fault(
        "tokens are not sorted by their experts",
        "tokens-sorted-by-expert-vs-by-every-expert",
        ("order = jnp.argsort(of)", "order = jnp.arange(len(of))"),
        status="INVALID",
        culprit=r"subject gives .*reference",
    ),
    fault(
        "the experts are gathered on every device",
        SPREAD,
        ("subject=jax.jit(travelling)", "subject=jax.jit(gathered)"),
        moves={"collective_bytes"},
        culprit=r"all-gather float32\[1,64,64\]",
    ),
    fault(
        "tokens are gathered on their way back",
        SPREAD,
        (
            "return move(move(tokens) @ expert[0])",
            'found = jax.lax.all_gather(move(tokens) @ expert[0], "expert")\n        at = jax.lax.axis_index("expert")\n'
            "        parts = found.reshape(DEVICES, DEVICES, each, -1)\n        return parts[:, at].reshape(tokens.shape)",
        ),
        moves={"collective_bytes"},
        culprit=r"all-gather float32\[32,64\]",
    ),
)
