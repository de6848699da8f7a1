"""Parts that are given whole, collected, or arrive otherwise."""

from tests.faults.model import faults_of

fault = faults_of("workloads/hosts.py")

ROWS = "step-on-the-rows-of-each-host-vs-gathered-rows"
SPREAD = "step-with-parameters-spread-over-hosts-vs-copies"
PIPELINE = "stages-of-a-pipeline-on-4-devices-vs-all-stages-on-each"
RESTORED = "step-after-each-host-restored-its-shards-vs-copies"
JOB = "job-that-is-fed-by-each-host-vs-from-one-array"

FAULTS = (
    fault(
        "the batch is gathered before the work",
        ROWS,
        (
            "jax.jit(step, donate_argnums=0, out_shardings=whole),",
            "jax.jit(gathered, donate_argnums=0, out_shardings=whole),",
        ),
        moves={"xla_flops"},
        culprit=r"all-gather",
    ),
    fault(
        "every device keeps all new parameters",
        SPREAD,
        ("out_shardings=(rows, whole)),", "out_shardings=(whole, whole)),"),
        moves={"output_bytes", "aliased_bytes"},
        culprit=r"result|no longer donated|all-gather",
    ),
    fault(
        "each stage collects the kernels of all",
        PIPELINE,
        ("jnp.tanh(begun @ kernels[0])", 'jnp.tanh(begun @ jax.lax.all_gather(kernels, "stage")[stage, 0])'),
        moves={"collectives", "collective_bytes"},
        culprit=r"all-gather|all_gather",
    ),
    fault(
        "a host puts back all of a state",
        RESTORED,
        (
            "    return jax.make_array_from_single_device_arrays(like.shape, like.sharding, parts)",
            "    del parts\n    return jax.device_put(np.asarray(like), NamedSharding(like.sharding.mesh, P()))",
        ),
        moves={"argument_bytes", "compiles"},
        culprit=r"params\[0\]\['kernel'\] takes 16,384 bytes of each device, 4,096 before: sharded less",
    ),
    fault(
        "each step moves the rows once more",
        JOB,
        (
            "run(params, fed(mesh, x), fed(mesh, y))",
            "run(params, *jax.device_put((fed(mesh, x), fed(mesh, y)), NamedSharding(mesh, P())))",
        ),
        moves={"host_transfers", "argument_bytes"},
        culprit=r"moved between host and device in each call: 4 for device_put \(2 before\)",
    ),
)
