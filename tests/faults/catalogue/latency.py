"""What makes one request slower than it has to be."""

from __future__ import annotations

from tests.faults.model import Fault

_LATENCY = "workloads/latency.py"
_CLASS = "latency-of-a-class-picked-on-the-device-vs-on-the-host"

FAULTS = (
    Fault(
        name="weights are captured by the program",
        file=_LATENCY,
        case="latency-of-one-request-to-an-mlp-blocked-vs-weights-in-the-program",
        edits=(("subject=jax.jit(mlp)", "subject=jax.jit(captured)"),),
        moves=frozenset({"constant_bytes"}),
        culprit=r"128x128xf32 \(65,536 bytes\)",
    ),
    Fault(
        name="a request is padded to a batch",
        file=_LATENCY,
        case="latency-of-one-request-to-a-transformer-blocked-vs-padded-to-8",
        edits=(("subject=jax.jit(network)", "subject=jax.jit(padded(network))"),),
        moves=frozenset({"matmul_flops"}),
        culprit=r"float32\[8,16,64\] x float32\[64,64\]",
    ),
    Fault(
        name="each layer is a program",
        file=_LATENCY,
        case="latency-of-one-request-in-one-program-vs-layer-by-layer",
        edits=(("subject=at_once", "subject=layer_by_layer"),),
        moves=frozenset({"launches"}),
        culprit=r"programs started in a call: mlp_layer 0 → 4",
        at=("x = one_layer(layer, x)",),
    ),
    Fault(
        name="logits are read to pick a class",
        file=_LATENCY,
        case=_CLASS,
        edits=(("subject=on_the_device", "subject=on_the_host"),),
        moves=frozenset({"launches", "host_transfers"}),
        culprit=r"programs started in a call",
        at=("scores = logits(params, x)[0].tolist()",),
    ),
    Fault(
        name="the request comes from the host each time",
        file=_LATENCY,
        case=_CLASS,
        edits=(("        return picked(params, x)\n", "        return picked(params, jax.device_get(x))\n"),),
        moves=frozenset({"host_transfers"}),
        at=("return picked(params, jax.device_get(x))",),
    ),
)
