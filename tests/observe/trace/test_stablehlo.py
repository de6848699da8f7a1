"""The structural fingerprint, and what one walk over a module finds: identical programs agree, different ones do not."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from support.processes import python

from jaxgate.observe.trace.fingerprint import program_fingerprint
from jaxgate.observe.trace.stablehlo import NAMED_CONSTANT_BYTES, read_structure

X = jnp.arange(4.0)
M = jnp.ones((4, 4))


def module(function, *args, **jit):
    return jax.jit(function, **jit).lower(*args).compiler_ir("stablehlo")


def fingerprint(function, *args, **jit):
    return program_fingerprint(module(function, *args, **jit))


def written(text):
    """The function ``f`` of a source text that stands nowhere."""
    scope = {"jax": jax, "jnp": jnp, "lax": lax, "np": np}
    exec(text, scope)
    return scope["f"]


PLAIN = "def f(x):\n    a = jnp.sin(x)\n    b = jnp.cos(x)\n    return a - b\n"
HELPER = "@jax.jit\ndef helper(x):\n    return jnp.sin(x) * 2\ndef f(x):\n    return helper(x) + helper(x + 1)\n"
SCAN = (
    "def f(x):\n    def body(c, _):\n        a, b = c\n        p = jnp.sin(a)\n        q = jnp.cos(b)\n"
    "        return (p + q, q), None\n    return lax.scan(body, (x, 2 * x), None, length=5)[0]\n"
)
BRANCH = "def f(x):\n    y = x * 3\n    z = x * 5\n    return lax.cond(x[0] > 1, lambda: y - z, lambda: z)\n"
KEYS = "def f(x):\n    return {'loss': x.sum(), 'step': x + 1}\n"

SAME = {
    "renamed-variables": (PLAIN, PLAIN.replace("a ", "left ").replace("b\n", "right\n").replace("b ", "right ")),
    "renamed-function": (PLAIN, PLAIN.replace("def f", "def other") + "f = other\n"),
    "moved-lines": (PLAIN, "\n\n# a comment\n\n" + PLAIN.replace("return", "\n\n    return")),
    "reordered-lines": (PLAIN, "def f(x):\n    b = jnp.cos(x)\n    a = jnp.sin(x)\n    return a - b\n"),
    "renamed-nested-helper": (HELPER, HELPER.replace("helper", "assistant")),
    "helper-not-jitted-on-its-own": (HELPER, HELPER.replace("@jax.jit\n", "")),
    "reordered-lines-in-a-scan": (
        SCAN,
        SCAN.replace(
            "        p = jnp.sin(a)\n        q = jnp.cos(b)\n", "        q = jnp.cos(b)\n        p = jnp.sin(a)\n"
        ),
    ),
    "reordered-captures-of-a-branch": (
        BRANCH,
        BRANCH.replace("    y = x * 3\n    z = x * 5\n", "    z = x * 5\n    y = x * 3\n"),
    ),
    "renamed-output-keys": (KEYS, KEYS.replace("loss", "objective").replace("step", "weights")),
}


@pytest.mark.jax_text
@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_same_program_in_other_words(one, other):
    """Names, positions and the order of independent lines do not reach the fingerprint."""
    assert one != other
    assert fingerprint(written(one), X) == fingerprint(written(other), X)


SWAPPED = "def f(x):\n    a = jnp.sin(x)\n    b = jnp.cos(x)\n    return b - a\n"
FIBONACCI = (
    "def f(x):\n    return lax.fori_loop(0, 5, lambda i, c: (c[1], c[0] + c[1]), (jnp.zeros(()), jnp.ones(())))[0]\n"
)
TWINS = "def f(x):\n    return lax.fori_loop(0, 5, lambda i, c: (c[0] + 1, c[1] + 2), (x, x))[0]\n"
WHILE = "def f(x):\n    return lax.while_loop(lambda c: c[0] < 9, lambda c: jnp.sin(c), x)\n"
REDUCE = "def f(x):\n    return lax.reduce(x, jnp.float32(1), lambda a, b: a * b + 1, (0,))\n"

DIFFERENT = {
    "another-constant": (HELPER, HELPER.replace("* 2", "* 2.5")),
    "swapped-operands": (PLAIN, SWAPPED),
    "swapped-outputs": ("def f(x):\n    return x, x + 1\n", "def f(x):\n    return x + 1, x\n"),
    "another-callee-body": (HELPER, HELPER.replace("jnp.sin", "jnp.cos")),
    "swapped-arguments-of-a-callee": (
        "g = jax.jit(lambda a, b: a / b)\ndef f(x):\n    return g(x, x + 1)\n",
        "g = jax.jit(lambda a, b: a / b)\ndef f(x):\n    return g(x + 1, x)\n",
    ),
    "another-scan-length": (SCAN, SCAN.replace("length=5", "length=6")),
    "another-scan-start": (SCAN, SCAN.replace("2 * x", "3 * x")),
    "another-carry-returned": (TWINS, TWINS.replace("[0]\n", "[1]\n")),
    "another-recurrence": (FIBONACCI, FIBONACCI.replace("(c[1], c[0] + c[1])", "(c[0] + c[1], c[0])")),
    "another-while-condition": (WHILE, WHILE.replace("c[0] < 9", "c[1] < 9")),
    "another-branch": (BRANCH, BRANCH.replace("y - z", "z - y")),
    "swapped-branches": (
        "def f(x):\n    return lax.cond(x[0] > 1, jnp.sin, jnp.cos, x)\n",
        "def f(x):\n    return lax.cond(x[0] > 1, jnp.cos, jnp.sin, x)\n",
    ),
    "another-reducer": (REDUCE, REDUCE.replace("a * b + 1", "a * b + 2")),
    "swapped-operands-of-a-reducer": (
        REDUCE.replace("a * b + 1", "a - 2 * b"),
        REDUCE.replace("a * b + 1", "b - 2 * a"),
    ),
    "one-more-unused-callback": (
        "def f(x):\n    return x + 1\n",
        "def f(x):\n    jax.debug.print('{}', x)\n    return x + 1\n",
    ),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_different_programs(one, other):
    """Whatever changes what is computed reaches the fingerprint."""
    assert fingerprint(written(one), X) != fingerprint(written(other), X)


@pytest.mark.parametrize(
    "dtype", ["bool", "int4", "uint8", "int32", "bfloat16", "float8_e4m3fn", "float16", "float32", "complex64"]
)
@pytest.mark.parametrize("length", [5, 300])
def test_captured_values(dtype, length):
    """One changed element of a captured array is another program; the same values are the same one."""
    zeros_and_ones = np.arange(length) % 2
    before = jnp.array(zeros_and_ones.astype(dtype))
    again = jnp.array(zeros_and_ones.astype(dtype))
    zeros_and_ones[length // 2] ^= 1
    after = jnp.array(zeros_and_ones.astype(dtype))
    first, second, third = (fingerprint(lambda x, a=array: (x, a), X) for array in (before, again, after))
    assert first == second
    assert first != third


def test_arguments_and_donation():
    """Shape, dtype, order and donation of the arguments belong to the program."""
    half = X.astype("bfloat16")
    variants = [
        fingerprint(lambda x: x * 2, X),
        fingerprint(lambda x: x * 2, X[:3]),
        fingerprint(lambda x: x * 2, half),
        fingerprint(lambda x: x * 2, X, donate_argnums=0),
        fingerprint(lambda x, y: x - y, X, X),
        fingerprint(lambda x, y: y - x, X, X),
        fingerprint(lambda x, y: x - y, X, X, donate_argnums=0),
        fingerprint(lambda x, y: x - y, X, X, donate_argnums=1),
    ]
    assert len(set(variants)) == len(variants)


def test_sharding():
    """A changed sharding constraint, of the program or of a nested helper, is another program."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("x",))
    split, whole = (NamedSharding(mesh, PartitionSpec(*spec)) for spec in (("x",), ()))

    def constrained(sharding):
        return fingerprint(lambda x: lax.with_sharding_constraint(x * 2, sharding) + 1, X)

    def nested(sharding):
        helper = jax.jit(lambda x: x * 2, in_shardings=sharding)
        return fingerprint(lambda x: helper(x) + 1, X)

    assert constrained(split) == constrained(split)
    assert constrained(split) != constrained(whole)
    assert nested(split) != nested(whole)
    assert fingerprint(lambda x: x + 1, jax.device_put(X, split)) != fingerprint(
        lambda x: x + 1, jax.device_put(X, whole)
    )


CALLBACKS = (
    "def f(x):\n    y = jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)\n"
    "    jax.debug.print('{}', y)\n    return y\n"
)
PROCESS = f"""
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jaxgate.observe.trace.fingerprint import program_fingerprint
for text in {[CALLBACKS, SCAN, HELPER]!r}:
    exec(text)
    print(program_fingerprint(jax.jit(f).lower(jnp.arange(4.0)).compiler_ir("stablehlo")))
"""


def test_same_in_every_process():
    """Neither hash seeds nor addresses of callbacks reach the fingerprint: another process and this one agree."""
    here = [fingerprint(written(text), X) for text in (CALLBACKS, SCAN, HELPER)]
    assert python("-c", PROCESS).split() == here


@pytest.mark.jax_text
def test_host_callbacks_are_counted():
    """Every call from the program into Python counts once; their Python bodies are not part of the program."""
    assert read_structure(module(written(CALLBACKS), X)).host_callbacks == 2
    assert read_structure(module(written(PLAIN), X)).host_callbacks == 0
    assert fingerprint(written(CALLBACKS), X) == fingerprint(written(CALLBACKS.replace("* 2", "* 3")), X)


def test_functions_within_functions_multiply():
    """Two calls of what has two calls are four; a function that nothing calls is the program itself."""
    inner = jax.jit(jnp.sin)
    outer = jax.jit(lambda x: inner(x) + inner(x * 2))
    structure = read_structure(module(lambda x: outer(x) - outer(x * 3), X))
    assert structure.operations["stablehlo.sine 4xf32"] == 4
    assert structure.operations["stablehlo.subtract 4xf32"] == 1


@pytest.mark.parametrize("length", [4, 16])
def test_an_unrolled_scan_counts_every_copy_on_every_release(length):
    """0.10.2 makes a function of the body and calls it, 0.12 writes it out: both are as many products."""

    def unrolled(x):
        return jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=length, unroll=length)[0]

    assert read_structure(module(unrolled, X)).operations["stablehlo.sine 4xf32"] == length


@pytest.mark.jax_text
def test_operations_are_counted_by_name_type_and_line():
    """The body of a function counts at each call, as the compiler sees it; constants, calls and returns are none; lines are the project's."""

    @jax.jit
    def helper(x):
        return jnp.sin(x)

    structure = read_structure(module(lambda x: helper(x) * helper(x + x), X))
    assert structure.operations == {"stablehlo.add 4xf32": 1, "stablehlo.multiply 4xf32": 1, "stablehlo.sine 4xf32": 2}
    line = helper.__wrapped__.__code__.co_firstlineno + 2
    assert re.fullmatch(rf"(.*/)?test_stablehlo\.py:{line}", structure.lines["stablehlo.sine 4xf32"])
    assert read_structure(module(helper, X), lines=False).lines == {}


def test_large_constant_is_named_with_its_line():
    """A captured array from the limit on is named: shape, size, who uses it and where."""
    weights = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
    assert weights.nbytes == 65536 >= NAMED_CONSTANT_BYTES

    def apply(x):
        return x @ weights

    structure = read_structure(module(apply, jnp.ones((2, 128))))
    (constant,) = structure.constants
    assert structure.constant_bytes == 65536
    assert (constant.shape, constant.nbytes) == ((128, 128), 65536)
    assert constant.text.startswith("128x128xf32 (65,536 bytes) used by stablehlo.dot_general at ")
    assert constant.text.endswith(f"{Path(__file__).name}:{apply.__code__.co_firstlineno + 1}")


def test_large_constant_of_a_loop_is_named_where_the_loop_uses_it():
    """JAX hands it to the loop, and the loop to a function; neither line says who captured it."""
    table = np.arange(512, dtype=np.float32)

    def apply(x):
        def turn(x, step):
            return jnp.sin(x) * step + table, None

        return jax.lax.scan(turn, x, jnp.arange(3.0))[0]

    (constant,) = read_structure(module(apply, jnp.ones(512))).constants
    assert constant.text.startswith("512xf32 (2,048 bytes) used by stablehlo.add at ")
    assert constant.text.endswith(f"{Path(__file__).name}:{apply.__code__.co_firstlineno + 2}")


def test_constants_of_nested_helpers_count():
    """Captured arrays of jitted helpers, of helpers' helpers and of loop bodies count."""
    one, two, three = (np.arange(10, dtype=np.float32) + i for i in range(3))
    inner = jax.jit(lambda x: x * one)
    outer = jax.jit(lambda x: inner(x) * two)
    loop = module(lambda x: lax.fori_loop(0, 3, lambda _, c: outer(c) * three, x), jnp.ones(10))
    assert read_structure(loop).constant_bytes == 3 * 40


@pytest.mark.parametrize(
    ("dtype", "nbytes"),
    [("bool", 5), ("int4", 5), ("bfloat16", 10), ("float8_e4m3fn", 5), ("int32", 20), ("complex64", 40)],
)
def test_bytes_of_captured_dtypes(dtype, nbytes):
    """Five captured elements cost five times their size; under a byte they cost one, all alike nothing."""
    array = jnp.array(np.array([0, 1, 1, 0, 1]).astype(dtype))
    structure = read_structure(module(lambda x: (x, array), X))
    assert (structure.constant_bytes, structure.constants) == (nbytes, ())
    value = jnp.ones((300, 300), dtype)  # one value repeated is stored once
    assert read_structure(module(lambda x: (x + 3, value), X)).constant_bytes == 0
