"""Turns of loops, for structures in which a loop may stand: counted by hand beside each."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from support.measured import Store

from jaxgate.observe.execute.loop_turns import count_turns
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import CLOCKS
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stages import compile_program

HUNDRED, FOUR, EIGHT = jnp.float32(100), jnp.float32(4), jnp.ones(8)
MANY = jnp.array([2.0, 64.0, 8.0])
DIAGONAL = jnp.diag(jnp.arange(1.0, 9.0))


def halve(x):
    """A turn for each power of two."""
    return lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)


@jax.custom_vjp
def kept(x):
    """A loop with a gradient of its own."""
    return halve(x)


kept.defvjp(lambda x: (halve(x), x), lambda x, grad: (grad * halve(x),))


@jax.custom_jvp
def moved(x):
    """A loop with a derivative of its own."""
    return halve(x)


moved.defjvp(lambda primals, tangents: (moved(primals[0]), tangents[0] * halve(primals[0])))


def turns_of(function, *args, store=None):
    """What is counted for a function and its arguments."""
    lowered = lower(function, args, {}, role="subject", clock=CLOCKS.thread)
    program = compile_program(lowered, clocks=CLOCKS)
    compiled = SimpleNamespace(
        program=program, lowered=lowered, call=(args, {}), processes=1, inputs=str(args), surroundings=""
    )
    return count_turns(compiled, Tools(store=Store() if store is None else store))


COUNTED = {
    "a loop": (halve, (HUNDRED,), {"while float32[]": 7}),
    "a batch goes on for its last": (jax.vmap(halve), (MANY,), {"while float32[3]": 6}),
    "in a scan": (
        lambda xs: lax.scan(lambda total, x: (total + halve(x), x), 0.0, xs, reverse=True),
        (MANY,),
        {"while float32[]": 10},
    ),
    "in a loop": (
        lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, halve(s[1] * 16)), (0, x)),
        (FOUR,),
        {"while int32[]": 3, "while float32[]": 14},
    ),
    "in a branch": (
        lambda x: lax.cond(x > 3, halve, lambda x: x, x) + halve(x),
        (FOUR,),
        {"cond float32[] branch 0": 0, "cond float32[] branch 1": 1, "while float32[]": 2, "while float32[] #2": 2},
    ),
    "in a branch that is not taken": (
        lambda index, x: lax.switch(index, [halve, jnp.sin, jnp.cos], x),
        (jnp.int32(2), FOUR),
        {
            "cond float32[] branch 0": 0,
            "cond float32[] branch 1": 0,
            "cond float32[] branch 2": 1,
            "while float32[]": 0,
        },
    ),
    "a bound that is an argument": (lambda n: lax.fori_loop(0, n, lambda i, s: s + i, 0), (7,), {"while int32[]": 7}),
    "a jitted function twice": (lambda x: jax.jit(halve)(x) + jax.jit(halve)(x * 4), (FOUR,), {"while float32[]": 6}),
    "with donation": (jax.jit(halve, donate_argnums=0), (HUNDRED,), {"while float32[]": 7}),
    "under checkpoint": (jax.checkpoint(halve), (HUNDRED,), {"while float32[]": 7}),
    "a gradient of its own": (jax.grad(kept), (HUNDRED,), {"while float32[]": 7, "while float32[] #2": 7}),
    "a derivative of its own": (jax.grad(moved), (HUNDRED,), {"while float32[]": 7, "while float32[] #2": 7}),
    "conjugate gradients": (
        lambda matrix, b: jax.scipy.sparse.linalg.cg(lambda v: matrix @ v, b)[0],
        (DIAGONAL, EIGHT),
        {"while float32[8]": 8},
    ),
}


@pytest.mark.parametrize("structure", COUNTED)
def test_turns_are_counted_where_a_loop_may_stand(structure):
    function, args, expected = COUNTED[structure]
    found = turns_of(function, *args)
    assert (found.why_not, dict(found.counts)) == ("", expected)
    assert found.total == sum(count for name, count in expected.items() if name.startswith("while"))
    assert found.unknown == {}


def test_a_loop_has_its_line():
    assert turns_of(halve, HUNDRED).lines["while float32[]"].startswith("tests/observe/execute/test_loop_turns.py:")


WRITTEN = {
    "a length": lambda x: lax.fori_loop(0, 7, lambda i, s: s + x, x),
    "no loop": jnp.sin,
    "a branch alone": lambda x: lax.cond(x > 3, jnp.sin, jnp.cos, x),
}


@pytest.mark.parametrize("program", WRITTEN)
def test_nothing_is_compiled_where_every_length_stands_in_the_program(program):
    store = Store()
    found = turns_of(WRITTEN[program], FOUR, store=store)
    assert (found.total, found.why_not, dict(found.counts), store) == (0, "", {}, {})


def on_a_mesh(x):
    """A loop on each device by itself."""
    mesh = jax.make_mesh((1,), ("data",))
    return jax.shard_map(jax.vmap(halve), mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)


def printing(x):
    """A loop beside a call of Python."""
    jax.debug.print("{}", x)
    return halve(x)


def of_any_length(x):
    """Loops of JAX's own, which it adds while it lowers, beside many that have their length in them."""
    for _ in range(9):
        x = lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1]
    return jax.scipy.special.gammainc(x, x) + halve(x[0])


def asks_in_its_test(x):
    """A loop in the test of a loop, which runs once more than it turns."""
    return lax.while_loop(lambda x: halve(x) < x, lambda x: x / 2, x)


HIDDEN = "a loop or a branch in a shard_map, in a kernel, or of JAX's own is not counted"


@pytest.mark.parametrize(
    ("function", "args", "why"),
    [
        (on_a_mesh, (EIGHT,), HIDDEN),
        (of_any_length, (EIGHT,), HIDDEN),
        (asks_in_its_test, (FOUR,), HIDDEN),
        (printing, (FOUR,), "counting them would call its Python once more"),
    ],
    ids=["shard_map", "beside others", "test", "callback"],
)
def test_what_cannot_be_counted_says_why(monkeypatch, function, args, why):
    """Nothing is guessed, and nothing of the program is called again."""
    if function is on_a_mesh:
        mesh = jax.make_mesh((1,), ("data",))
        args = (jax.device_put(EIGHT, NamedSharding(mesh, P("data"))),)
    found = turns_of(function, *args)
    assert (found.total, found.unknown, dict(found.counts)) == (None, {"loop_turns": why}, {})
    monkeypatch.setattr("jaxgate.observe.execute.loop_turns._Copy", None)  # whatever the copy runs into
    assert turns_of(halve, HUNDRED).why_not.startswith("the copy that counts them fails: ")


def test_what_was_counted_is_remembered_with_the_arguments():
    """The same program with other values is counted again."""
    store = Store()
    assert turns_of(halve, HUNDRED, store=store).total == 7
    ((key, (counts, _)),) = store.items()
    counts["while float32[]"] = 9
    assert turns_of(halve, HUNDRED, store=store).total == 9
    assert turns_of(halve, FOUR, store=store).total == 2
    assert len(store) == 2
    assert key in store
