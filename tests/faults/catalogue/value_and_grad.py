"""Forward passes that are done twice: for the loss, for the metrics, for each argument."""

from tests.faults.model import faults_of

placed = faults_of("workloads/value_and_grad.py")
shared = faults_of("workloads/value_and_grad.py")
several = faults_of("workloads/value_and_grad.py")

ONE_PASS = "(loss, aux), grads = jax.value_and_grad(loss_of, has_aux=True)(params, *rest)"
AGAIN = ((ONE_PASS, f"{ONE_PASS}\n        loss, aux = loss_of(params, *rest)"),)

FAULTS = (
    placed(
        "loss and metrics from a second forward pass",
        "loss-and-accuracy-under-jit-in-one-pass-vs-two",
        *AGAIN,
        moves={"matmul_flops"},
        culprit=r"float32\[64,64\] x float32\[64,64\] 12 → 16",
    ),
    placed(
        "metrics of the updated parameters",
        "loss-and-accuracy-under-jit-in-one-pass-vs-two",
        (ONE_PASS, f"{ONE_PASS}\n        loss, aux = loss_of(descend(params, grads, RATE), *rest)"),
        status="INVALID",
        culprit=r"\['(accuracy|loss)'\]: subject gives",
    ),
    placed(
        "batch statistics from a second forward pass under pmap",
        "loss-and-batch-statistics-under-pmap-on-8-devices-in-one-pass-vs-two",
        *AGAIN,
        moves={"matmul_flops", "collectives"},
        culprit=r"all-reduce float32\[64\] over 'data' 16 → 24",
    ),
    placed(
        "batch statistics from a second forward pass on a mesh",
        "loss-and-batch-statistics-on-a-mesh-of-8-in-one-pass-vs-two",
        *AGAIN,
        moves={"matmul_flops", "collectives"},
        culprit=r"all-reduce float32\[64\].* over 'data' \(inserted\)",
    ),
    shared(
        "metrics from a program of their own",
        "loss-and-metrics-from-one-program-vs-two",
        (
            "        state, metrics = step(state, x, labels)\n",
            "        loss, aux = metrics_of(*state, x, labels)\n"
            "        state, _ = step(state, x, labels)\n"
            '        metrics = {"loss": loss, "accuracy": aux["accuracy"]}\n',
        ),
        moves={"launches"},
        culprit=r"plain_loss 0 → 1",
    ),
    several(
        "a gradient for each argument by itself",
        "gradients-of-two-arguments-together-vs-one-by-one",
        (
            "(loss, aux), grads = jax.value_and_grad(reconstruction, argnums=(0, 1), has_aux=True)"
            "(encoder, decoder, x)",
            "both = [jax.value_and_grad(reconstruction, n, has_aux=True)(encoder, decoder, x) for n in (0, 1)]\n"
            "    (loss, aux), grads = both[0][0], tuple(grad for _, grad in both)",
        ),
        moves={"matmul_flops"},
        culprit=r"float32\[64,64\] x float32\[64,64\] 24 → 36",
        at=("jnp.tanh(h @ kernel)",),
    ),
)
