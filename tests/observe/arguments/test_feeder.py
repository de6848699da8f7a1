"""Fresh arguments for every call: copies that JAX cannot tell from the originals, and originals that survive."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgate.observe.arguments.feeder import Feeder, on_device
from jaxgate.observe.trace.compile_events import record

DEVICE = jax.devices()[0]
SPLIT = NamedSharding(Mesh(np.array([DEVICE]), ("x",)), PartitionSpec("x"))

LEAVES = {
    "plain": lambda: jnp.arange(4.0),
    "scalar": lambda: jnp.float32(3),
    "weak-type": lambda: jnp.asarray(3.0),
    "weak-integer": lambda: jnp.asarray(3),
    "bfloat16": lambda: jnp.arange(4, dtype="bfloat16"),
    "int4": lambda: jnp.arange(4).astype("int4"),
    "bool": lambda: jnp.array([True, False]),
    "complex": lambda: jnp.array([1 + 2j]),
    "empty": lambda: jnp.zeros((0, 3)),
    "committed": lambda: jax.device_put(jnp.arange(4.0), DEVICE),
    "sharded": lambda: jax.device_put(jnp.arange(4.0), SPLIT),
    "random-key": lambda: jax.random.key(3),
    "committed-random-key": lambda: jax.device_put(jax.random.key(3), DEVICE),
    "random-keys": lambda: jax.random.split(jax.random.key(3), 4),
    "raw-random-key": lambda: jax.random.PRNGKey(3),
}


def words(array):
    """The values of an array or of random keys."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    return np.asarray(array)


@pytest.mark.parametrize("make", LEAVES.values(), ids=LEAVES)
def test_a_copy_is_like_its_original(make):
    """A copy has its original's aval, weak type, placement and values, in a buffer of its own."""
    # Two more leaves of other placement, so that none can pass its own on to the copies of the others.
    leaf, neighbours = make(), (jax.device_put(jnp.ones(2), DEVICE), jnp.ones(2))
    ((copy, *_), _) = Feeder(((leaf, *neighbours), {}), donates=True).fresh()
    assert copy is not leaf
    assert copy.aval == leaf.aval
    assert getattr(copy, "weak_type", None) == getattr(leaf, "weak_type", None)
    assert copy.committed == leaf.committed
    assert copy.sharding == leaf.sharding
    assert np.array_equal(words(copy), words(leaf))
    copy.delete()
    assert not leaf.is_deleted()


def test_what_is_not_an_array_goes_through():
    """Python scalars, strings and ``None`` are handed on as they are, and the tree keeps its form."""
    call = (({"w": jnp.ones(2), "name": "relu", "rate": 0.1, "none": None}, (3,)), {"flag": True})
    (state, rest), kwargs = Feeder(call, donates=True).fresh()
    assert state["name"] == "relu"
    assert type(state["rate"]) is float
    assert state["none"] is None
    assert (rest, kwargs) == ((3,), {"flag": True})


def test_the_callers_arrays_survive_donation():
    """Arguments may be consumed again and again; the originals keep their values."""
    state = {"w": jnp.arange(3.0)}
    feeder = Feeder(((state,), {"b": jnp.ones(3)}), donates=True)
    step = jax.jit(lambda s, b: {"w": s["w"] + b}, donate_argnums=0)
    for _ in range(3):
        (given,), kwargs = feeder.fresh()
        assert np.asarray(step(given, **kwargs)["w"]).tolist() == [1, 2, 3]
        assert given["w"].is_deleted()
    assert np.asarray(state["w"]).tolist() == [0, 1, 2]
    assert feeder.copies
    shared = jnp.ones(3)  # one buffer cannot be donated twice
    (a, b), _ = Feeder(((shared, shared), {}), donates=True).fresh()
    assert a is not b
    jax.jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))(a, b)
    assert not shared.is_deleted()
    kept = Feeder(((shared,), {}), donates=False)  # nothing is consumed: nothing is copied
    assert kept.fresh()[0][0] is shared
    assert not kept.copies


def test_host_arrays_move_once():
    """NumPy arrays are put on the device, uncommitted; everything else stays what it is."""
    here = jnp.ones(2)
    (moved, same, number), kwargs = on_device((np.ones(3, np.float32), here, 2.0), {"b": [np.zeros(2, np.int32)]})
    assert isinstance(moved, jax.Array)
    assert (moved.dtype, moved.shape, moved.committed) == (np.float32, (3,), False)
    assert same is here
    assert type(number) is float
    assert isinstance(kwargs["b"][0], jax.Array)


@pytest.mark.parametrize("make", LEAVES.values(), ids=LEAVES)
def test_feeding_never_causes_a_retrace(make):
    """A function that was called with the caller's arguments hits its caches with their copies."""
    call = ((make(), make()), {"c": make()})
    step = jax.jit(lambda a, b, *, c: (a, b, c), donate_argnums=0)
    step.trace(*call[0], **call[1]).lower().compile()
    feeder = Feeder(call, donates=True)
    for _ in range(2):
        args, kwargs = feeder.fresh()
        with record() as events:
            jax.block_until_ready(step(*args, **kwargs))
        assert (events.traces, events.compiles) == ([], [])
