"""Jitted functions within a plain one: which are the project's, which one does everything, what of it is measured."""

import functools

import jax
import jax.numpy as jnp
import pytest

from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.computation import Computation
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.lowering import lower

W, X = {"a": jnp.ones((4, 4)), "b": jnp.ones(3)}, jnp.ones(4)


def clock():
    return 0


@functools.partial(jax.jit, donate_argnums=0)
def step(w, x):
    return {name: leaf + x.sum() for name, leaf in w.items()}


@jax.jit
def loss(w, x):
    return jnp.clip(w["a"], 0, 1).sum() + x.sum()


@jax.jit
def pair(w, x):
    return w["a"] * 2, x * 2


@functools.partial(jax.jit, donate_argnums=0)
def swapped(old, new):
    return old + 2 * new


def times(number):
    """One of several jitted functions of the same code."""
    return jax.jit(lambda x: x * number)


@functools.wraps(step)
def around(*args, **kwargs):
    return step(*args, **kwargs)


def turned(x, w):
    return step(w, x)


def between(w, x):
    return step(w, x * 2), loss(w, x)


def parted(w, b, x):
    """Hands on a state that it puts together of two arguments, of which one is a part."""
    return step({"a": w[0], "b": b}, x)


def lowered(function, *args, **kwargs):
    return lower(function, args, kwargs, role="subject", clock=clock)


def donated(found):
    return [leaf.path for leaf in found.signature if leaf.donated]


@pytest.mark.parametrize(("args", "kwargs"), [((W, X), {}), ((W,), {"x": X})], ids=["positions", "keyword"])
def test_a_function_that_calls_through_is_the_jitted_one(args, kwargs):
    """Its program, donation and options are the function's own; what is called is what the loop calls."""
    found, bare = lowered(around, *args, **kwargs), lowered(step, *args, **kwargs)
    assert (found.function, found.called, found.unseen) == (step, around, "")
    assert (found.fingerprint, found.signature) == (bare.fingerprint, bare.signature)
    assert donated(found) == ["w['a']", "w['b']"]


@pytest.mark.parametrize(("function", "name"), [(around, "step"), (between, "between")])
def test_only_what_is_gated_is_lowered(function, name):
    """What is around a jitted function is traced to find it, and no more."""
    jax.clear_caches()  # what another test has lowered would not be lowered again
    with record() as events:
        lowered(function, W, X)
    assert events.lowerings == [name]


def test_arguments_in_another_order_keep_their_donation():
    """The Python around it is not called, and the line says so."""
    found = lowered(turned, X, W)
    assert donated(found) == ["w['a']", "w['b']"]
    assert found.unseen.startswith("calls jitted step(): gated without the Python around it")
    assert donated(lowered(turned, x=X, w=W)) == ["w['a']", "w['b']"]


@pytest.mark.parametrize(
    ("function", "args", "names"),
    [
        (between, (W, X), "step(), loss()"),
        (lambda w, x: (step(w, x), w["a"] + 1), (W, X), "step()"),
        (lambda w, x: step(w, x)["a"], (W, X), "step()"),
        (lambda w, x, _: step(w, x), (W, X, X), "step()"),
    ],
    ids=["two", "and an operation", "not all its results", "not all its arguments"],
)
def test_more_than_one_call_is_one_program_that_nobody_runs(function, args, names):
    """Nothing is donated, and the line names who else is called."""
    found = lowered(function, *args)
    assert donated(found) == []
    assert found.called is found.function
    assert found.unseen.startswith(f"calls jitted {names}: gated as one program; what Python does between them")


def test_a_part_of_an_argument_is_not_donated():
    found = lowered(parted, (W["a"], X), W["b"], X)
    assert donated(found) == []
    assert "donation" in found.unseen


@pytest.mark.parametrize(
    "function",
    [lambda w, x: jnp.where(x > 0, jnp.clip(x, 0, 1), w["b"].sum()), lambda w, x: jax.nn.relu(x) + w["b"][0]],
    ids=["numpy", "nn"],
)
def test_helpers_of_jax_do_not_count(function):
    """They are jitted, and nobody's loop is written around them."""
    assert lowered(function, W, X).unseen == ""


def test_a_jitted_function_is_what_the_loop_runs():
    assert lowered(jax.jit(between), W, X).unseen == ""


def test_a_function_that_is_made_anew_is_not_the_one_that_is_found():
    found = lowered(lambda w, x: jax.jit(lambda w, x: loss.__wrapped__(w, x))(w, x), W, X)
    assert found.called is found.function
    assert found.unseen.startswith(
        "calls jitted <lambda>(): gated without the Python around it, whose time and retraces"
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda w, x: pair(w, x)[::-1],
        lambda w, x: dict(zip("ab", pair(w, x), strict=True)),
        lambda w, x: (*pair(w, x), 1.0),
    ],
    ids=["in another order", "in another tree", "beside a constant"],
)
def test_results_that_are_given_otherwise_are_not_those_of_the_jitted_one(function):
    """Its program would be threaded by places that the loop does not have."""
    found = lowered(function, W, X)
    assert found.called is found.function is not pair
    assert found.unseen.startswith("calls jitted pair(): gated")


def test_arguments_of_one_kind_in_another_order_are_not_those_of_the_jitted_one():
    """Its program fits them all the same, and would be fed with the other one's state."""
    found = lowered(lambda new, old: swapped(old, new), X, X)
    assert found.called is found.function is not swapped
    assert donated(found) == ["old"]


def test_another_function_of_the_same_code_is_not_the_one_that_is_called():
    """A decorator makes many of one code: the nearest would be gated, and not what the loop runs."""
    twice, thrice = times(2), times(3)
    assert lowered(lambda x: (thrice, twice)[1](x), X).function is twice


def test_names_are_those_of_the_function_that_is_gated():
    """Else each argument under another name would be taken for a static one, and looked at in each step."""
    found = lowered(lambda params, batch: step(params, batch), W, X)
    assert (found.function, found.names) == (step, ("w", "x"))
    assert [leaf.path for leaf in found.signature] == [leaf.path for leaf in lowered(step, W, X).signature]


def test_who_was_a_reference_before_is_gated_alike():
    """What was measured before in a process decides nothing."""

    @jax.jit
    def inner(x):
        return x * 2

    def naive(x):
        return inner(x)

    computation = Computation(subject=lambda x: x + x, args=(X,), reference=naive)
    observe(lambda: computation, Tools(store=ReferenceCache(None), sampling=False))
    found = lowered(naive, X)
    assert (found.function, found.unseen) == (inner, "")
