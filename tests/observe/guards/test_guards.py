"""The guards: what they catch, what they name, what they leave alone; and the fixtures that give them to a test."""

import functools
import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from support.processes import python

import jaxgate
from jaxgate.observe.guards import BytesError, RetraceError, TransferError, at_most_bytes, no_retrace, no_transfer

HERE = "tests/observe/guards/test_guards.py"
X, Y = jnp.ones(3), jnp.ones(4)

pytestmark = pytest.mark.usefixtures("at_the_root")


def add(state, batch):
    """A function with names."""
    return {"w": state["w"] + batch}


def times(x, n):
    """A function with an argument to make static."""
    return x * n


def ignore(_):
    """Nothing else."""


# no_retrace ------------------------------------------------------------------------------------------------


def test_a_warm_block_passes():
    """Calls that hit JAX's caches are no retrace, explained or not."""
    step = jax.jit(add)
    step({"w": X}, X)
    with no_retrace(step):
        step({"w": X}, X)
    with no_retrace():
        step({"w": X}, X)


def test_a_retrace_names_argument_and_line():
    """The path, both avals, and the line that called."""
    step = jax.jit(add)
    step({"w": X}, X)
    with pytest.raises(RetraceError) as caught, no_retrace(step):
        step({"w": X.astype("bfloat16")}, X)
    headline, line = str(caught.value).splitlines()
    assert headline == "expected no trace and no compile of add, found 1 trace and 1 compile:"
    assert line.startswith(f"  add: state['w']: float32[3] → bfloat16[3] at {HERE}:")
    assert isinstance(caught.value, AssertionError)


def on_another_device(step):
    """A call that binds the program to a device: it compiles, and the trace count alone would pass."""
    step(jax.device_put(X, jax.devices()[0]))


def made_anew(_):
    """Two objects from one line: the cause is the line that makes them."""
    [jax.jit(lambda v: v * 2.5)(X) for _ in range(2)]


def for_the_first_time(_):
    """A cold function is a trace, and told as one that was never seen."""
    jax.jit(lambda v: v * 3.5)(X)


RETRACES = {
    on_another_device: r"found 0 traces and 1 compile:\n  <lambda>: another sharding, device or",
    made_anew: rf"found 2 traces and 2 compiles:\n  <lambda>: a new function object per call at {HERE}:",
    for_the_first_time: r"<lambda>: never traced before \(a first call, or a new function object",
    lambda _: jnp.zeros((5, 1, 7)): rf"broadcast_in_dim: called with a new signature .* at {HERE}:",
}


@pytest.mark.parametrize("act", RETRACES, ids=["device", "made anew", "cold", "eager helper"])
def test_what_is_traced_or_compiled_has_its_cause(act):
    """In a block that names nothing, whatever it is; in one that names a function what is the function's own."""
    step = jax.jit(lambda x: x * 2)
    step(X)
    named = [step] if act is on_another_device else []
    with pytest.raises(RetraceError, match=RETRACES[act]), no_retrace(*named):
        act(step)


def test_an_eager_helper_is_not_a_named_functions():
    step = jax.jit(lambda x: x * 2)
    step(X)
    with no_retrace(step):
        jnp.zeros((5, 1, 8))
        step(X)


def test_only_named_functions_count():
    """Another function may trace; the named one may not, by itself or inside another's trace."""
    named = functools.partial(jax.jit, static_argnames="n")(times)
    named(X, n=2)
    other = jax.jit(lambda v: v - 1)
    with no_retrace(named):
        other(X)
    outer = jax.jit(lambda v: named(v, n=7) + 1)
    with pytest.raises(RetraceError, match=r"of times, found 1 trace and 0 compiles:\n  times: "), no_retrace(named):
        outer(X)


def test_allow_counts_programs_of_each_function():
    """``allow=1`` is a warm-up in the block; the second program of a function is one too many."""
    first, second = jax.jit(lambda v: v * 2), jax.jit(add)
    with no_retrace(first, second, allow=1):
        first(X)
        second({"w": X}, X)
    with pytest.raises(RetraceError) as caught, no_retrace(second, allow=1):
        [second({"w": x}, x) for x in (Y, jnp.ones(5))]
    headline, *lines = str(caught.value).splitlines()
    assert headline == "expected at most 1 program of add, found 2 traces and 2 compiles:"
    (line,) = lines  # not of the first, which was allowed
    assert line.startswith("  add: state['w']: float32[4] → float32[5]; batch: float32[4] → float32[5] at "), line
    with pytest.raises(ValueError, match="expected allow to be 0 or more, found -1"):
        no_retrace(allow=-1)


def test_each_program_beyond_the_allowed_ones_is_explained():
    """What was allowed is not, and what an earlier call had is no excuse."""
    step = jax.jit(times)
    with pytest.raises(RetraceError) as caught, no_retrace(step, allow=2):
        [step(x, 2) for x in (X, Y, jnp.ones(5), jnp.ones((2, 3)), jnp.ones(6), jnp.ones(7))]
    *lines, more = str(caught.value).splitlines()[1:]
    found = [line.split(" at ")[0].removeprefix("  times: x: float32") for line in lines]
    assert found == ["[4] → float32[5]", "[5] → float32[2,3]", "[2,3] → float32[6]"]
    assert more == "  and 1 more"


@pytest.mark.parametrize("jit", [jax.jit, nnx.jit, lambda function: Jitted(function)], ids=["jax", "nnx", "library"])
@pytest.mark.parametrize("named", [True, False])
def test_what_ran_before_changes_nothing_of_what_is_allowed(jit, named):
    """Another test had the second shape already: alone this one would be red."""

    def step(x):
        return x * 7

    jitted = jit(step)
    jitted(Y)
    functions = [jitted] if named else []
    text = r"at most 1 program of (step|each function), found 2 traces"
    with pytest.raises(RetraceError, match=text), no_retrace(*functions, allow=1):
        [jitted(x) for x in (X, Y)]


class Jitted:
    """Another library's way to jit: no function and no wrapper of JAX, and its cache is its own."""

    def __init__(self, function):
        self.__name__ = function.__name__
        self._jitted = jax.jit(function)

    def __call__(self, *args):
        """Call it."""
        return self._jitted(*args)

    def lower(self, *args):
        """Lower it."""
        return self._jitted.lower(*args)


class Callable:
    """An object that can be called and has no name."""

    def __call__(self, x):
        """Double."""
        return x * 2

    def method(self, x):
        """Triple."""
        return x * 3


@jax.custom_vjp
def custom(x):
    """With a gradient of its own."""
    return x.sum()


custom.defvjp(lambda x: (x.sum(), x), lambda x, g: (g * x,))

JITTED = {
    "function": lambda: jax.jit(lambda x: x + 1),
    "method": lambda: jax.jit(Callable().method),
    "callable-object": lambda: jax.jit(Callable()),
    "partial": lambda: jax.jit(functools.partial(times, n=3)),
    "vmap": lambda: jax.jit(jax.vmap(lambda x: x + 2)),
    "gradient": lambda: jax.jit(jax.grad(lambda x: x.sum() ** 2)),
    "value-and-gradient": lambda: jax.jit(jax.value_and_grad(lambda x: x.sum() ** 2)),
    "custom": lambda: jax.jit(custom),
    "checkpoint": lambda: jax.jit(jax.checkpoint(lambda x: jnp.sin(x))),
    "jit-of-jit": lambda: jax.jit(jax.jit(lambda x: x + 3)),
    "nnx": lambda: nnx.jit(lambda x: x + 4),
    "library": lambda: Jitted(lambda x: x + 7),
    "pmap": lambda: jax.pmap(lambda x: x + 5),
    "linearize": lambda: jax.jit(jax.jacfwd(lambda x: x**2)),
    "shard-map": lambda: jax.jit(
        jax.shard_map(
            lambda x: x + 6,
            mesh=jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,)),
            in_specs=jax.sharding.PartitionSpec("x"),
            out_specs=jax.sharding.PartitionSpec("x"),
        )
    ),
}


@pytest.mark.jax_text
@pytest.mark.parametrize("make", JITTED.values(), ids=JITTED)
def test_the_name_of_a_jitted_function_is_the_one_of_its_events(make):
    """Whatever was jitted: named and cold it is caught. A name that never fires would always pass."""
    function = make()
    argument = jnp.ones((1, 3))
    with pytest.raises(RetraceError, match="found 1 trace and 1 compile"), no_retrace(function):
        function(argument)
    with no_retrace(function):
        function(argument)


@pytest.mark.parametrize("kind", sorted(set(JITTED) - {"custom", "pmap"}))
def test_a_named_function_is_caught_inside_another_trace(kind):
    """Where only the outer function has an event, JAX's explanation names the inner one."""
    function = JITTED[kind]()
    with pytest.raises(RetraceError, match=r"found 1 trace and [01] compile"), no_retrace(function):
        jax.jit(function_around(function))(jnp.ones((1, 3)))


def function_around(function):
    """A function of another name."""

    def around(x):
        return jax.tree.map(lambda leaf: leaf + 1, function(x))

    return around


@pytest.mark.parametrize(
    "function",
    [add, functools.partial(add, {}), "add", 3, Callable()],
    ids=["plain", "partial", "text", "number", "object"],
)
def test_what_jax_never_names_is_refused(function):
    """A plain function fires no event under its name: a guard of it would be green whatever happens."""
    with pytest.raises(TypeError, match="expects functions that are jitted"):
        no_retrace(function)


def test_errors_of_the_block_pass_untouched():
    """An exception in the block is the block's, retrace or not; afterwards nothing listens."""
    cold = jax.jit(lambda v: v * 4.5)
    with pytest.raises(KeyError, match="mine"), no_retrace():
        {}[cold(X) is None or "mine"]
    with no_retrace():
        cold(X)
    assert not jax.config.jax_explain_cache_misses


def test_blocks_nest():
    """Each block counts everything inside of it, and leaves the outer one listening."""
    step = jax.jit(lambda v: v * 5.5)

    def inner():
        with no_retrace():
            ignore(X)
        with pytest.raises(RetraceError, match="<lambda>: never traced before"), no_retrace(step):
            step(X)

    with pytest.raises(RetraceError, match="found 1 trace and 1 compile") as caught, no_retrace():
        inner()
    assert "<lambda>: never traced before" in str(caught.value)
    step(Y)
    with pytest.raises(RetraceError), no_retrace(step, allow=2), no_retrace(step):
        step(jnp.ones(6))


@pytest.mark.parametrize("allow", [0, 2])
@pytest.mark.parametrize(("outer", "inner"), [("step", "step"), ("step", ""), ("", "step"), ("", "")])
def test_a_block_that_allows_leaves_the_outer_ones_caches_alone(outer, inner, allow):
    """What was warm stays so: a block that emptied them would make the outer one red."""
    step = jax.jit(lambda v: v * 8.5)
    named = {"step": [step], "": []}
    [step(x) for x in (X, Y)]
    with no_retrace(*named[outer], allow=allow):
        [step(x) for x in (X, Y)]
        with no_retrace(*named[inner], allow=1):
            [step(x) for x in (X, Y)]


def test_a_block_that_allows_empties_what_no_outer_one_counts():
    """What ran before changes nothing of what is allowed, with another function's block around it, or after one."""
    step, other = jax.jit(times), jax.jit(add)
    [step(x, 2) for x in (X, Y)]
    text = "at most 1 program of times, found 2"
    with pytest.raises(RetraceError, match=text), no_retrace(other), no_retrace(step, allow=1):
        [step(x, 2) for x in (X, Y)]
    [step(x, 2) for x in (X, Y)]
    with pytest.raises(RetraceError, match=text), no_retrace(step, allow=1):
        [step(x, 2) for x in (X, Y)]


def test_other_threads_count():
    """A step that runs in a thread of the block does not escape."""
    cold = jax.jit(lambda v: v * 6.5)
    with ThreadPoolExecutor(1) as pool, pytest.raises(RetraceError, match="1 trace and 1 compile"), no_retrace(cold):
        pool.submit(cold, X).result()


# no_transfer -----------------------------------------------------------------------------------------------


def device_step():
    """A warm jitted function of arrays and numbers."""
    step = jax.jit(lambda x: x * 2)
    step(X)
    step(np.ones(3, "float32"))
    step(1.0)
    return step


IMPLICIT = {
    "numpy-argument": (lambda step: step(np.ones(3, "float32")), "host-to-device of float32[3]"),
    "python-number": (lambda step: step(1.0), "host-to-device of float32[] (a Python number)"),
    "asarray": (lambda _: jnp.asarray(np.ones(3, "float32")), "host-to-device of float32[3]"),
    "creation": (lambda _: jnp.ones(3), "host-to-device of float32[]"),
    "eager-number": (lambda _: X + 1, "host-to-device of int32[] (a Python number)"),
    "index": (lambda _: X[0], "host-to-device of int32[] (a Python number)"),
}


@pytest.mark.jax_text
@pytest.mark.parametrize(("act", "text"), IMPLICIT.values(), ids=IMPLICIT)
def test_an_implicit_transfer_is_named(act, text):
    """What moved, between what, and on which line of the project."""
    step = device_step()
    with pytest.raises(TransferError) as caught, no_transfer():
        act(step)
    assert str(caught.value).startswith(f"expected no implicit transfer, found {text} at {HERE}:")
    assert str(caught.value).endswith("; move it with jax.device_put before the block, or where it is meant")
    assert isinstance(caught.value, AssertionError)
    assert caught.value.__suppress_context__


ALLOWED = {
    "device-array": lambda step: step(X),
    "device-put": lambda step: step(jax.device_put(np.ones(3, "float32"))),
    "device-get": lambda _: jax.device_get(X),
    "to-host-on-cpu": lambda _: np.asarray(X),
}


@pytest.mark.parametrize("act", ALLOWED.values(), ids=ALLOWED)
def test_what_is_explicit_passes(act):
    """Arrays on their device and explicit transfers; on CPU reading a result back is none."""
    step = device_step()
    with no_transfer():
        act(step)
    with pytest.raises(ZeroDivisionError), no_transfer():  # other errors pass, and the guard is off again
        raise ZeroDivisionError
    assert float(jnp.asarray(np.ones(2))[0]) == 1


# at_most_bytes ---------------------------------------------------------------------------------------------


def test_arrays_that_stay_are_counted():
    """Beyond the limit the largest new ones are named, with dtype, shape and bytes."""
    kept = []
    with at_most_bytes(4096):
        kept.append(jnp.full(1024, 2.0))
    with pytest.raises(BytesError) as caught, at_most_bytes(4095):
        kept.append(jnp.full((2, 512), 3.0))
    device = jax.devices()[0]
    assert str(caught.value).splitlines() == [
        f"expected at most 4,095 more bytes of live arrays on {device}, found 4,096; the largest new ones:",
        "  float32[2,512]: 4,096 bytes",
    ]
    assert isinstance(caught.value, AssertionError)


def test_arrays_that_go_do_not_count():
    """What was freed, in a cycle or not, and what was there before is nobody's fault."""
    before = jnp.ones(10_000)
    with at_most_bytes(0):
        cycle = [jnp.full(5_000, 2.0)]
        cycle.append(cycle)
        del cycle
    with at_most_bytes(0):
        ignore(before)


def test_one_buffer_counts_once():
    """Two arrays over the same memory are that memory; a donated one is gone."""
    kept = []
    with at_most_bytes(4_000):
        kept.append(jnp.full(1_000, 4.0))
        kept.append(jax.device_put(kept[0]))
        kept += [shard.data for shard in kept[0].addressable_shards]
    double = jax.jit(lambda x: x * 2, donate_argnums=0)
    state = jnp.full(1_000, 5.0)
    with at_most_bytes(0):
        state = double(state)
    with at_most_bytes(400):  # what was freed is weighed against what is new
        state = jnp.full(1_100, 6.0)
    with pytest.raises(BytesError, match="found 404;"), at_most_bytes(403):
        state = jnp.full(1_201, 7.0)


def test_many_arrays_are_counted_and_three_named():
    kept = []
    with pytest.raises(BytesError) as caught, at_most_bytes(0):
        kept.extend(jnp.full(size, 9.0) for size in (10, 50, 20, 40, 30))
    lines = str(caught.value).splitlines()
    assert lines[1:] == [
        "  float32[50]: 200 bytes",
        "  float32[40]: 160 bytes",
        "  float32[30]: 120 bytes",
        "  and 2 more arrays",
    ]


class Device:
    """A device that reports its memory."""

    def __init__(self, *readings):
        self.readings = iter(readings)

    def memory_stats(self):
        """The next reading."""
        return next(self.readings)

    def __str__(self):
        """A name."""
        return "gpu:0"


def reading(used, peak):
    """Statistics as a GPU gives them."""
    return {"bytes_in_use": used, "peak_bytes_in_use": peak}


def test_a_peak_that_rose_counts():
    """Temporaries are seen where the device reports its peak."""
    device = Device(reading(100, 500), reading(100, 1_101))
    with (
        pytest.raises(BytesError, match=r"expected at most 1,000 more bytes on gpu:0, found 1,001 at the peak"),
        at_most_bytes(1_000, devices=lambda: [device]),
    ):
        ignore(X)
    with at_most_bytes(1_000, devices=lambda: [Device(reading(100, 500), reading(100, 1_100))]):
        ignore(X)


@pytest.mark.parametrize(
    "readings",
    [(reading(100, 9_000), reading(100, 9_000)), (None, None), ({}, {}), (reading(1, 2), None)],
    ids=["older-peak", "none", "empty", "gone"],
)
def test_a_peak_that_is_not_known_does_not_count(readings):
    """A peak from before the block, or none at all, says nothing of the block."""
    with at_most_bytes(0, devices=lambda: [Device(*readings)]):
        ignore(X)


def test_a_failing_block_is_not_weighed():
    """An exception passes through; a negative limit is refused."""
    kept = []
    with pytest.raises(KeyError), at_most_bytes(0):
        {}[kept.append(jnp.full(77, 1.5))]
    with pytest.raises(ValueError, match="expected a limit of 0 bytes or more, found -1"):
        at_most_bytes(-1)
    kept.clear()
    gc.collect()


# the package and the fixtures ------------------------------------------------------------------------------


def test_the_package_offers_them_without_importing_jax():
    """``jaxgate.no_retrace`` and its kin are imported when they are asked for."""
    for guard in (no_retrace, no_transfer, at_most_bytes, RetraceError, TransferError, BytesError):
        assert getattr(jaxgate, guard.__name__) is guard
    code = "import sys, jaxgate, jaxgate.plugin.hooks; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError):
        jaxgate.no_such_guard  # noqa: B018 - asking is the test


MODEL = """
import jax, jax.numpy as jnp, numpy as np
step = jax.jit(lambda state: state * 2)
X, Y = jnp.ones(3), jnp.ones(4)
step(X)
"""


def test_the_fixtures_pass_a_clean_test(project):
    """Each fixture is the guard itself, with no gate and no baseline; a gating test may use it around its own calls."""
    project.write(
        "test_model.py",
        MODEL
        + "def test_step(no_retrace, no_transfer, at_most_bytes):\n"
        + "    with no_retrace(step), no_transfer(), at_most_bytes(12):\n"
        + "        kept = step(X)\n",
    )
    result = project.run()
    result.counts(passed=1)
    assert result.code == 0
    assert not project.baselines()
    beside = "def test_gated(gate, no_retrace):\n    gate(step, X)\n    with no_retrace(step):\n        step(X)\n"
    project.write("test_gated.py", MODEL + beside)
    project.run("test_gated.py", "--perf-update").counts(passed=1)


FAULTS = {
    "no_retrace": (
        "    with no_retrace(step):\n        step(Y)\n",
        (
            "E       jaxgate.observe.guards.RetraceError: expected no trace and no compile of <lambda>, found 1 trace and 1",
            "<lambda>: state: float32[3] → float32[4] at test_model.py:8",
        ),
    ),
    "no_transfer": (
        "    with no_transfer():\n        step(np.ones(3, 'float32'))\n",
        (
            "E       jaxgate.observe.guards.TransferError: expected no implicit transfer, found host-to-device of float32[3] "
            "at test_model.py:8",
        ),
    ),
    "at_most_bytes": (
        "    with at_most_bytes(15):\n        kept = step(jax.device_put(Y))\n",
        (
            "E       jaxgate.observe.guards.BytesError: expected at most 15 more bytes of live arrays on",
            "found 16;",
            "float32[4]: 16 bytes",
        ),
    ),
}


def test_a_fault_is_red_with_a_short_text(project):
    """The test fails at its own line, and no frame of jaxgate or JAX is shown."""
    for guard, (body, _) in FAULTS.items():
        project.write(f"test_{guard}.py", MODEL + f"def test_step({guard}):\n{body}")
    result = project.run()
    result.counts(failed=len(FAULTS))
    for guard, (_, pieces) in FAULTS.items():
        result.shows(*(piece.replace("test_model", f"test_{guard}") for piece in pieces))
    assert "__exit__" not in result.text
    assert "contextlib" not in result.text
    assert "During handling" not in result.text
    assert not [line for line in result.text.splitlines() if "observe/" in line]
    body = result.text.split("= FAILURES =")[1].split("short test summary")[0]
    assert len(body.splitlines()) < 20 * len(FAULTS)


def test_a_guard_that_is_imported_late_is_no_retrace(tmp_path):
    """With ``jax.extend`` comes Pallas, after which jax 0.12 traces everything anew: no guard brings it."""
    file = tmp_path / "late.py"
    file.write_text(
        "import sys, jax, jax.numpy as jnp\n"
        "double, x = jax.jit(lambda x: x * 2), jnp.ones(3)\n"
        "double(x)\n"
        "import jaxgate\n"
        "with jaxgate.no_retrace(double), jaxgate.no_transfer():\n"
        "    double(x)\n"
        "print('jax.extend' in sys.modules)\n"
    )
    assert python(file) == "False\n"
