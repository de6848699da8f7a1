"""What goes wrong where transformations are composed: one layer is lost, and the step still trains."""

from tests.faults.model import faults_of

step = faults_of("workloads/composed/step.py")

FAULTS = (
    step(
        "the gradients of all micro-batches are kept until the end",
        "train-step-accumulation-vs-whole-batch-at-once",
        ("return jax.tree.map(jnp.add, total, grads), values", "return total, (values, grads)"),
        ("total, values = jax.lax.scan", "_, (values, grads) = jax.lax.scan"),
        (
            "lambda leaf: leaf / parts, total)\n\n    return accumulate\n\n\ndef micro",
            "lambda leaf: leaf.mean(0), grads)\n\n    return accumulate\n\n\ndef micro",
        ),
        moves={"temp_bytes"},
        culprit=r"dynamic_update_slice 4x4x32x64xf32 0 → 1",
        at=("jax.lax.scan(add,",),
    ),
    step(
        "remat is dropped",
        "train-step-remat-vs-stored-blocks",
        ("    return jax.checkpoint(layer, prevent_cse=False)\n", "    return layer\n"),
        moves={"temp_bytes"},
        culprit=r"remat is lost",
    ),
    step(
        "the optimiser state is not donated",
        "train-step-donated-vs-copied-state",
        ("donate = (0, 1) if", "donate = (0,) if"),
        moves={"donated_bytes", "state_bytes"},
        culprit=r"no longer donated: opt_state",
    ),
    step(
        "the loss is found by a second forward pass",
        "train-step-value-and-grad-vs-second-forward",
        (
            "    return jax.value_and_grad(loss, has_aux=True)",
            "    only = jax.grad(loss, has_aux=True)\n    return lambda *args: (loss(*args), only(*args)[0])",
        ),
        moves={"matmul_flops"},
        culprit=r"float32\[8,32,64\] x float32\[64,32\] 16 → 32",
    ),
    step(
        "the accumulation loop is unrolled",
        "train-step-scan-vs-loop-over-micro-batches",
        ("jax.tree.map(jnp.zeros_like, params), micro)", "jax.tree.map(jnp.zeros_like, params), micro, unroll=True)"),
        # jax 0.10.2 writes the body as one function that is called four times: no more operations, but no loop either.
        moves={"stablehlo_ops", "temp_bytes"},
        culprit=r"a loop is unrolled|\w+ 8x32x64xf32 (6 → 24|3 → 12)",
    ),
    step(
        "samples that do not fill a micro-batch are cut off",
        "train-step-nnx-vs-plain-functions",
        (
            "leaf.reshape(parts, -1, *leaf.shape[1:])",
            "leaf[: len(leaf) // (parts + 1) * parts].reshape(parts, -1, *leaf.shape[1:])",
        ),
        status="INVALID",
        culprit=r"sample 31 of 32 does not influence the result",
    ),
    step(
        "the loss is printed inside the step",
        "train-step-nnx-vs-plain-functions",
        (
            "            updates, opt_state =",
            '            jax.debug.print("loss {}", loss)\n            updates, opt_state =',
        ),
        moves={"host_callbacks"},
        culprit=r"calls Python: jax.debug.print",
        at=('jax.debug.print("loss {}", loss)',),
    ),
    step(
        "where the next state lies is left to the compiler",
        "train-step-on-mesh-of-8-sharded-vs-replicated-optimiser-state",
        (", out_shardings=(*shardings, None, None))", ")"),
        moves={"compiles", "traces", "lowerings", "aliased_bytes"},
        culprit=r"step 2 recompiled: params.*sharding",
    ),
    step(
        "gradients of parameters known to be equal are averaged, which JAX has summed already",
        "train-step-on-mesh-of-8-summed-once-vs-each-micro-batch",
        ("gradients(own, x, y)", "gradients(params, x, y)"),
        status="INVALID",
        culprit=r"comparing subject and reference: result\[0\]",
    ),
    step(
        "gradients meet after every micro-batch",
        "train-step-on-mesh-of-8-summed-once-vs-each-micro-batch",
        (
            "Callable[[Gradients, Mesh], Gradients] = summed_once",
            "Callable[[Gradients, Mesh], Gradients] = summed_each_time",
        ),
        moves={"collective_bytes"},
        culprit=r"all-reduce float32\[32,64\] over 'data' 0 → 16",
    ),
    step(
        "micro-batches are cut across devices",
        "train-step-on-mesh-of-8-vs-one-device-s-work-on-each",
        (
            "    spread: Callable[[Gradients, Mesh], Gradients] = summed_once",
            "    spread: Callable[[Gradients, Mesh], Gradients] = lambda gradients, mesh: gradients\n",
        ),
        moves={"collective_bytes"},
        culprit=r"all-gather .*inserted",
    ),
)
