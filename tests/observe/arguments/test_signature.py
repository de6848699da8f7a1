"""The arguments of a call by name, what made two calls differ, and the hash of their values."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgate.model.measurement import Argument
from jaxgate.observe.arguments.feeder import inputs_fingerprint
from jaxgate.observe.arguments.signature import (
    argument_keys,
    argument_names,
    explain,
    leaves_with_paths,
    replicated_bytes,
    to_host,
)
from jaxgate.observe.trace.lowering import lower

X = jnp.ones((2, 3))


def test_what_is_read_of_pinned_host_memory_is_a_copy():
    """NumPy's view of an array forbids its donation (an H100, jax 0.11.2): none is made of the array itself."""
    pinned = jax.device_put(X, X.sharding.with_memory_kind("pinned_host"))
    assert not np.shares_memory(to_host(pinned), np.asarray(pinned))
    np.testing.assert_array_equal(to_host(pinned), X)


def step(state, batch, *, rate=0.1):
    """A function with names."""
    return {"w": state["w"] - rate * batch.sum()}, state["n"] + 1


class Model:
    """A function in another guise."""

    def step(self, state, batch):
        return state * batch

    def __call__(self, inputs):
        return inputs * 2


NAMES = {
    "plain": (step, 2, ("state", "batch")),
    "jitted": (jax.jit(step), 2, ("state", "batch")),
    "bound-method": (Model().step, 2, ("state", "batch")),
    "callable-object": (Model(), 1, ("inputs",)),
    "partial": (functools.partial(step, rate=1), 2, ("state", "batch")),
    "partial-of-the-first": (functools.partial(step, {}), 1, ("batch",)),
    "gradient": (jax.grad(step), 2, ("state", "batch")),
    "variadic": (lambda first, *_: first, 3, ("first", "args[1]", "args[2]")),
    "unknown": (jnp.ones, 0, ()),
}


@pytest.mark.parametrize(("function", "count", "names"), NAMES.values(), ids=NAMES)
def test_names_come_from_the_author(function, count, names):
    """Positional arguments are named as in the function's own signature."""
    assert argument_names(function, count) == names


def test_a_function_without_signature_counts_its_arguments():
    """Where Python knows no names, positions stand in."""
    assert argument_names(dict.fromkeys, 2) in (("iterable", "value"), ("args[0]", "args[1]"))
    assert argument_names(object(), 2) == ("args[0]", "args[1]")


def test_paths_go_down_the_tree():
    """Every leaf is named by its argument and the way to it; ``None`` is no leaf."""
    found = leaves_with_paths(({"w": 1, "m": [2, None, (3,)]},), {"rate": 4}, ("state",))
    assert found == [("state['m'][0]", 2), ("state['m'][2][0]", 3), ("state['w']", 1), ("rate", 4)]


def lines_of(function, args, kwargs):
    """The signature of a lowered function."""
    return lower(function, args, kwargs, role="subject", clock=lambda: 0).signature


def test_signature_of_a_lowered_function():
    """Leaf by leaf: path, dtype and shape, bytes, donation; keyword arguments by their keyword."""
    jitted = jax.jit(step, donate_argnames="state")
    state = {"w": X, "n": jnp.int32(0)}
    assert lines_of(jitted, (state, X.astype("bfloat16")), {"rate": 0.5}) == (
        Argument(path="state['n']", aval="int32[]", nbytes=4, donated=True),
        Argument(path="state['w']", aval="float32[2,3]", nbytes=24, donated=True),
        Argument(path="batch", aval="bfloat16[2,3]", nbytes=12, donated=False),
        Argument(path="rate", aval="float32[]", nbytes=4, donated=False),
    )


@pytest.mark.parametrize(
    ("options", "args", "kwargs", "paths"),
    [
        ({"static_argnames": "n"}, (X,), {"n": 3, "b": X}, ["a", "b"]),
        ({"static_argnums": 2}, (X, X, 3), {}, ["a", "b"]),
        ({"static_argnums": 0}, (3, X, X), {}, ["b", "n"]),
        ({"static_argnums": 1}, (X, 3, X), {}, ["a", "n"]),
    ],
    ids=["static-by-keyword", "static-last", "static-first", "static-in-the-middle"],
)
def test_static_arguments_leave_the_names_of_the_others(options, args, kwargs, paths):
    """A static argument is none of the program's inputs; the others keep the names that their author gave them."""
    jitted = jax.jit(lambda a, b, n: a * b * n, **options)
    assert [leaf.path for leaf in lines_of(jitted, args, kwargs)] == paths


ONE_DEVICE = Mesh(np.array(jax.devices()[:1]), ("x",))
SHARDED = jax.device_put(jnp.ones(4), NamedSharding(ONE_DEVICE, PartitionSpec("x")))
REPLICATED = jax.device_put(jnp.ones(4), NamedSharding(ONE_DEVICE, PartitionSpec()))

CHANGES = {
    "dtype": (jnp.ones(8, "bfloat16"), jnp.ones(8), "state: bfloat16[8] → float32[8]"),
    "shape": (jnp.ones(8), jnp.ones(9), "state: float32[8] → float32[9]"),
    "weak-type": (jnp.asarray(1.0), jnp.float32(1), "state: float32[] (weak type) → float32[]"),
    "python-scalar": (jnp.float32(1), 1.0, "state: float32[] → Python float (weak type)"),
    "python-scalars": (1, True, "state: Python int (weak type) → Python bool (weak type)"),
    "random-key": (jax.random.key(0), jax.random.key(0, impl="rbg"), "state: key<fry>[] → key<rbg>[]"),
    "committed": (
        jnp.ones(4),
        jax.device_put(jnp.ones(4), jax.devices()[0]),
        "state: uncommitted → committed to its device",
    ),
    "static": ("relu", "gelu", "state: static 'relu' → static 'gelu'"),
    "tree": ({"w": X}, {"w": X, "m": X}, "the tree of the arguments changed at state['m']"),
    **{  # values never cause a retrace, and no message blames them
        f"value of {type(value).__name__}": (
            value,
            value + 1,
            "no argument differs in shape, dtype, weak type or placement: cause unknown",
        )
        for value in (X, 1.0, np.float32(1), np.ones(3))
    },
}


@pytest.mark.parametrize(("old", "new", "text"), CHANGES.values(), ids=CHANGES)
def test_a_difference_is_explained(old, new, text):
    """What JAX's caches look at is what a message names."""
    assert explain(argument_keys((old,), {}, ("state",)), argument_keys((new,), {}, ("state",))) == text


def test_a_changed_sharding_is_explained():
    text = explain(argument_keys((SHARDED,), {}, ("state",)), argument_keys((REPLICATED,), {}, ("state",)))
    assert text.startswith("state: sharding NamedSharding(")
    assert "PartitionSpec('x',)" in text or "P('x',)" in text
    assert " → NamedSharding(" in text


def test_three_differences_are_named_and_the_rest_counted():
    """A message stays readable when a whole tree drifts."""
    before, after = [jnp.ones(1)] * 5, [jnp.ones(2)] * 5
    text = explain(argument_keys((before,), {}, ("state",)), argument_keys((after,), {}, ("state",)))
    assert text.count("float32[1] → float32[2]") == 3
    assert text.startswith("state[0]: ")
    assert text.endswith("; and 2 more")


INPUTS = [
    ((1, 23), {}),
    ((12, 3), {}),
    ((1,), {"b": 23}),
    ((1.0, 23), {}),
    ((jnp.arange(4),), {}),
    ((jnp.arange(4).reshape(2, 2),), {}),
    ((jnp.arange(4.0),), {}),
    ((jnp.arange(4.0, dtype="bfloat16"),), {}),
    ((jnp.array([0, 1, 2, 4]),), {}),
    ((jnp.array([True, False]),), {}),
    ((jnp.array([True, True]),), {}),
    ((jnp.array([1, 2, 3]).astype("int4"),), {}),
    ((jnp.array([1, 2, 4]).astype("int4"),), {}),
    ((jax.random.key(0),), {}),
    ((jax.random.key(1),), {}),
    ((jnp.zeros((0, 3)),), {}),
    ((jnp.zeros((0, 4)),), {}),
    (("relu",), {}),
    (([jnp.arange(2), jnp.arange(2)],), {}),
]


def test_other_inputs_have_another_fingerprint():
    """Values, dtypes, shapes and the borders between arguments reach the hash."""
    found = [inputs_fingerprint(args, kwargs) for args, kwargs in INPUTS]
    # (1, 23) may equal (1, b=23): the signature tells those two apart.
    assert len(set(found)) >= len(INPUTS) - 1
    assert found[0] != found[1]


def test_equal_inputs_have_one_fingerprint():
    """Where an array lives, and the order of keywords, do not count."""
    first = inputs_fingerprint((jnp.arange(4.0),), {"a": 1, "b": 2})
    assert first == inputs_fingerprint((np.arange(4, dtype=np.float32),), {"b": 2, "a": 1})


def test_values_on_the_host():
    """Arrays become NumPy's; a typed key gives its words."""
    assert to_host(jnp.ones(2, "bfloat16")).dtype.name == "bfloat16"
    assert to_host(jax.random.key(7)).tolist() == [0, 7]


def test_what_devices_hold_because_others_hold_it_too_is_counted():
    """Beyond an even share of each argument that the program uses; nothing on one device."""
    given = SimpleNamespace(args_info=[jax.ShapeDtypeStruct((8, 4), "float32")] * 3)

    def spread(*shape, devices):
        return SimpleNamespace(num_devices=devices, shard_shape=lambda _: shape)

    shardings = [spread(8, 4, devices=4), spread(2, 4, devices=4), None]
    assert replicated_bytes(given, shardings) == 8 * 4 * 4 - 8 * 4
    assert replicated_bytes(given, [spread(4, 4, devices=4), None, None]) == 4 * 4 * 4 - 8 * 4
    assert replicated_bytes(given, [spread(8, 4, devices=1)] * 3) == 0
