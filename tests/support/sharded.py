"""Programs for eight devices, and their optimised HLO; ``tests/data/hlo`` holds what jax 0.10.2 and 0.12.0.1 made of them.

Run as ``python tests/sharded.py FOLDER cpu``, ``… tpu v5e:2x4`` (needs libtpu, no TPU) or ``… cuda TARGET_CONFIG``
(needs jax[cuda13], no GPU; the file describes the GPU), it writes one gzipped text for each program.
"""

import gzip
import re
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

P = PartitionSpec


def array(mesh, shape, *spec):
    """An argument without data."""
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))


def train(params, x):
    """One step; the partitioner inserts an all-reduce over 'model' and one over 'data'."""

    def loss(p):
        h = jnp.tanh(x @ p["w1"])
        return jnp.mean((h @ p["w2"]) ** 2)

    return jax.tree.map(lambda p, d: p - 0.1 * d, params, jax.grad(loss)(params))


def layers(w, x):
    """Six layers in a scan, weights sharded over both axes: gathered layer by layer."""
    return lax.scan(lambda h, wi: (jnp.tanh(h @ wi), None), x, w)[0].sum()


def summed(x):
    """A psum, and five in a scan."""

    def body(c, _):
        return lax.psum(c * 0.5, "x") * 0.125, None

    return lax.scan(body, lax.psum(x, "x"), None, length=5)[0]


def every(x):
    """Five kinds of collectives, all written by hand."""
    gathered = lax.all_gather(x, "data", axis=0, tiled=True)
    return (
        lax.ppermute(x, "model", [(0, 1), (1, 0)]),
        lax.all_to_all(x, "data", 0, 0, tiled=True),
        lax.pmax(x, "data"),
        lax.psum_scatter(gathered * 2, "data", scatter_dimension=0, tiled=True),
    )


def until(x):
    """A psum in a loop of unknown length, and one in either branch of a conditional."""
    c = lax.while_loop(lambda c: c < 100.0, lambda c: lax.psum(c * 0.25 + 1.0, "x"), lax.psum(x.sum(), "x"))
    return lax.cond(c > 3, lambda v: lax.psum(v * 2, "x"), lambda v: lax.pmin(v, "x"), x[0])


def programs(devices):
    """Name and lowered program, of each."""
    grid = Mesh(np.array(devices[:8]).reshape(4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    row = Mesh(np.array(devices[:8]), ("x",), axis_types=(AxisType.Auto,))
    params = {"w1": array(grid, (64, 128), None, "model"), "w2": array(grid, (128, 64), "model", None)}
    batch = array(grid, (32, 64), "data", None)
    yield "train", jax.jit(train, donate_argnums=0).lower(params, batch)
    yield "layers", jax.jit(jax.value_and_grad(layers)).lower(array(grid, (6, 64, 64), None, "data", "model"), batch)
    mapped = partial(jax.shard_map, mesh=row, in_specs=P("x"), out_specs=P())
    yield "summed", jax.jit(mapped(summed)).lower(array(row, (64, 16), "x"))
    yield "until", jax.jit(mapped(until)).lower(array(row, (64, 16), "x"))
    both = P("data", "model")
    specs = (both, both, P(None, "model"), both)
    kinds = jax.shard_map(every, mesh=grid, in_specs=both, out_specs=specs)
    yield "every", jax.jit(kinds).lower(array(grid, (64, 16), "data", "model"))


def devices(platform, detail=""):
    """Eight devices that exist, or a description of such."""
    if platform == "cpu":
        jax.config.update("jax_num_cpu_devices", 8)
        return jax.devices()
    from jax.experimental import topologies

    if platform == "tpu":
        return topologies.get_topology_desc(detail, platform="tpu").devices
    config = Path(detail).read_text(encoding="utf-8")
    return topologies.get_topology_desc(platform="cuda", topology="1x1x8", target_config=config).devices


if __name__ == "__main__":
    folder, *target = sys.argv[1:]
    for name, lowered in programs(devices(*target)):
        text = re.sub(r'"/[^"]*/([\w.]+\.py)"', r'"/home/user/\1"', lowered.compile().as_text())
        (Path(folder) / f"{name}.hlo.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
