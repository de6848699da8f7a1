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


STATE = ["w['a']", "w['b']"]
ONE, MANY = (
    "gated without the Python around it, whose time and retraces",
    "gated as one program; what Python does between",
)
GATED = {  # function, arguments, the jitted function that is gated in its place, what it donates, what is not seen
    "calls through": (around, (W, X), {}, step, STATE, ""),
    "calls through, by keyword": (around, (W,), {"x": X}, step, STATE, ""),
    # Arguments in another order keep their donation; the Python around it is not called.
    "turned": (turned, (X, W), {}, None, STATE, f"step(): {ONE}"),
    "turned, by keyword": (turned, (), {"x": X, "w": W}, None, STATE, f"step(): {ONE}"),
    # More than one call is one program that nobody runs.
    "two": (between, (W, X), {}, None, [], f"step(), loss(): {MANY}"),
    "and an operation": (lambda w, x: (step(w, x), w["a"] + 1), (W, X), {}, None, [], f"step(): {MANY}"),
    "not all its results": (lambda w, x: step(w, x)["a"], (W, X), {}, None, [], f"step(): {MANY}"),
    "not all its arguments": (lambda w, x, _: step(w, x), (W, X, X), {}, None, [], f"step(): {MANY}"),
    "a part of an argument": (parted, ((W["a"], X), W["b"], X), {}, None, [], f"step(): {MANY}"),
    # Helpers of JAX are jitted, and nobody's loop is written around them.
    "numpy": (lambda w, x: jnp.where(x > 0, jnp.clip(x, 0, 1), w["b"].sum()), (W, X), {}, None, [], ""),
    "nn": (lambda w, x: jax.nn.relu(x) + w["b"][0], (W, X), {}, None, [], ""),
    "a jitted one": (jax.jit(between), (W, X), {}, None, [], ""),
    "made anew": (
        lambda w, x: jax.jit(lambda *a: loss.__wrapped__(*a))(w, x),
        (W, X),
        {},
        None,
        [],
        f"<lambda>(): {ONE}",
    ),
    # Its program would be threaded by places that the loop does not have.
    "results in another order": (lambda w, x: pair(w, x)[::-1], (W, X), {}, None, [], "pair(): gated"),
    "results in another tree": (lambda w, x: dict(enumerate(pair(w, x))), (W, X), {}, None, [], "pair(): gated"),
    "results beside a constant": (lambda w, x: (*pair(w, x), 1.0), (W, X), {}, None, [], "pair(): gated"),
    # Its program fits two of one kind all the same, and would be fed with the other one's state.
    "swapped": (lambda new, old: swapped(old, new), (X, X), {}, None, ["old"], f"swapped(): {ONE}"),
}


@pytest.mark.parametrize(("function", "args", "kwargs", "only", "donates", "said"), GATED.values(), ids=GATED)
def test_what_is_gated_of_a_plain_function(function, args, kwargs, only, donates, said):
    """The one jitted function that it does nothing but hand on to, called as the loop calls it; else it as one program."""
    found = lowered(function, *args, **kwargs)
    assert (donated(found), found.unseen[: len(said) + 13]) == (donates, f"calls jitted {said}" if said else "")
    if only is None:
        assert found.called is found.function
        assert found.function not in (step, loss, pair, swapped)
    else:
        bare = lowered(only, *args, **kwargs)
        assert (found.function, found.called) == (only, function)
        assert (found.fingerprint, found.signature) == (bare.fingerprint, bare.signature)


@pytest.mark.parametrize(("function", "name"), [(around, "step"), (between, "between")])
def test_only_what_is_gated_is_lowered(function, name):
    """What is around a jitted function is traced to find it, and no more."""
    jax.clear_caches()  # what another test has lowered would not be lowered again
    with record() as events:
        lowered(function, W, X)
    assert events.lowerings == [name]


def test_another_function_of_the_same_code_is_not_the_one_that_is_called():
    """A decorator makes many of one code: the nearest would be gated, and not what the loop runs; or it takes other shapes."""
    twice, thrice, longer = times(2), times(3), times(jnp.ones(5))
    assert lowered(lambda x: (thrice, twice)[1](x), X).function is twice
    assert lowered(lambda x: (longer, twice)[1](x), X).function is twice


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
