"""Every kind of retrace is planted, and the first line names its root cause; phases and cache hits are kept apart."""

import functools
import inspect
import json
import logging
import threading
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from support.measured import ready, sample_of
from support.processes import python

from jaxgate.observe.arguments.signature import argument_keys, argument_names
from jaxgate.observe.execute.steps import take_steps
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.misses import read_miss
from jaxgate.observe.trace.retraces import Blame, Culprit, retrace_lines

HERE = "tests/observe/trace/test_retraces.py"
TICKS = 1000

pytestmark = pytest.mark.usefixtures("at_the_root")


def clock():
    return TICKS


def line_of(function, text):
    """``file:line`` of a piece of text in a function of this file."""
    lines, first = inspect.getsourcelines(function)
    (offset,) = [number for number, line in enumerate(lines) if line.rstrip().endswith(text)]
    return f"{HERE}:{first + offset}"


def steps(function, args, next_args, kwargs=None):
    return take_steps(ready(function, args, kwargs), next_args, clock=clock)


def plain_steps(function, *calls):
    """Lines of a plain Python subject: it is called with each of the arguments, and traces nothing itself."""
    blame, before, lines = Blame(complete=True), (), []
    for number, args in enumerate(calls, 1):
        seen = argument_keys(args, {}, argument_names(function, len(args)))
        with record(explain=True) as events:
            jax.block_until_ready(function(*args))
        culprits = blame.culprits(events)
        if number > 1:
            lines += retrace_lines(f"step {number}", culprits, subject="", before=before, after=seen)
        before = seen
    return lines


def fed(*following):
    return lambda *_: following


def power(state, n):
    return state**n


@functools.partial(jax.jit, static_argnames="n")
def scaled(x, n):
    return x * n


X, Y = jnp.ones(3), jnp.ones(4)
SUBJECTS = {  # the subject's argument, that of the next step, and what is said of it
    "dtype": (X, X.astype("bfloat16"), "retraced: state: float32[3] → bfloat16[3]"),
    "weak-type": (jnp.asarray(1.0), jnp.float32(1), "retraced: state: float32[] (weak type) → float32[]"),
    "python-scalar": (jnp.float32(1), 1.0, "retraced: state: float32[] → Python float (weak type)"),
    "shape": (X, Y, "retraced: state: float32[3] → float32[4]"),
    "tree": ({"w": X}, {"w": X, "m": X}, "retraced: the tree of the arguments changed at state['m']"),
    "numpy": (np.ones(3, "float32"), np.ones(4, "float32"), "retraced: state: float32[3] → float32[4]"),
    # Another device binding lowers and compiles without a trace.
    "placement": (X, jax.device_put(X, jax.devices()[0]), "recompiled: state: uncommitted → committed to its device"),
}


@pytest.mark.parametrize(("old", "new", "text"), SUBJECTS.values(), ids=SUBJECTS)
def test_the_subject_is_explained_by_its_own_argument(old, new, text):
    """What the signature shows is the first and only line, whatever JAX says of it, or of a helper inside."""
    helper = jax.jit(lambda leaf, n: leaf * n, static_argnames="n")
    stepped = steps(jax.jit(lambda state: jax.tree.map(lambda leaf: helper(leaf, n=2), state)), (old,), fed(new))
    assert stepped.retraces == [f"step 2 {text}"]
    traces = int(text.startswith("retraced"))
    assert (stepped.traces, stepped.lowerings, stepped.compiles, stepped.cache_hits) == (traces, 1, 1, 0)


@pytest.mark.jax_text
def test_a_static_value_of_the_subject_is_named():
    """Both values; a Python number that is no static argument is never blamed."""
    power = jax.jit(lambda x, rate, n: x**n * rate, static_argnames="n")
    stepped = steps(power, (X, 1.0, 2), fed(X, 5.0, 3))
    assert stepped.retraces == ["step 2 retraced: n: static 2 → static 3"]
    assert steps(power, (X, 1.0, 2), fed(X, 5.0, 2)).retraces == []


def test_numpy_in_place_of_an_array_is_not_blamed():
    """An uncommitted array and NumPy's are one to JAX; what differs besides is the cause."""
    before, after = argument_keys((X, X), {}, ("a", "b")), argument_keys((np.ones(3, "float32"), Y), {}, ("a", "b"))
    (line,) = retrace_lines(
        "step 2", [Culprit(function="f", shown="f", traces=1)], subject="f", before=before, after=after
    )
    assert line == "step 2 retraced: b: float32[3] → float32[4]"


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [("jax_default_matmul_precision", "highest", "None → highest"), ("jax_enable_x64", True, "False → True")],
)
def test_a_setting_that_changed_is_the_cause(setting, value, text):
    """A change of JAX's configuration between two steps is named, where no argument differs."""
    before = getattr(jax.config, setting)

    def change(*_):
        jax.config.update(setting, value)
        return (jnp.ones((2, 2), "float32"),)

    try:
        stepped = steps(jax.jit(lambda state: state @ state), (jnp.ones((2, 2)),), change)
    finally:
        jax.config.update(setting, before)
    assert stepped.retraces[0] == f"step 2 retraced: {setting}: {text}"


def test_an_unknown_cause_is_called_so():
    """Where nothing differs and JAX says nothing, no argument is accused."""

    def forget(*_):
        jax.clear_caches()
        return (X,)

    stepped = steps(jax.jit(lambda state: state * 3), (X,), forget)
    unknown = "no argument differs in shape, dtype, weak type or placement: cause unknown"
    assert stepped.retraces[0] == f"step 2 retraced: {unknown}"


PLAIN = {}


def plain(*calls, lines):
    """Add a case: what makes plain Python, the states it is called with, and what is said; `HERE` is its marked line."""

    def add(make):
        PLAIN[make.__name__.replace("_", " ")] = (make, calls, lines)
        return make

    return add


NEW = "a new function object per call at HERE"


# Arguments that moved besides are not accused.
@plain(X, X, Y, lines=[f"step {n} retraced: <lambda>: {NEW}" for n in (2, 3)])
def a_lambda_made_at_each_call():
    return lambda state: jax.jit(lambda v: v + 1)(state)  # call


@plain(X, X, lines=[f"step 2 retraced: power: {NEW}"])
def a_partial_made_at_each_call():
    return lambda state: jax.jit(functools.partial(power, n=2))(state)  # call


@plain(X, X, Y, lines=["step 3 retraced: <lambda>: traced for the first time at HERE"])
def a_first_call_is_no_new_object():
    helper = jax.jit(lambda v: v * 5)
    return lambda state: helper(state) if state.shape == (4,) else state  # call


@plain(
    *[jnp.ones(31)] * 4,
    lines=[f"step {step} retraced: scaled: n: static {n} → static {n + 1} at HERE" for step, n in ((2, 2), (4, 3))],
)
def a_static_value_of_an_inner_function():
    count = iter((2, 3, 3, 4))
    return lambda state: scaled(state, n=next(count))  # call


# Shape or static value, whichever changed: JAX 0.10 would blame the static value, 0.12 the shape.
@plain(
    *[1.0] * 4,
    lines=[
        "step 2 retraced: <lambda>: n: static 2 → static 5 at HERE",
        "step 3 retraced: <lambda>: x: float32[3] → float32[4] at HERE",
        "step 4 retraced: <lambda>: n: static 5 → static 6 at HERE",
    ],
)
def the_nearest_trace_is_compared():
    helper, calls = jax.jit(lambda x, n: x * n, static_argnames="n"), iter([(3, 2), (3, 5), (4, 5), (4, 6)])

    def subject(_):
        size, n = next(calls)
        return helper(np.ones(size, "float32"), n=n)  # call

    return subject


@plain(1.0, 1.0, lines=["step 2 retraced: <lambda>: x: float32[3] → float32[4] at HERE"])
def the_shape_of_an_inner_argument():
    helper, left = jax.jit(lambda x, _: x), iter([np.ones(3, "float32"), np.ones(4, "float32")])
    return lambda state: helper(next(left), state)  # call


# A context manager around a helper at one step only; the argument that moved besides is not accused.
@plain(
    np.ones((2, 2)),
    np.ones((3, 3)),
    lines=["step 2 retraced: <lambda>: jax_default_matmul_precision: default → highest at HERE"],
)
def a_setting_around_a_helper():
    helper, precisions = jax.jit(lambda x: x @ x), iter(("default", "highest"))

    def subject(state):
        with jax.default_matmul_precision(next(precisions)):
            return helper(state)  # call

    return subject


# nnx.jit reports as its function; the line is the project's, not Flax's.
@plain(1.0, 1.0, lines=["step 2 retraced: forward: x: float32[2,3] → float32[4,3] at HERE"])
def nnx_jit():
    class Model(nnx.Module):
        def __init__(self):
            self.w = nnx.Param(jnp.ones((3, 3)))

    @nnx.jit
    def forward(model, x):
        return x @ model.w

    model, batches = Model(), iter((jnp.ones((2, 3)), jnp.ones((4, 3))))
    return lambda _: forward(model, next(batches))  # call


# The state that drifts is the first line, then each function that it reached.
@plain(
    X,
    jnp.ones(5),
    lines=[
        "step 2 retraced: state: float32[3] → float32[5]",
        "step 2 retraced: cosh: called with a new signature (JAX does not explain its own helpers) at HERE",
        "step 2 retraced: <lambda>: v: float32[3] → float32[5] at HERE",
    ],
)
def the_argument_before_what_follows_from_it():
    helper = jax.jit(lambda v: v * 3)
    return lambda state: helper(jnp.cosh(state))  # call


# NumPy arrays of another length are no cause by themselves: they may be filled up; what was called tells more.
@plain(
    np.ones(6, np.float32),
    np.ones(8, np.float32),
    lines=[
        "step 2 retraced: <lambda>: v: float32[3] → float32[4] at HERE",
        "step 2 retraced: data: float32[6] → float32[8]",
    ],
)
def data_on_the_host_after_what_it_was_made_into():
    helper = jax.jit(lambda v: v * 3)
    return lambda data: helper(np.resize(data, len(data) // 2))  # call


# Outside of jit ``lax.scan`` traces a new body at each call: the user's function is named, not only ``scan``.
@plain(X, X, lines=[f"step 2 retraced: <lambda> in scan: {NEW}"])
def a_scan_of_a_new_body():
    return lambda state: jax.lax.scan(lambda carry, _: (carry * 2, None), state, None, length=2)  # call


@pytest.mark.jax_text
@pytest.mark.parametrize(("make", "calls", "lines"), PLAIN.values(), ids=PLAIN)
def test_what_plain_python_traced_again(make, calls, lines):
    """The function, its cause, and the line that called it; the state only where it is the root."""
    found = plain_steps(make(), *((state,) for state in calls))
    assert found == [line.replace("HERE", line_of(make, "# call")) for line in lines]


def test_a_static_value_whose_past_is_unknown():
    """A function that was traced before anybody listened: that a static argument changed is known, at least."""
    fresh = jax.jit(power, static_argnames="n")
    fresh(X, n=2)
    with record(explain=True) as events:
        fresh(X, n=3)
    (culprit,) = Blame(complete=False).culprits(events)
    assert culprit.kind == "static"
    assert culprit.cause in ("n: static 2 → static 3", "a static argument changed (JAX does not say which)")


def test_the_arguments_of_a_nested_function():
    """Inside another function's trace its own arguments are read, never those of the function around it."""
    outer = jax.jit(lambda x, k: scaled(x, k + 1), static_argnums=1)
    with record(explain=True) as events:
        outer(np.ones(33, "float32"), 5)
    around, inside = events.log[0].misses
    assert [f"{seen.path}: {seen}" for seen in around.call] == ["x: float32[33]", "k: static 5"]
    assert [f"{seen.path}: {seen}" for seen in inside.call] == ["x: float32[33]", "n: static 6"]


def test_the_lines_of_a_step_are_bounded():
    """Three functions are named, the others counted."""
    culprits = [Culprit(function=f"f{n}", shown=f"f{n}", traces=1) for n in range(5)]
    lines = retrace_lines("step 2", culprits, subject="", before=(), after=())
    assert len(lines) == 4
    assert lines[-1] == "step 2: and 2 more functions"


def test_a_helper_that_runs_within_a_trace_takes_no_blame():
    """Concrete work inside of a trace compiles its own helpers first; the function keeps its own cause."""

    @jax.jit
    def shifted(x):
        with jax.ensure_compile_time_eval():
            offset = jnp.zeros((3, x.shape[0], 9))
        return x + offset[0, 0, 0]

    with record(explain=True) as events:
        shifted(np.ones(41, "float32"))
        shifted(np.ones(42, "float32"))
    culprits = Blame(complete=True).culprits(events)
    assert culprits[0].shown == "shifted"
    found = {culprit.shown: culprit for culprit in culprits}
    assert (found["shifted"].traces, found["shifted"].kind) == (2, "new")
    assert found["broadcast_in_dim"].kind is None
    assert not any(" in " in shown for shown in found)


def sampled(function, args, next_args):
    return sample_of(ready(function, args), next_args, call_ns=1_000_000, clock=clock)


def test_a_retrace_in_the_sample_is_explained_afterwards():
    """State that grows within a burst: the calls are made again, and the argument is named."""
    seen = sampled(jax.jit(lambda s: jnp.concatenate([s, s])), (jnp.ones(2),), lambda output, _: (output,))
    assert (seen.traces, seen.lowerings, seen.compiles, seen.cache_hits) == (1, 1, 1, 0)
    assert seen.retraces[0] == "call 2 of the sample retraced: s: float32[2] → float32[4]"


def test_a_sample_that_cannot_be_explained_says_so():
    """A fault that does not come again is no argument's."""
    forgotten = []

    def forget(output, _):
        if not forgotten:
            forgotten.append(True)
            jax.clear_caches()
        return (output,)

    seen = sampled(jax.jit(lambda s: s + 1), (X,), forget)
    assert seen.traces == 1
    assert seen.retraces == ["the sample retraced, the same calls made again did not: cause unknown"]


@pytest.mark.jax_text
@pytest.mark.usefixtures("persistent_cache")
def test_a_cache_hit_is_a_compile_and_a_hit():
    """A persistent-cache hit fires the compile event too: real compiles are compiles less hits, per function."""
    for hits in ([], ["<lambda>"]):
        with record() as events:
            jax.jit(lambda v: v * 17.25)(X)
        assert (events.traces, events.lowerings, events.compiles) == (["<lambda>"],) * 3
        assert events.cache_hits == hits


@pytest.mark.jax_text
def test_phases_are_counted_by_function():
    """Each list is fit for a Counter; the ``jit(…)`` around a lowered name is gone.

    A nested jit has no event of its own; its miss is heard with the outer one's.
    """
    inner = jax.jit(lambda v: v * 2)
    helper = jax.jit(lambda v: inner(v) - 1)
    with record(explain=True) as events:
        helper(X)
        helper(Y)
        helper(X)
        scaled(jnp.ones(6), n=9)
    helpers = {"<lambda>": 2, "scaled": 1}
    for names in (events.traces, events.lowerings, events.compiles):
        counted = Counter(names)
        assert {name: counted[name] for name in helpers} == helpers
    assert [miss.kind for miss in events.log[0].misses] == ["new", "new"]


def silence(kind, logger):
    """Ways in which a project's logging keeps JAX's explanations from being logged."""
    if kind == "level":
        logger.setLevel(logging.ERROR)
    elif kind == "disabled":
        logger.disabled = True
    elif kind == "everything":
        logging.disable(logging.CRITICAL)


@pytest.mark.parametrize("kind", ["as-it-is", "level", "disabled", "everything"])
def test_explaining_prints_nothing_and_leaves_nothing(kind, capfd, caplog):
    """Explanations reach us and no handler, however logging is set up, and all is as before afterwards."""
    logger = logging.getLogger("jax._src.interpreters.partial_eval")
    silence(kind, logger)
    before = logger.level, logger.disabled, logger.manager.disable
    try:
        with record(explain=True) as events:
            jax.jit(lambda v: v * 4)(X)
        assert (logger.level, logger.disabled, logger.manager.disable) == before
    finally:
        logger.setLevel(logging.NOTSET)
        logger.disabled = False
        logging.disable(logging.NOTSET)
    assert len(events.log[0].misses) == 1
    assert not jax.config.jax_explain_cache_misses
    assert logger.filters == []
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_blocks_may_be_nested():
    """Each hears every explanation once, and the outer one still listens when the inner one is over."""
    with record(explain=True) as outer:
        with record(explain=True) as inner:
            jax.jit(lambda v: v * 8)(X)
        jax.jit(lambda v: v * 9)(X)
    assert [len(events.traces) for events in (inner, outer)] == [1, 2]
    assert [len(event.misses) for event in inner.log if event.phase == "trace"] == [1]
    assert [len(event.misses) for event in outer.log if event.phase == "trace"] == [1, 1]


def test_explanations_that_the_user_asked_for_still_reach_him(caplog):
    """Whoever had switched them on before keeps them."""
    with jax.explain_cache_misses(True), record(explain=True) as events:
        jax.jit(lambda v: v * 6)(X)
    assert len(events.log[0].misses) == 1
    assert "TRACING CACHE MISS" in caplog.text


def test_another_thread_is_counted_and_not_explained():
    """Events of all threads count, and one thread's trace takes no explanation of another's."""
    work = threading.Thread(target=lambda: jax.jit(lambda v: v * 7)(X))
    with record(explain=True) as events:
        work.start()
        work.join()
    assert events.traces == ["<lambda>"]
    assert events.log[0].misses == ()


TEXTS = {
    "unknown-text": (
        "TRACING CACHE MISS at /home/user/a.py:3:1 (f):\n  for f defined at /home/user/a.py:1\n"
        "  all previously seen cache keys differ. For the closest previous key:\n  The moon is full; ask again.",
        ("f", "/home/user/a.py:1", "other", "The moon is full"),
    ),
    "nothing": ("TRACING CACHE MISS", ("?", "", "other", "")),
    "an entry of recorded calls": (
        "TRACING CACHE MISS at x:\n  for f defined at /home/user/a.py:1\n"
        "  all previously seen cache keys differ. For the closest previous key:\n"
        "  * jax_debug_key_reuse differs: now False and before True",
        ("f", "/home/user/a.py:1", "other", ""),
    ),
    "callable-object": (
        "TRACING CACHE MISS at /home/user/a.py:3:1 (f):\n  never seen function:\n    <unknown> id=1",
        ("<unnamed function>", "", "new", ""),
    ),
    "keywords": (
        "TRACING CACHE MISS at x:\n  for f defined at /home/user/a.py:1\n"
        "  all previously seen cache keys differ. For the closest previous key:\n  different input pytree:\n"
        "  * at input path [1]['state'], now <class 'dict'> with 2 children and before <class 'dict'> with 1 child, "
        "so the numbers of children do not match, with the symmetric difference of key sets: {'b'}",
        (
            "f",
            "/home/user/a.py:1",
            "arguments",
            "state: the tree changed: the numbers of children do not match, with the symmetric difference of "
            "key sets: {'b'}",
        ),
    ),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_texts_of_jax_are_read(text, expected):
    """What is not understood gives its first sentence; nothing is invented."""
    miss = read_miss(text, "")
    assert (miss.function, miss.defined, miss.kind, miss.cause) == expected


DEVICES = """
import json, sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
jax.config.update("jax_num_cpu_devices", 2)
from jaxgate.observe.execute.subjects import JittedSubject; from jaxgate.observe.execute.steps import take_steps
from jaxgate.observe.trace.clocks import CLOCKS; from jaxgate.observe.trace.stages import compile_program; from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.retraces import Blame, retrace_lines

def steps(function, old, new):
    lowered = lower(function, (old,), {}, role="subject", clock=lambda: 0)
    compile_program(lowered, clocks=CLOCKS)
    taken = take_steps(JittedSubject.of(lowered, ((old,), {})), lambda *_: (new,), clock=lambda: 0)
    return [taken.traces, taken.lowerings, taken.compiles, taken.retraces]

def plain(function, *values):
    blame = Blame(complete=True)
    for value in values:
        with record(explain=True) as events:
            function(value)
        culprits = blame.culprits(events)
    return retrace_lines("step 2", culprits, subject="", before=(), after=())

mesh = Mesh(np.array(jax.devices()), ("x",))
put = lambda spec: jax.device_put(jnp.ones(4), NamedSharding(mesh, spec))
on = [jax.device_put(jnp.ones(4), device) for device in jax.devices()]
small, large = jnp.ones((2, 3)), jnp.ones((2, 5))
mapped = jax.shard_map(lambda v: v * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
double = jax.jit(lambda state: state * 2)
inner = jax.jit(lambda state: state * 5)
per_device = jax.pmap(lambda state: state * 3)
print(json.dumps({
    "sharding": steps(double, put(P("x")), put(P())),
    "device": steps(double, *on),
    "pmap": steps(jax.pmap(lambda state: state * 2), small, large),
    "shard_map": steps(jax.jit(mapped), small, large),
    "inner sharding": plain(inner, put(P("x")), put(P())),
    "inner pmap": plain(per_device, small, large),
    "eager shard_map": plain(mapped, small, small),
}))
"""


@pytest.fixture(scope="module")
def two_devices(tmp_path_factory):
    """What is seen with two devices, from a fresh process."""
    script = tmp_path_factory.mktemp("devices") / "model.py"
    script.write_text(DEVICES)
    return json.loads(python(script))


ON_TWO = {  # traces, lowerings and compiles of the subject (None: the release decides), and what is in the first line
    "sharding": ((0, 1, 1), "step 2 recompiled: state: sharding NamedSharding(", "P('x',)", " → NamedSharding("),
    "device": (
        (0, None, 1),
        "step 2 recompiled: state: sharding SingleDeviceSharding(",
        "(id=0)",
        "→ SingleDevice",
        "(id=1)",
    ),
    "pmap": ((1, None, None), "step 2 retraced: state: float32[2,3] → float32[2,5]"),
    "shard_map": ((1, None, None), "step 2 retraced: v: float32[2,3] → float32[2,5]"),
    "inner sharding": ((), "step 2 recompiled: <lambda>: another sharding, device or layout"),
    "inner pmap": ((), "step 2 retraced: pmap: called with a new signature, or made anew at each call", "model.py:"),
    "eager shard_map": ((), "step 2 retraced: <unnamed function>: a new function object per call at "),
}


@pytest.mark.parametrize("what", ON_TWO)
def test_with_two_devices(two_devices, what):
    """Placements are told by both sides, pmap and shard_map by name and argument; what JAX hides is not made up."""
    counts, begin, *pieces = ON_TWO[what]
    *found, lines = two_devices[what] if counts else [two_devices[what]]
    assert all(number in (None, seen) for number, seen in zip(counts, found, strict=True))
    assert found[2:] != [0]
    assert lines[0].startswith(begin)
    assert all(piece in lines[0] for piece in pieces)
    assert all("_multi_slice" in line for line in lines[1:]) or what == "inner pmap"
