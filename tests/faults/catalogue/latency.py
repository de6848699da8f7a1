"""What makes one request slower than it has to be."""

from tests.faults.model import faults_of

latency = faults_of("workloads/latency.py")

_CLASS = "latency-of-a-class-picked-on-the-device-vs-on-the-host"

FAULTS = (
    latency(
        "weights are captured by the program",
        "latency-of-one-request-to-an-mlp-blocked-vs-weights-in-the-program",
        ("subject=jax.jit(mlp)", "subject=jax.jit(captured)"),
        moves={"constant_bytes"},
        culprit=r"128x128xf32 \(65,536 bytes\)",
    ),
    latency(
        "a request is padded to a batch",
        "latency-of-one-request-to-a-transformer-blocked-vs-padded-to-8",
        ("subject=jax.jit(network)", "subject=jax.jit(padded(network))"),
        moves={"matmul_flops"},
        culprit=r"arrays are padded: stablehlo\.concatenate 8x16x64xf32",
    ),
    latency(
        "each layer is a program",
        "latency-of-one-request-in-one-program-vs-layer-by-layer",
        ("subject=at_once", "subject=layer_by_layer"),
        moves={"launches"},
        culprit=r"programs started in a call: mlp_layer 0 → 4",
        at=("x = one_layer(layer, x)",),
    ),
    latency(
        "logits are read to pick a class",
        _CLASS,
        ("subject=on_the_device", "subject=on_the_host"),
        moves={"launches", "host_transfers"},
        culprit=r"programs started in a call",
        at=("scores = logits(params, x)[0].tolist()",),
    ),
    latency(
        "the request comes from the host each time",
        _CLASS,
        ("        return picked(params, x)\n", "        return picked(params, jax.device_get(x))\n"),
        moves={"host_transfers"},
        at=("return picked(params, jax.device_get(x))",),
    ),
)
