"""Gates that are written from the calls of a watched run."""

import functools
import sys
from enum import IntEnum
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxgate.ext.watch.gates import MOST, Call, _call, call_here, gates_of
from jaxgate.ext.watch.recorder import Recorder

X = np.ones((3, 4), np.float32)


@pytest.fixture
def library(monkeypatch):
    """A module with a function, plain and jitted, that its package shows, too."""
    package, module = ModuleType("lib"), ModuleType("lib.inner")

    def step(state, batch, **options):
        del batch, options
        return state

    step.__module__, step.__qualname__ = "lib.inner", "step"
    module.step = functools.partial(jax.jit, static_argnames=("n", "act"))(step)
    monkeypatch.setitem(sys.modules, "lib", package)
    monkeypatch.setitem(sys.modules, "lib.inner", module)
    return package, module


def made_again(call):
    """The arguments that a written call gives."""
    given = {"shape": jax.ShapeDtypeStruct, "jax": jax, "optax": optax}
    return eval(f"[{', '.join(call.arguments)}]", given), eval(f"{{{', '.join(call.named)}}}", given)


def test_arguments_are_written_as_shapes(library):
    """Of trees of NumPy and JAX arrays, keys, numbers, static values and named tuples; the text makes the same again."""
    _, module = library
    state = {"params": [X, (jnp.bfloat16(1),)], "opt": optax.ScaleByAdamState(jnp.int32(0), X, None)}
    args = state, (2, 0.5, True), jax.random.key(0)
    call = _call(module.step, args, {"n": 3, "act": optax.adam})
    assert (call.written, call.why_not) == ("lib.inner.step", "")
    assert call.modules == {"lib.inner", "optax"}
    again, named = made_again(call)
    assert jax.tree.map(lambda leaf: getattr(leaf, "shape", leaf), again) == jax.tree.map(
        lambda leaf: getattr(leaf, "shape", leaf), list(args)
    )
    types = [str(leaf.dtype) for leaf in jax.tree.leaves(again) if hasattr(leaf, "dtype")]
    assert types == ["int32", "float32", "float32", "bfloat16", "key<fry>"]
    assert named == {"n": 3, "act": optax.adam}


def test_a_function_is_named_as_its_package_shows_it(library):
    package, module = library
    package.step = module.step
    assert _call(module.step, (), {}).written == "lib.step"


class Mode(IntEnum):
    """A number whose text is no Python."""

    TRAIN = 1


class Model:
    """What no line of Python makes."""


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((Model(),), "takes a Model"),
        ((Mode.TRAIN,), "takes a Mode"),
        ((jax.random.key(0, impl="rbg"),), "takes a key<rbg>"),
        ((float("nan"),), "takes a float"),
        ((lambda x: x,), "stands within a function"),
        (([Model],), "stands in a test"),
    ],
)
def test_what_cannot_be_written_is_told(library, args, text):
    assert _call(library[1].step, args, {}).why_not == text


def test_a_call_within_a_transformation_is_left_alone(library):
    """It is given tracers; nor does anything that a look raises reach the test."""

    class Odd(np.ndarray):
        @property
        def shape(self):
            raise RuntimeError("ask me nothing")

    step = library[1].step
    with Recorder(str, look=call_here) as recorder:
        jax.vmap(step, (0, None))(X, 1)
        jax.jit(lambda x: x + 1)(np.ones(3))
        recorder.test("test", 1.0)
        assert {call.why_not for _, call in recorder.calls} == {
            "is called within a transformation",
            "stands within a function",
        }
    with Recorder(str, look=lambda: X.view(Odd).shape) as recorder:
        jax.jit(lambda x: x + 2)(np.ones(3))
        recorder.test("test", 1.0)
    assert (recorder.calls, len(recorder.seen.made)) == ([], 1)


def test_another_function_of_its_name_is_not_it(library):
    step = library[1].step
    library[1].step = None
    assert _call(step, (), {}).why_not == "is not what its module has under that name"


def test_the_largest_call_of_each_function_is_gated():
    """The largest functions first, names that are taken with a number; what is left out is told."""
    calls = [({"xla_flops": size}, Call(f"m.f{size}", f"m.f{size}", (str(size),))) for size in range(MOST + 1)]
    calls += [({"xla_flops": 99}, Call("m.f3", "m.f3", ("99",))), ({"xla_flops": 98}, Call("n.f3", "n.f3"))]
    calls += [({}, Call("m.<lambda>", why_not="stands within a function"))]
    text, told = gates_of(calls)
    gates = [line.strip() for line in text.splitlines() if line.startswith("    gate(")]
    assert gates == [
        "gate(m.f3, 99)",
        "gate(n.f3)",
        *(f"gate(m.f{size}, {size})" for size in range(10, 2, -1) if size != 3),
        "gate(m.f2, 2)",
    ]
    assert [line for line in text.splitlines() if line.startswith("def test_f3")] == [
        "def test_f3(gate):",
        "def test_f3_1(gate):",
    ]
    assert told.endswith("10 gates of the largest programs; not gated: <lambda> stands within a function")
    assert gates_of(calls[-1:]) == (
        "",
        "perf/test_watched.py is not written: no function of 1 can be called from there; not gated: <lambda> stands within a function",
    )


def test_calls_of_a_run_are_noted_while_they_compile(library):
    """Those of tests that gate are not, nor JAX's own."""
    _, module = library
    with Recorder(str, look=call_here) as recorder:
        module.step(X, 1)
        jnp.cumsum(X)
        recorder.test("first", 1.0)
        module.step(X, 2.5)
        recorder.test("a gate", 1.0, keep=False)
    ((facts, call),) = recorder.calls
    assert (call.written, call.arguments) == ("lib.inner.step", ("shape((3, 4), 'float32')", "1"))
    assert facts["argument_bytes"] == X.nbytes
