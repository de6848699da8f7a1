"""What a target's compiler answers, read in another process as if the program had been compiled there."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.paths import REPOSITORY
from support.processes import python
from support.targets import CompilerHere

from jaxgate.ext.targets.compiled import reused_arguments
from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.topology import Topology
from jaxgate.observe.compat import input_shardings
from jaxgate.observe.program.export import NotReplayableError, export_whole
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stages import compiled_facts, devices_of

SHAPE = (16, 8)


@pytest.fixture
def x():
    """An argument."""
    return jnp.ones(SHAPE)


def lowered_of(function, *args, **kwargs):
    """A function, lowered for CPUs as if they were a target."""
    return lower(jax.jit(function, **kwargs), args, {}, role="subject", clock=lambda: 0, platform="cpu")


def compiled(lowered):
    """What the compiler of a target makes of it."""
    return CompilerHere(Target.parse("tpu:v5e:2x4")).compile(lowered)


class _Unnamed:
    """A sharding that is not ``NamedSharding``."""

    device_set = frozenset(range(8))

    def shard_shape(self, shape):
        """An eighth of the rows."""
        return (shape[0] // 8, *shape[1:])


def test_a_program_has_the_facts_that_it_has_here():
    """The same compiler, by the way of another process: donation, memory and FLOPs are equal."""

    def step(state, x):
        return jnp.tanh(state @ x), x.sum()

    here = jax.jit(step, donate_argnums=0).lower(jnp.ones((64, 64)), jnp.ones((64, 64))).compile()
    lowered = lowered_of(step, jnp.ones((64, 64)), jnp.ones((64, 64)), donate_argnums=0)
    there = compiled(lowered)
    assert compiled_facts(there) == compiled_facts(here)
    assert there.reused == (0,)
    assert there.as_text().startswith("HloModule")
    assert devices_of(there) == [jax.devices()[0]]


def test_an_unused_argument_is_dropped_as_ever(x):
    """It is no argument of the program, and its place says so."""
    lowered = lowered_of(lambda used, unused, given: used + given, x, jnp.ones(4), x + 1, donate_argnums=2)
    there = compiled(lowered)
    assert [each is None for each in input_shardings(there)] == [False, True, False]
    assert there.reused == (2,)


def test_constants_and_trees_and_static_values_are_kept():
    """What is compiled is the whole program: it is handed on, not stored."""
    table = np.arange(100_000.0, dtype=np.float32)

    def look_up(tree, *, how):
        return {"found": jnp.asarray(table)[tree["at"]], "how": jnp.full(3, how)}

    args = ({"at": jnp.arange(4)},)
    lowered = lower(
        jax.jit(look_up, static_argnames="how"), args, {"how": 5}, role="subject", clock=lambda: 0, platform="cpu"
    )
    facts = compiled_facts(compiled(lowered))
    assert facts["output_bytes"] >= 4 * (4 + 3)
    assert len(export_whole(lowered)) > table.nbytes


@pytest.mark.parametrize(
    ("head", "kept", "reused"),
    [
        (
            "HloModule a, input_output_alias={ {0}: (0, {}, may-alias), {1}: (2, {}, must-alias) }, x={1}",
            (0, 1, 2),
            [0, 2],
        ),
        ("HloModule a, input_output_alias={ {}: (1, {}, may-alias) }", (0, 3), [3]),
        ("HloModule a, is_scheduled=true\n input_output_alias={ {0}: (0, {}, may-alias) }", (0,), []),
    ],
)
def test_reused_arguments_stand_in_the_head_of_a_program(head, kept, reused):
    """By the numbers of its own parameters; what the function does not use has none."""
    assert reused_arguments(head, kept) == reused


def test_another_platforms_program_is_refused(x):
    """Its kernels and its layouts are of another compiler."""
    real = Topology(Target.parse("tpu:v5e:2x4"), jax.devices())
    with pytest.raises(NotReplayableError, match="it was exported for cpu, this is tpu"):
        real.compile(export_whole(lowered_of(lambda x: x + 1, x)), donated=(), options={}, positions=[0], kinds=[None])


# A mesh of eight virtual devices, in a process of its own

MESH = """
import json, sys
sys.path.insert(0, sys.argv[1])
import jax
jax.config.update("jax_num_cpu_devices", 8)
import jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
from jaxgate.ext.targets.model import Target
from jaxgate.observe.compat import input_shardings, output_shardings
from jaxgate.observe.program.export import NotReplayableError
from jaxgate.ext.targets.compiled import TargetExecutable, placement
from jaxgate.ext.targets.compiled import describe_sharding
from jaxgate.observe.trace.lowering import lower
from support.paths import REPOSITORY
from support.processes import python
from support.targets import CompilerHere

devices, shape = np.array(jax.devices()), (16, 8)
mesh, turned = (Mesh(each.reshape(4, 2), ("data", "model")) for each in (devices, devices[::-1]))

def same(sharding):
    answer = {"inputs": [json.loads(json.dumps(describe_sharding(sharding, shape)))]}
    (found,) = TargetExecutable(answer, devices).input_shardings
    return found.is_equivalent_to(sharding, 2) and found.shard_shape(shape) == sharding.shard_shape(shape)

class Unnamed:
    device_set = frozenset(devices)
    def shard_shape(self, shape):
        return (shape[0] // 8, *shape[1:])

found = {"same": [same(NamedSharding(mesh, P(*spec))) for spec in (("data", None), (("data", "model"),), ())]}
found["same"].append(same(SingleDeviceSharding(devices[0])))
(part,) = TargetExecutable({"outputs": [describe_sharding(Unnamed(), (32, 8))]}, devices).output_shardings
found["part"] = [list(part.shard_shape((32, 8))), part.device_set == set(devices), part.is_equivalent_to(part, 2)]

def lowered_on(mesh, *spec):
    x = jax.device_put(jnp.ones(shape), NamedSharding(mesh, P(*spec)))
    return lower(jax.jit(lambda x: x * 2), (x,), {}, role="subject", clock=lambda: 0, platform="cpu")

lowered = lowered_on(turned, "data", "model")
there = CompilerHere(Target.parse("tpu:v5e:2x4")).compile(lowered)
(given,), (result,) = input_shardings(there), output_shardings(there)
found["mesh"] = [given.mesh == turned, given.spec == P("data", "model"), list(result.shard_shape(shape))]
found["positions"] = placement(lowered).positions
try:
    CompilerHere(Target.parse("tpu:v5e:2x2")).compile(lowered_on(mesh, "data"))
except NotReplayableError as error:
    found["refused"] = str(error)
print(json.dumps(found))
"""


def test_on_a_mesh():
    """Shardings keep the user's axes and order of devices; of one without a name the part on a device is known."""
    assert json.loads(python("-c", MESH, REPOSITORY / "tests")) == {
        "same": [True] * 4,
        "part": [[4, 8], True, False],
        "mesh": [True, True, [4, 4]],
        "positions": [7, 6, 5, 4, 3, 2, 1, 0],
        "refused": "it needs 8 devices, cpu:v5e:2x2 has 4",
    }
