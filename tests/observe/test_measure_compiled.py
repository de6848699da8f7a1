"""A case whose arguments are shapes: all that a compiled program tells, and no array."""

from dataclasses import fields

import jax
import jax.numpy as jnp
import pytest
from support.measured import measured
from support.processes import python

from jaxgate.model.computation import Batch
from jaxgate.model.measurement import NOT_CALLED, InvalidCaseError
from jaxgate.model.numbers import CALLED_FACTS, Facts


def shape(*extents, dtype="float32", sharding=None):
    """What stands for an array."""
    return jax.ShapeDtypeStruct(extents, dtype, sharding=sharding)


def update(state, batch):
    """A step whose state may be given back."""
    return {"w": state["w"] - 0.1 * batch.T @ (batch @ state["w"]), "n": state["n"] + 1}


STATE = {"w": shape(64, 64), "n": shape(dtype="int32")}
STEP = jax.jit(update, donate_argnames="state")


def test_everything_that_the_compiler_tells_is_that_of_arrays():
    """The same program, donation, memory, costs and arguments, whoever stands for them."""
    shapes = measured(STEP, STATE, shape(32, 64))
    arrays = measured(STEP, {"w": jnp.ones((64, 64)), "n": jnp.int32(0)}, jnp.ones((32, 64)))
    told = {field.name for field in fields(Facts)} - {*CALLED_FACTS, "trace_calls"}  # JAX reads arrays otherwise
    assert {n: getattr(shapes.facts, n) for n in told} == {n: getattr(arrays.facts, n) for n in told}
    assert (shapes.fingerprints.program, shapes.fingerprints.executable, shapes.fingerprints.source) == (
        arrays.fingerprints.program,
        arrays.fingerprints.executable,
        arrays.fingerprints.source,
    )
    assert [leaf.aval for leaf in shapes.signature] == [leaf.aval for leaf in arrays.signature]
    assert shapes.matmuls == arrays.matmuls
    assert (shapes.facts.donated_bytes, shapes.facts.lost_bytes) == (64 * 64 * 4 + 4, 0)


def test_what_only_calls_show_is_unknown_and_says_so():
    """No number stands in for one that nobody measured."""
    found = measured(STEP, STATE, shape(32, 64))
    assert found.compiled_only
    assert found.samples is None
    assert {getattr(found.facts, name) for name in CALLED_FACTS} == {None}
    assert {found.unknown[name] for name in (*CALLED_FACTS, "sent_bytes")} == {NOT_CALLED}
    assert (found.phases.first_call_ns, found.phases.host_ns, found.phases.dispatch_ns) == (None, None, None)
    assert NOT_CALLED in found.unseen


def test_no_array_is_made():
    """A step that no machine here could hold is compiled all the same."""
    before = {id(array) for array in jax.live_arrays()}
    found = measured(STEP, {"w": shape(2**17, 2**17), "n": shape(dtype="int32")}, shape(8, 2**17))
    assert found.facts.argument_bytes > 4 * 2**34
    assert [array.shape for array in jax.live_arrays() if id(array) not in before and array.nbytes > 1024] == []


def test_one_shape_among_arrays_is_enough():
    found = measured(lambda x, y: x @ y, jnp.ones((8, 8)), shape(8, 8))
    assert found.compiled_only
    assert found.facts.matmul_flops == 2 * 8**3


def test_donation_that_finds_no_result_is_lost():
    """By the compiler's own count, with the array and why."""
    step = jax.jit(lambda state, x: (state["w"] * x).astype(jnp.bfloat16), donate_argnames="state")
    found = measured(step, {"w": shape(64, 64)}, shape())
    assert found.facts.lost_bytes == 64 * 64 * 4
    (line,) = found.culprits.lost
    assert line.startswith("state['w'] (float32[64,64], 16,384 bytes): the result of this shape is bfloat16")


def test_a_donated_argument_that_is_not_used_is_lost():
    step = jax.jit(lambda state, x: (x * 2, state["n"] + 1), donate_argnames="state")
    found = measured(step, {"w": shape(64, 64), "n": shape(dtype="int32")}, shape(8))
    assert found.facts.lost_bytes == 64 * 64 * 4
    assert found.culprits.lost == ("state['w'] (float32[64,64], 16,384 bytes): unused by the program",)


ON_TWO_DEVICES = """
import jax, jax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 2)
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.computation import Computation
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools

mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
split, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
w = jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=whole)
x = jax.ShapeDtypeStruct((32, 16), jnp.float32, sharding=split)
step = jax.jit(lambda w, x: jnp.mean((x @ w) ** 2))
seen = observe(lambda: Computation(subject=step, args=(w, x)), Tools(store=ReferenceCache(None)))
now = seen.measurement
print(now.hardware.devices, [leaf.nbytes for leaf in now.signature], now.facts.collectives, seen.export().record.stored)
"""


def test_each_device_has_its_part():
    """A sharding says where an array would lie; bytes and collectives are those of that."""
    assert python("-c", ON_TWO_DEVICES).split("\n")[-2:] == ["2 [1024, 1024] 1 True", ""]


def test_static_arguments_and_numbers_stay_what_they_are():
    """They are part of the program, or of its arguments."""
    step = jax.jit(lambda x, times, scale: x * times * scale, static_argnames="times")
    found = measured(step, shape(8), 3, 2.0)
    assert [(leaf.path, leaf.aval) for leaf in found.signature] == [("x", "float32[8]"), ("scale", "float32[]")]


def test_a_random_key_may_be_a_shape():
    found = measured(lambda key: jax.random.normal(key, (8,)), jax.eval_shape(lambda: jax.random.key(0)))
    assert found.signature[0].aval.startswith("key<fry>")


def test_a_reference_is_compiled_for_claims_and_its_results_are_not_compared():
    found = measured(lambda x: x * 8, shape(64), reference=lambda x: jnp.cumsum(x) * 8)
    assert found.reference.facts.output_bytes == 256
    assert found.unseen.endswith("results are not compared with the reference's")


@pytest.mark.parametrize(
    ("changes", "stage", "expected"),
    [
        ({"batch": Batch(argument=1, size=32)}, "checking the batch", "leave batch= out"),
        ({"eager": True}, "looking at the arguments", "expected arrays for a function that is called as it is"),
    ],
    ids=["batch", "host"],
)
def test_what_needs_calls_is_refused(changes, stage, expected):
    """A check that could not be made must not look like one that was."""
    with pytest.raises(InvalidCaseError) as raised:
        measured(update, STATE, shape(32, 64), **changes)
    assert raised.value.stage == stage
    assert expected in raised.value.reason
