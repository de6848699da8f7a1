"""What JAX says of layouts that cannot be, as the catalogue's ``pjit`` cases take for granted; on eight devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from support.paths import REPOSITORY


def _grid(kind, **axes):
    extents = tuple(axes.values())
    devices = jax.devices()[: int(np.prod(extents))]
    return jax.make_mesh(extents, tuple(axes), axis_types=(kind,) * len(axes), devices=devices)


def _ones(*shape):
    return np.ones(shape, np.float32)


def _pmap_on_other_devices():
    here = jax.device_put(_ones(4, 8), NamedSharding(_grid(AxisType.Auto, data=4), P("data")))
    there = jax.pmap(lambda row: row * 2, devices=jax.devices()[4:])
    return jax.jit(lambda x: there(x + 1))(here)


def _two_axes():
    here = jax.device_put(_ones(4, 8), NamedSharding(_grid(AxisType.Auto, group=2, data=4), P("data", "group")))
    return jax.jit(lambda x: x + 1)(here)


def _pmap_of_16():
    return jax.pmap(lambda row: row * 2)(_ones(16, 8))


def _jit_of(rows):
    rowwise = NamedSharding(_grid(AxisType.Auto, data=8), P("data"))
    return jax.jit(lambda x: x * 2, in_shardings=rowwise)(_ones(rows, 8))


def _committed_elsewhere():
    mesh = _grid(AxisType.Auto, data=8)
    x = jax.device_put(_ones(16, 8), NamedSharding(mesh, P("data")))
    return jax.jit(lambda x: x * 2, in_shardings=NamedSharding(mesh, P()))(x)


def _three_heads():
    mesh = _grid(AxisType.Explicit, model=8)
    x = jax.device_put(_ones(4, 24), NamedSharding(mesh, P()))
    heads = NamedSharding(mesh, P(None, "model"))
    return jax.jit(lambda x: jax.sharding.reshard(x.reshape(4, 3, 8), heads))(x)


def _sum_without_a_place():
    mesh = _grid(AxisType.Explicit, model=8)
    x = jax.device_put(_ones(4, 8), NamedSharding(mesh, P(None, "model")))
    y = jax.device_put(_ones(8, 4), NamedSharding(mesh, P("model")))
    return jax.jit(lambda x, y: x @ y)(x, y)


def _bare_spec():
    x = jax.device_put(_ones(8, 8), NamedSharding(_grid(AxisType.Explicit, model=8), P()))
    return jax.jit(lambda x: jax.sharding.reshard(x, P("model")))(x)


def _bare_spec_in_a_mesh():
    with jax.set_mesh(_grid(AxisType.Explicit, model=8)):
        return _bare_spec()


ATTEMPTS = {
    "pmap on other devices inside jit": _pmap_on_other_devices,
    "a mesh with two axes": _two_axes,
    "pmap of 16 samples": _pmap_of_16,
    "jit of 16 samples": lambda: _jit_of(16),
    "jit of 12 samples": lambda: _jit_of(12),
    "in_shardings against an array's own": _committed_elsewhere,
    "3 heads on 8 devices": _three_heads,
    "a sum without a place": _sum_without_a_place,
    "a bare spec": _bare_spec,
    "a bare spec in a mesh": _bare_spec_in_a_mesh,
}


@pytest.fixture(scope="module")
def said():
    """What came of each attempt: the error, or nothing. In a process of its own: devices are chosen before JAX starts."""
    command = [sys.executable, "-W", "error", __file__]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")}
    done = subprocess.run(
        command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])  # some errors of jax 0.12 print where they are raised


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ("pmap on other devices inside jit", ("incompatible devices", "[0, 1, 2, 3]", "[4, 5, 6, 7]")),
        ("pmap of 16 samples", ("ValueError", "(2, 8)")),
        ("jit of 12 samples", ("axis 0 is partitioned 8 times", "12")),
        ("in_shardings against an array's own", ("does not match the sharding on the respective arg",)),
        ("3 heads on 8 devices", ("3", "8")),
        ("a sum without a place", ("ShardingTypeError", "out_sharding")),
        ("a bare spec", ("jax.set_mesh",)),
    ],
)
def test_what_cannot_be_is_refused(said, attempt, words):
    """JAX raises, and says why; the catalogue has the way that works beside it."""
    for word in words:
        assert word in said[attempt]


@pytest.mark.parametrize("attempt", ["a mesh with two axes", "jit of 16 samples", "a bare spec in a mesh"])
def test_what_can_be_is_not(said, attempt):
    """The way that works: one mesh with two axes, a batch that the devices divide, a spec within its mesh."""
    assert not said[attempt]


def _attempt(function):
    try:
        jax.block_until_ready(function())
    except Exception as error:  # noqa: BLE001 - JAX has error classes of its own for shardings
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 8)
    sys.stdout.write("\n" + json.dumps({name: _attempt(function) for name, function in ATTEMPTS.items()}))
