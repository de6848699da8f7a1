"""Forward passes that are done twice: for the loss, for the metrics, for each argument."""

from __future__ import annotations

from tests.faults.model import Fault

PLACED = "workloads/value_and_grad/placed.py"
ONE_PASS = "(loss, aux), grads = jax.value_and_grad(loss_of, has_aux=True)(params, *rest)"
AGAIN = ((ONE_PASS, f"{ONE_PASS}\n        loss, aux = loss_of(params, *rest)"),)

FAULTS = (
    Fault(
        name="loss and metrics from a second forward pass",
        file=PLACED,
        case="loss-and-accuracy-under-jit-in-one-pass-vs-two",
        edits=AGAIN,
        moves=frozenset({"matmul_flops"}),
        culprit=r"float32\[64,64\] x float32\[64,64\] 12 → 16",
    ),
    Fault(
        name="metrics of the updated parameters",
        file=PLACED,
        case="loss-and-accuracy-under-jit-in-one-pass-vs-two",
        edits=((ONE_PASS, f"{ONE_PASS}\n        loss, aux = loss_of(descend(params, grads, RATE), *rest)"),),
        status="INVALID",
        culprit=r"\['(accuracy|loss)'\]: subject gives",
    ),
    Fault(
        name="batch statistics from a second forward pass under pmap",
        file=PLACED,
        case="loss-and-batch-statistics-under-pmap-on-8-devices-in-one-pass-vs-two",
        edits=AGAIN,
        moves=frozenset({"matmul_flops", "collectives"}),
        culprit=r"all-reduce float32\[64\] over 'data' 16 → 24",
    ),
    Fault(
        name="batch statistics from a second forward pass on a mesh",
        file=PLACED,
        case="loss-and-batch-statistics-on-a-mesh-of-8-in-one-pass-vs-two",
        edits=AGAIN,
        moves=frozenset({"matmul_flops", "collectives"}),
        culprit=r"all-reduce float32\[64\].* over 'data' \(inserted\)",
    ),
    Fault(
        name="metrics from a program of their own",
        file="workloads/value_and_grad/shared.py",
        case="loss-and-metrics-from-one-program-vs-two",
        edits=(
            (
                "        state, metrics = step(state, x, labels)\n",
                "        loss, aux = metrics_of(*state, x, labels)\n"
                "        state, _ = step(state, x, labels)\n"
                '        metrics = {"loss": loss, "accuracy": aux["accuracy"]}\n',
            ),
        ),
        moves=frozenset({"launches"}),
        culprit=r"plain_loss 0 → 1",
    ),
    Fault(
        name="a gradient for each argument by itself",
        file="workloads/value_and_grad/several.py",
        case="gradients-of-two-arguments-together-vs-one-by-one",
        edits=(
            (
                "(loss, aux), grads = jax.value_and_grad(reconstruction, argnums=(0, 1), has_aux=True)"
                "(encoder, decoder, x)",
                "both = [jax.value_and_grad(reconstruction, n, has_aux=True)(encoder, decoder, x) for n in (0, 1)]\n"
                "    (loss, aux), grads = both[0][0], tuple(grad for _, grad in both)",
            ),
        ),
        moves=frozenset({"matmul_flops"}),
        culprit=r"float32\[64,64\] x float32\[64,64\] 24 → 36",
        at=("jnp.tanh(h @ kernel)",),
    ),
)
