"""Donation, leaf by leaf: what was reused, what was lost and why, and one buffer given twice."""

import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.experimental.layout import Format, Layout
from support.processes import python

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.feeder import Feeder
from jaxgate.observe.errors import guarded
from jaxgate.observe.program.donation import lost_of, read_donation, refuse_shared_buffers
from jaxgate.observe.trace.clocks import CLOCKS
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stages import compile_program

pytestmark = pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")


def ones(*shape, dtype=jnp.float32):
    return jnp.ones(shape, dtype)


def compiled(function, *args, **kwargs):
    lowered = lower(function, args, kwargs, role="subject", clock=time.perf_counter_ns)
    return compile_program(lowered, clocks=CLOCKS)


def donation(function, *args, **kwargs):
    """What became of each donated leaf in one call on copies, and what the compiler says of all."""
    program = compiled(function, *args, **kwargs)
    fed = Feeder((args, kwargs), donates=True).fresh()
    jax.block_until_ready(program.lowered.function(*fed[0], **fed[1]))
    return read_donation(program, fed), program


def fate(leaves):
    return {leaf.path: leaf.reused or leaf.why for leaf in leaves}


REASONS = {
    "unused": (lambda a: jnp.ones((8, 4)), "unused by the program"),
    "no-result-of-this-shape": (lambda a: a.sum(), "no result of this shape (float32[8,4])"),
    "another-type": (lambda a: a.astype(jnp.bfloat16), "the result of this shape is bfloat16, it is float32"),
    "reused": (lambda a: a + 1, True),
    "reused-in-another-shape": (lambda a: a.reshape(32) + 1, True),
    "handed-through": (lambda a: (a, a.sum()), True),
}


@pytest.mark.parametrize("what", REASONS)
def test_a_lost_buffer_says_why(what):
    """One donated float32[8,4] of 128 bytes, and the first cause that explains it."""
    body, expected = REASONS[what]
    (leaf,), program = donation(jax.jit(lambda a: body(a), donate_argnums=0), ones(8, 4))
    assert (leaf.path, leaf.aval, leaf.nbytes) == ("a", "float32[8,4]", 128)
    assert (leaf.reused or leaf.why) == expected
    assert program.facts.aliased_bytes == (128 if leaf.reused else 0)
    assert lost_of([leaf]).nbytes == 128 - program.facts.aliased_bytes


@pytest.mark.filterwarnings("error")
def test_it_is_loud_where_jax_is_silent():
    """A result of another type, and an argument that is not used: not one warning, two lost buffers."""
    step = jax.jit(lambda a, unused: a.astype(jnp.bfloat16), donate_argnums=(0, 1))
    leaves, _ = donation(step, ones(8, 4), ones(3))
    assert [leaf.reused for leaf in leaves] == [False, False]
    assert lost_of(leaves).nbytes == 128 + 12


MORE = "more arguments than results have this shape and type (2 and 1)"
FATES = {
    # One of two alike finds no result; it is counted among what asks, not among what does not.
    "more-than-results": (lambda a, b, c: a + b + c, (ones(8, 4), ones(8, 4), ones(8, 4)), {"a": True, "b": MORE}),
    # The only one that asks is reused; two alike are not "more than results" where one was dropped.
    "one-is-unused": (lambda a, b: b + 1, (ones(8, 4), ones(8, 4)), {"a": "unused by the program", "b": True}),
    # JAX makes a buffer for a Python number at each call, and nobody holds it twice.
    "a-number": (lambda a, rate: (a + rate, rate), (ones(3), 0.5), {"a": True}),
}


@pytest.mark.parametrize(("function", "args", "expected"), FATES.values(), ids=FATES)
def test_what_becomes_of_two(function, args, expected):
    leaves, _ = donation(jax.jit(function, donate_argnums=(0, 1)), *args)
    assert fate(leaves) == expected


def test_partial_donation_keeps_to_what_was_donated():
    """Leaves that were not donated are not in the list, whatever became of them."""

    def step(state, batch):
        return {"w": state["w"] + batch.sum(), "n": (state["n"][0] + 1,)}, state["skew"].sum()

    state = {"w": ones(4, 6), "n": (jnp.int32(0),), "skew": ones(5), "nothing": None}
    leaves, program = donation(jax.jit(step, donate_argnames="state"), state, ones(3))
    assert fate(leaves) == {
        "state['n'][0]": True,
        "state['skew']": "no result of this shape (float32[5])",
        "state['w']": True,
    }
    assert sum(leaf.nbytes for leaf in leaves if leaf.reused) == program.facts.aliased_bytes == 96 + 4
    assert program.facts.donated_bytes == 96 + 4 + 20


def test_an_optimiser_state_is_reused_whole():
    """Every leaf of parameters and AdamW's moments, by its own path."""
    optimiser = optax.adamw(1e-3)

    def step(state, batch):
        params, moments = state
        grads = jax.grad(lambda p: jnp.mean((batch @ p["w"]) ** 2))(params)
        updates, moments = optimiser.update(grads, moments, params)
        return optax.apply_updates(params, updates), moments

    params = {"w": ones(4, 6)}
    state = (params, optimiser.init(params))
    leaves, program = donation(jax.jit(step, donate_argnums=0), state, ones(8, 4))
    assert all(leaf.reused for leaf in leaves)
    assert [leaf.path for leaf in leaves if leaf.aval == "int32[]"] == ["state[1][0].count"]
    assert sum(leaf.nbytes for leaf in leaves) == program.facts.aliased_bytes == 3 * 96 + 4


def test_keyword_and_static_arguments_keep_their_places():
    """Static arguments left, right and among the keywords do not shift what is said of the arrays."""
    step = jax.jit(
        lambda power, a, name, b, *, extra, flag: (a**power, b.sum(), extra["z"] + 1),
        static_argnums=(0, 2),
        static_argnames="flag",
        donate_argnums=(1, 3),
        donate_argnames="extra",
    )
    leaves, _ = donation(
        step, 2, ones(), "adam", ones(2, dtype=jnp.int32), extra={"z": ones(5), "y": ones(6)}, flag=(1, 2)
    )
    assert {leaf.aval: leaf.reused for leaf in leaves} == {
        "float32[]": True,
        "int32[2]": False,
        "float32[6]": False,
        "float32[5]": True,
    }
    assert fate(leaves)["extra['y']"] == "unused by the program"


def test_random_keys_and_half_bytes_are_counted_as_the_compiler_counts_them():
    """A typed key is two words; eight int4 are four bytes."""
    split = jax.jit(lambda key, small: (jax.random.split(key)[0], small + 1), donate_argnums=(0, 1))
    leaves, program = donation(split, jax.random.key(0), jnp.arange(8).astype(jnp.int4))
    assert [leaf.nbytes for leaf in leaves] == [8, 4]
    assert program.facts.argument_bytes == program.facts.donated_bytes == 12


def test_a_change_of_layout_is_told_by_the_array():
    """Whatever the compiler makes of two layouts, its own bytes and ours agree."""
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    rows, columns = Format(Layout((0, 1)), device), Format(Layout((1, 0)), device)
    turn = jax.jit(lambda a: a + 1, donate_argnums=0, in_shardings=rows, out_shardings=columns)
    (leaf,), program = donation(turn, ones(8, 4))
    assert (128 if leaf.reused else 0) == program.facts.aliased_bytes


# One buffer given twice


def shared(function, *args, **kwargs):
    lowered = lower(function, args, kwargs, role="subject", clock=time.perf_counter_ns)
    refuse_shared_buffers(lowered, (args, kwargs))


A = ones(8, 4)
EMPTY = jnp.ones((0, 4))
KEY = jax.random.key(0)
BOTH = jax.jit(lambda state, other: (jax.tree.map(jnp.copy, state), other), donate_argnums=0)
TWICE = {
    "one object in one tree": ({"a": A, "b": A}, ones(1), "state['a'] and state['b']"),
    "one object in two arguments": ({"a": A}, {"x": [A]}, "state['a'] and other['x'][0]"),
    "two objects, one buffer": ({"a": A}, jax.device_put(A, jax.devices()[0]), "state['a'] and other"),
    "one object without elements": ({"a": EMPTY}, EMPTY, "state['a'] and other"),
    "one random key": ({"a": KEY, "b": KEY}, A, "state['a'] and state['b']"),
    "the last of many": ([*(ones(i) for i in range(1, 9)), A], A, "state[8] and other"),
}


@pytest.mark.parametrize("what", TWICE)
def test_one_buffer_given_twice_is_invalid(what):
    """Both places are named, in the order of the arguments."""
    state, other, named = TWICE[what]
    with pytest.raises(InvalidCaseError) as caught:
        shared(BOTH, state, other)
    assert caught.value.stage == "looking at the arguments of the subject"
    assert f"found that {named} are one buffer" in caught.value.reason


def test_jax_says_the_same_only_when_it_runs():
    """The fault that is looked for: a call with the caller's own arguments raises."""
    a = ones(8, 4)
    with pytest.raises(InvalidCaseError, match="donate the same buffer twice"), guarded("calling"):
        jax.block_until_ready(BOTH({"a": a, "b": a}, ones(1)))


def test_copies_of_the_engine_hide_it():
    call = (({"a": A, "b": A}, ones(1)), {})
    refuse_shared_buffers(
        lower(BOTH, *call, role="subject", clock=time.perf_counter_ns), Feeder(call, donates=True).fresh()
    )


FINE = {
    "buffers of their own": ({"a": ones(8, 4), "b": ones(8, 4)}, ones(8, 4)),
    "a NumPy array, which JAX copies": ({"a": (host := np.ones((8, 4), np.float32)), "b": host}, host),
    "two without elements": ({"a": jnp.ones((0, 4)), "b": jnp.ones((0, 4))}, jnp.ones((0, 4))),
    "a Python number": ({"a": (number := 1000.5), "b": number}, number),
    "twice, and not donated": ({"a": ones(8, 4)}, (A, A)),
}


@pytest.mark.parametrize("what", FINE)
def test_what_jax_runs_is_not_refused(what):
    """The call is made, and the check had no objection; where nothing is donated one buffer may be given twice."""
    state, other = FINE[what]
    shared(BOTH, state, other)
    jax.block_until_ready(BOTH(state, other))
    shared(jax.jit(lambda a, b: a + b), A, A)


def test_static_arguments_do_not_confuse_the_names():
    step = jax.jit(lambda n, a, mode, b: (a * n, b), static_argnums=(0, 2), donate_argnums=1)
    with pytest.raises(InvalidCaseError, match=r"found that a and b are one buffer"):
        shared(step, 3, A, "fast", A)


# A mesh of eight virtual devices, in a process of its own

MESH = """
import json, time, warnings
import jax, jax.numpy as jnp
warnings.simplefilter("ignore")
jax.config.update("jax_num_cpu_devices", 8)
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.trace.clocks import CLOCKS; from jaxgate.observe.trace.stages import compile_program; from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.program.donation import read_donation, refuse_shared_buffers

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
SPLIT, WHOLE = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("x",), ()))
keep = jax.lax.with_sharding_constraint
found = {}

def case(name, function, *args, **options):
    program = compile_program(
        lower(jax.jit(function, **{"donate_argnums": 0, **options}), args, {}, role="subject", clock=time.time_ns),
        clocks=CLOCKS,
    )
    jax.block_until_ready(program.lowered.function(*args))
    leaves = read_donation(program, (args, {}))
    facts = program.facts
    found[name] = {
        "fate": {leaf.path: leaf.reused or leaf.why for leaf in leaves},
        "reused": sum(leaf.nbytes for leaf in leaves if leaf.reused),
        "signature": [leaf.nbytes for leaf in program.lowered.signature],
        "donated": facts.donated_bytes, "aliased": facts.aliased_bytes, "argument": facts.argument_bytes,
    }

def new(sharding=SPLIT, shape=(64, 4)):
    return jax.device_put(jnp.ones(shape), sharding)

case("both", lambda a, b: (a + 1, b + 1), new(), new(WHOLE), donate_argnums=(0, 1))
case("gathered", lambda a: keep(a + 1, WHOLE), new())
case("scattered", lambda a: keep(a + 1, SPLIT), new(WHOLE))
case("transposed", lambda a: keep(a.T + 1, NamedSharding(mesh, PartitionSpec(None, "x"))), new(shape=(64, 64)))
case("moved", lambda a: a + 1, jnp.ones((64, 4)), in_shardings=SPLIT)
case("dropped", lambda a, b: b + 1, new(), new(), donate_argnums=(0, 1))
case("keys", lambda key: key, jax.device_put(jax.random.split(jax.random.key(0), 8), SPLIT))
case("mapped", lambda a: jax.shard_map(lambda a: a * 2, mesh=mesh, in_specs=SPLIT.spec, out_specs=SPLIT.spec)(a), new())

a, whole = new(), new(WHOLE)
function = jax.jit(lambda a, b: (a + 1, b + 1), donate_argnums=0)
lowered = lower(function, (new(), new()), {}, role="subject", clock=time.time_ns)
pairs = {"split": (a, a), "one of eight": (whole, whole.addressable_shards[3].data), "apart": (new(), new())}
for name, pair in pairs.items():
    try:
        refuse_shared_buffers(lowered, (pair, {}))
        found[name] = ""
    except InvalidCaseError as error:
        found[name] = error.reason
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def mesh():
    """What eight devices show."""
    return json.loads(python("-c", MESH).splitlines()[-1])


WHOLE, SPLIT, UNUSED = "[64,4] on each device", "[8,4] on each device", "unused by the program"
MOVED = "it was given in another sharding than the program's, and copied before the call"
ON_THE_MESH = {  # fate of each leaf; bytes on one device: donated, of the arguments, aliased, reused
    "both": ([True, True], 1152, 1152, 1152, 1152),  # an eighth of what is split, and all of what is whole
    "gathered": ([f"another sharding: {SPLIT}, the result of this shape has [64,4]"], 128, 128, 0, 0),
    "scattered": ([f"another sharding: {WHOLE}, the result of this shape has [8,4]"], 1024, 1024, 0, 0),
    "transposed": ([True], 2048, 2048, 2048, 2048),
    "mapped": ([True], 128, 128, 128, 128),
    "keys": ([True], 8, 8, 8, 8),
    "moved": ([MOVED], 128, 128, 128, 0),  # the program reuses the copy that JAX made, the caller's buffer stays
    "dropped": ([UNUSED, True], 256, 128, 128, 128),  # no place in the program: lost all the same
}


@pytest.mark.parametrize("name", ON_THE_MESH)
def test_bytes_on_a_mesh_are_those_of_one_device(mesh, name):
    """Donated, argument, aliased and reused bytes speak alike; a gather cannot reuse its argument, a transpose can."""
    fates, *nbytes = ON_THE_MESH[name]
    seen = mesh[name]
    assert list(seen["fate"].values()) == fates
    assert [seen[kind] for kind in ("donated", "argument", "aliased", "reused")] == nbytes
    assert sum(seen["signature"]) == seen["donated"]


def test_one_shard_is_enough_to_share(mesh):
    """The same array twice, or one shard of it beside it; arrays of their own are fine."""
    assert "a and b are one buffer" in mesh["split"]
    assert "a and b are one buffer" in mesh["one of eight"]
    assert mesh["apart"] == ""


@pytest.mark.jax_text
def test_pmap_donates_what_it_was_asked_to():
    """JAX knows a ``pmap`` as a plain function: put under another ``jit`` it would lose its donation unseen."""
    mapped = jax.pmap(lambda scale, state, x: {"a": state["a"] * scale + x, "b": -state["b"]}, donate_argnums=1)
    state = {"a": ones(1, 4), "b": ones(1, 8)}
    leaves, program = donation(mapped, ones(1), state, ones(1, 4))
    assert fate(leaves) == {"state['a']": True, "state['b']": True}
    assert (program.facts.donated_bytes, program.facts.aliased_bytes) == (48, 48)
    assert compiled(jax.pmap(lambda x: x + 1), ones(1, 4)).facts.donated_bytes == 0
