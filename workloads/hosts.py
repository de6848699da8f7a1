"""Programs over the devices of several hosts: every process runs them, and each has its own part of the data.

One mesh spans all hosts. What a process holds, it must give as its part of a whole array: given whole, every host would read,
send and keep all of it. With a single process these are programs for four devices of it. Mistakes that it catches: a state that
each device gets all of (`argument_bytes`), a batch that is gathered before the work (`xla_flops`), a pipeline that collects the
kernels of all stages (`collective_bytes`), new parameters that every device keeps (`output_bytes`), rows that each step moves
once more (`host_transfers`). Run over ranks by `--perf-distributed`.
Sources: JAX's pages on multi-process programs and on distributed data loading; GPipe (Huang et al., 2019).
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, mlp, mlp_params, over_samples, sizes, squared_error

CASES = Family("hosts")

DEVICES = 4
EVERYWHERE, ROWS = P(), P("data")

SIZES = sizes(width=(64, 2048), layers=4, batch=(64, 2048), parts=(8, 16), rtol=(1e-3, 2e-2))
"""A network of ``width`` and a batch for it, in ``parts`` where it goes through a pipeline."""


def across(axis: str) -> Mesh:
    """A mesh of as many devices of each process, four in all, those of a process side by side."""
    each = DEVICES // jax.process_count()
    owned = [[one for one in jax.devices() if one.process_index == host] for host in range(jax.process_count())]
    devices = [device for own in owned for device in own[:each]]
    return jax.make_mesh((DEVICES,), (axis,), axis_types=(AxisType.Auto,), devices=devices)


def placed(mesh: Mesh, spec: P, tree: Tree) -> Tree:
    """Arrays of which each process has all; it keeps what its devices need."""
    sharding = NamedSharding(mesh, spec)
    return jax.tree.map(lambda leaf: jax.make_array_from_callback(leaf.shape, sharding, lambda at: leaf[at]), tree)


def fed(mesh: Mesh, whole: np.ndarray[Any, Any]) -> jax.Array:
    """A batch of which each process has read its own rows."""
    mine = np.split(whole, jax.process_count())[jax.process_index()]
    return jax.make_array_from_process_local_data(NamedSharding(mesh, ROWS), mine, whole.shape)


def draw_inputs(size: Extent) -> tuple[Tree, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Parameters and a batch, as NumPy arrays."""
    draw = drawing()
    return mlp_params(draw, size.width, size.layers), draw((size.batch, size.width)), draw((size.batch, size.width))


def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """One step of gradient descent: x, y [batch, width]; gives new parameters and the loss."""
    loss, grads = jax.value_and_grad(lambda params: squared_error(mlp(params, x), y))(params)
    return descend(params, grads, 0.1), loss


def trained(size: Extent, args: tuple[Any, ...], subject: Any, reference: Any, claims: list[Any]) -> Computation:
    return Computation(
        subject=subject,
        reference=reference,
        args=args,
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        grow=over_samples(args, 1, 2),
        rtol=size.rtol,
        atol=1e-5,
        claims=[claim("aliased_bytes >= donated_bytes", "the old parameters make room for the new ones"), *claims],
    )


@CASES.workload("step-on-the-rows-of-each-host-vs-gathered-rows", sizes=SIZES, devices=DEVICES)
def data_parallel(size: Extent) -> Computation:
    """Parameters on every device, rows where they were read; the alternative collects the batch first."""
    mesh, (params, x, y) = across("data"), draw_inputs(size)
    whole = NamedSharding(mesh, EVERYWHERE)

    def gathered(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        return step(params, *jax.lax.with_sharding_constraint((x, y), whole))

    return trained(
        size,
        (placed(mesh, EVERYWHERE, params), fed(mesh, x), fed(mesh, y)),
        jax.jit(step, donate_argnums=0, out_shardings=whole),
        jax.jit(gathered, out_shardings=whole),
        [claim("xla_flops <= 0.35 * reference", "a device works on its rows")],
    )


@CASES.workload("step-with-parameters-spread-over-hosts-vs-copies", sizes=SIZES, devices=DEVICES)
def spread(size: Extent) -> Computation:
    """Each device keeps a quarter of the parameters and collects the others when a layer needs them (FSDP)."""
    mesh, (params, x, y) = across("data"), draw_inputs(size)
    rows, whole = NamedSharding(mesh, ROWS), NamedSharding(mesh, EVERYWHERE)

    def copied(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        return step(jax.lax.with_sharding_constraint(params, whole), x, y)

    return trained(
        size,
        (placed(mesh, ROWS, params), fed(mesh, x), fed(mesh, y)),
        jax.jit(step, donate_argnums=0, out_shardings=(rows, whole)),
        jax.jit(copied, out_shardings=(whole, whole)),
        [claim("output_bytes <= 0.3 * reference", "a quarter of the new parameters for each device")],
    )


def piped(kernels: jax.Array, x: jax.Array) -> jax.Array:
    """What one device of a pipeline does: its kernel [1, width, width] on one part of x [parts, batch, width] after the other.

    Each part goes from stage to stage, all stages work at once, and the last one has the results.
    """
    stage, parts = jax.lax.axis_index("stage"), x.shape[0]

    def tick(carried: jax.Array, time: jax.Array) -> tuple[jax.Array, jax.Array]:
        begun = jnp.where(stage == 0, x[jnp.minimum(time, parts - 1)], carried)
        done = jnp.tanh(begun @ kernels[0])
        return jax.lax.ppermute(done, "stage", [(at, at + 1) for at in range(DEVICES - 1)]), done

    start = jax.lax.pcast(jnp.zeros_like(x[0]), "stage", to="varying")
    _, done = jax.lax.scan(tick, start, jnp.arange(parts + DEVICES - 1))
    return jax.lax.psum(jnp.where(stage == DEVICES - 1, done[DEVICES - 1 :], 0), "stage")


@CASES.workload("stages-of-a-pipeline-on-4-devices-vs-all-stages-on-each", sizes=SIZES, devices=DEVICES)
def pipeline(size: Extent) -> Computation:
    """Activations move from stage to stage; the alternative moves the kernels."""
    mesh, draw = across("stage"), drawing()
    kernels = np.float32(size.width**-0.5) * draw((DEVICES, size.width, size.width))
    x = draw((size.parts, size.batch // size.parts, size.width))

    def alone(kernels: jax.Array, x: jax.Array) -> jax.Array:
        for stage in range(DEVICES):
            x = jnp.tanh(x @ kernels[stage])
        return x

    return Computation(
        subject=jax.jit(jax.shard_map(piped, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())),
        reference=jax.jit(alone, out_shardings=NamedSharding(mesh, P())),
        args=(placed(mesh, P("stage"), kernels), placed(mesh, P(), x)),
        batch=Batch(argument=1, size=size.parts),
        rtol=size.rtol,
        atol=1e-4,
        claims=[claim("matmul_flops <= 1.4 * reference", "in vain is only what fills and drains the pipeline")],
    )


def kept(state: jax.Array) -> dict[Any, np.ndarray[Any, Any]]:
    """What a host saves of an array: its own shards."""
    return {shard.device: np.asarray(shard.data) for shard in state.addressable_shards}


def brought_back(like: jax.Array, shards: Mapping[Any, np.ndarray[Any, Any]]) -> jax.Array:
    """Put the shards of this host back where they were."""
    parts = [jax.device_put(part, device) for device, part in shards.items()]
    return jax.make_array_from_single_device_arrays(like.shape, like.sharding, parts)


@CASES.workload("step-after-each-host-restored-its-shards-vs-copies", sizes=SIZES, devices=DEVICES)
def restored(size: Extent) -> Computation:
    """Every host saves and restores its own shards; the step goes on as if nothing had been."""
    computation = spread(size)
    params, *batch = computation.args
    back = jax.tree.map(lambda leaf: brought_back(leaf, kept(leaf)), params)
    return trained(
        size,
        (back, *batch),
        computation.subject,
        computation.reference,
        [claim("output_bytes <= 0.3 * reference", "a quarter of the new parameters for each device")],
    )


@CASES.workload("job-that-is-fed-by-each-host-vs-from-one-array", sizes=SIZES, devices=DEVICES)
def job(size: Extent) -> Computation:
    """Plain Python: each host gives its rows, and calls the step; the alternative has all rows on the host and places them."""
    mesh, (params, x, y) = across("data"), draw_inputs(size)
    run = jax.jit(step, out_shardings=NamedSharding(mesh, EVERYWHERE))

    def fed_job(params: Tree, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[Tree, jax.Array]:
        return run(params, fed(mesh, x), fed(mesh, y))

    def placed_job(params: Tree, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[Tree, jax.Array]:
        return run(params, *placed(mesh, ROWS, (x, y)))

    return Computation(
        subject=fed_job,
        reference=placed_job,
        args=(placed(mesh, EVERYWHERE, params), x, y),
        carry=0,
        rtol=size.rtol,
        atol=1e-5,
        eager=True,
        claims=[
            claim("compiles == 1", "the rows arrive in the same way in every step"),
            claim("launches == 1", "and nothing moves them on the device"),
        ],
    )
