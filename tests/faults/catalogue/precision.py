"""Numbers with too few bits, and numbers with more than anybody asked for."""

from tests.faults.model import faults_of

products = faults_of("workloads/precision.py")
chains = faults_of("workloads/precision.py")
training = faults_of("workloads/precision.py")

_ALIKE = "float32-products-in-full-by-argument-vs-by-setting"
_SUMMED = "bfloat16-product-summed-in-float32-vs-widened-first"
_MIXED = "bfloat16-step-with-float32-state-vs-float32"
_DISAGREE = r"subject gives .*, reference"

FAULTS = (
    products(
        "one side multiplies in TF32",
        _ALIKE,
        (
            'jnp.matmul(x, layer["kernel"], precision=HIGHEST)',
            'jnp.matmul(*(jax.lax.reduce_precision(a, 8, 10) for a in (x, layer["kernel"])), precision=HIGHEST)',
        ),
        status="INVALID",
        culprit=_DISAGREE,
    ),
    products(
        "TF32 is asked for where there is none",
        _ALIKE,
        (
            'jnp.matmul(x, layer["kernel"], precision=HIGHEST)',
            'jnp.matmul(x, layer["kernel"], precision="TF32_TF32_F32")',
        ),
        status="INVALID",
        culprit=r"'TF32_TF32_F32' is not supported",
    ),
    products(
        "operands are widened for the sake of the sum",
        _SUMMED,
        (
            "jnp.matmul(x, kernel, preferred_element_type=jnp.float32)",
            "jnp.matmul(x.astype(jnp.float32), kernel.astype(jnp.float32))",
        ),
        moves={"widened_bytes"},
        culprit=r"wider floats: bfloat16\[128,128\] → float32",
        at=("jnp.matmul(x.astype(jnp.float32), kernel.astype(jnp.float32))",),
    ),
    chains(
        "a NumPy number stands in a bfloat16 chain",
        "bfloat16-chain-with-python-numbers-vs-typed-ones",
        ("import math\n", "import math\n\nimport numpy as np\n"),
        ("/ math.sqrt(2.0) + layer", "/ np.sqrt(2.0) + layer"),
        moves={"widened_bytes"},
        culprit=r"wider floats: bfloat16\[64,128\] → float32",
        at=("/ np.sqrt(2.0)",),
    ),
    chains(
        "what was widened to be normalised stays wide",
        "bfloat16-layers-normalised-in-float32-vs-float32-from-there",
        ("level = normalise(x.astype(jnp.float32)).astype(x.dtype)", "level = normalise(x.astype(jnp.float32))"),
        ("        x = x + jnp.tanh(level", "        x = x.astype(jnp.float32) + jnp.tanh(level"),
        (
            'layer["bias"])\n    return x\n\n\ndef normed_wide',
            'layer["bias"])\n    return x.astype(jnp.bfloat16)\n\n\ndef normed_wide',
        ),
        moves={"widened_bytes"},
        culprit=r"wider floats: bfloat16\[128,128\] → float32",
        at=("jnp.tanh(level @",),
    ),
    training(
        "the samples are not cast",
        _MIXED,
        ("mlp(cast(params, dtype), x.astype(dtype))", "mlp(cast(params, dtype), x)"),
        moves={"widened_bytes"},
        culprit=r"wider floats: bfloat16\[128,128\] → float32",
    ),
    training(
        "parameters are kept in bfloat16",
        _MIXED,
        (
            'descend(state["params"], velocity, RATE)',
            'cast(cast(descend(state["params"], velocity, RATE), jnp.bfloat16), jnp.float32)',
        ),
        status="INVALID",
        culprit=rf"\['params'\].*{_DISAGREE}",
    ),
    training(
        "the scale comes back as a Python number",
        "float16-step-with-a-loss-scale-vs-float32",
        ('"scale": scale * jnp.where(finite, grown, 0.5)', '"scale": FIRST_SCALE'),
        moves={"traces"},
        culprit=r"step 2 retraced: state\['scale'\]",
    ),
    training(
        "gradients are summed in bfloat16",
        "bfloat16-gradients-summed-in-float32-vs-float32-at-once",
        ("jnp.zeros(p.shape, jnp.float32)", "jnp.zeros(p.shape, jnp.bfloat16)"),
        ("lambda t: t / parts", "lambda t: t.astype(jnp.float32) / parts"),
        status="INVALID",
        culprit=_DISAGREE,
    ),
)
