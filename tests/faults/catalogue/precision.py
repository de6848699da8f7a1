"""Numbers with too few bits, and numbers with more than anybody asked for."""

from __future__ import annotations

from tests.faults.model import Fault

_PRODUCTS = "workloads/precision/products.py"
_CHAINS = "workloads/precision/chains.py"
_TRAINING = "workloads/precision/training.py"

_ALIKE = "float32-products-in-full-by-argument-vs-by-setting"
_SUMMED = "bfloat16-product-summed-in-float32-vs-widened-first"
_MIXED = "bfloat16-step-with-float32-state-vs-float32"
_DISAGREE = r"subject gives .*, reference"

FAULTS = (
    Fault(
        name="one side multiplies in TF32",
        file=_PRODUCTS,
        case=_ALIKE,
        edits=(
            (
                'jnp.matmul(x, layer["kernel"], precision=HIGHEST)',
                'jnp.matmul(*(jax.lax.reduce_precision(a, 8, 10) for a in (x, layer["kernel"])), precision=HIGHEST)',
            ),
        ),
        status="INVALID",
        culprit=_DISAGREE,
    ),
    Fault(
        name="TF32 is asked for where there is none",
        file=_PRODUCTS,
        case=_ALIKE,
        edits=(
            (
                'jnp.matmul(x, layer["kernel"], precision=HIGHEST)',
                'jnp.matmul(x, layer["kernel"], precision="TF32_TF32_F32")',
            ),
        ),
        status="INVALID",
        culprit=r"'TF32_TF32_F32' is not supported",
    ),
    Fault(
        name="operands are widened for the sake of the sum",
        file=_PRODUCTS,
        case=_SUMMED,
        edits=(
            (
                "jnp.matmul(x, kernel, preferred_element_type=jnp.float32)",
                "jnp.matmul(x.astype(jnp.float32), kernel.astype(jnp.float32))",
            ),
        ),
        moves=frozenset({"widened_bytes"}),
        culprit=r"wider floats: bfloat16\[128,128\] → float32",
        at=("jnp.matmul(x.astype(jnp.float32), kernel.astype(jnp.float32))",),
    ),
    Fault(
        name="a NumPy number stands in a bfloat16 chain",
        file=_CHAINS,
        case="bfloat16-chain-with-python-numbers-vs-typed-ones",
        edits=(
            ("import math\n", "import math\n\nimport numpy as np\n"),
            ("/ math.sqrt(2.0) + layer", "/ np.sqrt(2.0) + layer"),
        ),
        moves=frozenset({"widened_bytes"}),
        culprit=r"wider floats: bfloat16\[64,128\] → float32",
        at=("/ np.sqrt(2.0)",),
    ),
    Fault(
        name="what was widened to be normalised stays wide",
        file=_CHAINS,
        case="bfloat16-layers-normalised-in-float32-vs-float32-from-there",
        edits=(
            ("level = normalise(x.astype(jnp.float32)).astype(x.dtype)", "level = normalise(x.astype(jnp.float32))"),
            ("        x = x + jnp.tanh(level", "        x = x.astype(jnp.float32) + jnp.tanh(level"),
            (
                'layer["bias"])\n    return x\n\n\ndef normed_wide',
                'layer["bias"])\n    return x.astype(jnp.bfloat16)\n\n\ndef normed_wide',
            ),
        ),
        moves=frozenset({"widened_bytes"}),
        culprit=r"wider floats: bfloat16\[128,128\] → float32",
        at=("jnp.tanh(level @",),
    ),
    Fault(
        name="the samples are not cast",
        file=_TRAINING,
        case=_MIXED,
        edits=(("mlp(cast(params, dtype), x.astype(dtype))", "mlp(cast(params, dtype), x)"),),
        moves=frozenset({"widened_bytes"}),
        culprit=r"wider floats: bfloat16\[128,128\] → float32",
    ),
    Fault(
        name="parameters are kept in bfloat16",
        file=_TRAINING,
        case=_MIXED,
        edits=(
            (
                'descend(state["params"], velocity, RATE)',
                'cast(cast(descend(state["params"], velocity, RATE), jnp.bfloat16), jnp.float32)',
            ),
        ),
        status="INVALID",
        culprit=rf"\['params'\].*{_DISAGREE}",
    ),
    Fault(
        name="the scale comes back as a Python number",
        file=_TRAINING,
        case="float16-step-with-a-loss-scale-vs-float32",
        edits=(('"scale": scale * jnp.where(finite, grown, 0.5)', '"scale": FIRST_SCALE'),),
        moves=frozenset({"traces"}),
        culprit=r"step 2 retraced: state\['scale'\]",
    ),
    Fault(
        name="gradients are summed in bfloat16",
        file=_TRAINING,
        case="bfloat16-gradients-summed-in-float32-vs-float32-at-once",
        edits=(
            ("jnp.zeros(p.shape, jnp.float32)", "jnp.zeros(p.shape, jnp.bfloat16)"),
            ("lambda t: t / parts", "lambda t: t.astype(jnp.float32) / parts"),
        ),
        status="INVALID",
        culprit=_DISAGREE,
    ),
)
