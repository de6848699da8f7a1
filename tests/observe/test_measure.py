"""One observation end to end: facts and phases of a case, a reference that is remembered, and every way to fail."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.clocks import Ticking
from support.measured import Store, measured, observed

from jaxgate.model.computation import Batch
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import Clocks
from jaxgate.observe.trace.compile_events import record

X = jnp.ones((8, 4))


def measure(subject, *args, store=None, progress=lambda _: None, sampling=True, **computation):
    """Observe a computation under a fake clock."""
    clocks = Clocks(wall=Ticking(), thread=Ticking(), process=Ticking(), asleep=Ticking())
    store = Store() if store is None else store
    tools = {"store": store, "progress": progress, "sampling": sampling, "clocks": clocks}
    return measured(subject, *args, tools=tools, **computation)


def donated_step():
    """A train step that asks for its state's buffers, new each time."""

    def step(state, batch):
        grads = jax.grad(lambda w: jnp.mean((batch @ w) ** 2))(state["w"])
        return {"w": state["w"] - 0.1 * grads, "n": state["n"] + 1}

    return jax.jit(step, donate_argnames="state")


def test_facts_of_a_donated_step():
    """Every fact that can be worked out by hand, on the real backend."""
    state = {"w": jnp.ones((4, 6)), "n": jnp.int32(0)}
    seen = measure(donated_step(), state, X, next_args=lambda output, args: (output, args[1]))
    facts = seen.facts
    assert (facts.traces, facts.lowerings, facts.compiles) == (1, 1, 1)
    assert (facts.sampled_traces, facts.sampled_compiles) == (0, 0)
    assert facts.donated_bytes == facts.aliased_bytes == 4 * 6 * 4 + 4
    assert (facts.lost_bytes, facts.widened_bytes, facts.collectives, facts.collective_bytes) == (0, 0, 0, 0)
    assert (facts.launches, facts.host_transfers) == (None, None)  # of plain Python only
    assert facts.output_bytes - facts.donated_bytes in (0, 2 * 8)  # a table of two pointers, on the CPU
    assert facts.argument_bytes == 4 * 6 * 4 + 4 + 8 * 4 * 4
    assert facts.matmul_flops == 2 * (2 * 8 * 4 * 6)  # batch @ w, and batch.T @ the gradient of it
    assert (facts.constant_bytes, facts.host_callbacks) == (0, 0)
    assert facts.stablehlo_ops == sum(seen.operations.values())
    assert seen.operations["stablehlo.dot_general 8x6xf32"] == 1
    assert seen.operations["stablehlo.dot_general 6x4xf32"] == 1  # transposed afterwards
    assert sum(seen.matmuls.values()) == 2
    assert [leaf.path for leaf in seen.signature] == ["state['n']", "state['w']", "batch"]
    assert [leaf.donated for leaf in seen.signature] == [True, True, False]
    assert np.asarray(state["w"]).tolist() == np.ones((4, 6)).tolist()
    assert (seen.hardware.platform, seen.hardware.devices) == (jax.default_backend(), 1)
    assert seen.culprits.retraces == ()


def test_phases_and_samples_are_the_clocks():
    """Each phase is one reading to the next; bursts likewise."""
    seen = measure(donated_step(), {"w": jnp.ones((4, 6)), "n": jnp.int32(0)}, X)
    phases = seen.phases
    assert (phases.trace_ns, phases.lower_ns, phases.compile_ns, phases.first_call_ns) == (1000, 1000, 1000, 1000)
    assert phases.trace_wait_ns == 1000
    assert set(seen.samples.bursts_ns) == {1000}


def test_nothing_is_traced_or_compiled_twice():
    """The steps and the sample hit the very executable that the phases were timed on."""
    with record() as events:
        measure(donated_step(), {"w": jnp.ones((4, 6)), "n": jnp.int32(0)}, X)
    assert events.traces_of("step") == 1
    assert len([name for name in events.compiles if "step" in name]) == 1


def test_a_function_that_was_called_before_is_measured_cold():
    """Its phases are real ones, and it counts one trace and one compilation."""
    step = donated_step()
    step({"w": jnp.ones((4, 6)), "n": jnp.int32(0)}, X)
    seen = measure(step, {"w": jnp.ones((4, 6)), "n": jnp.int32(0)}, X)
    assert (seen.facts.traces, seen.facts.compiles) == (1, 1)
    assert (seen.facts.sampled_traces, seen.facts.sampled_compiles) == (0, 0)
    assert (seen.phases.trace_ns, seen.phases.compile_ns) == (1000, 1000)


def test_a_reference_that_was_called_before_leaves_the_subject_alone():
    """Measuring the reference cold does not cost the subject its executable: nothing is compiled in the sample."""
    reference = jax.jit(lambda x: x * 2 + 1)
    reference(X)
    seen = measure(lambda x: 1 + 2 * x, X, reference=reference)
    assert (seen.facts.traces, seen.facts.compiles) == (1, 1)
    assert (seen.facts.sampled_traces, seen.facts.sampled_compiles) == (0, 0)


def test_subject_and_reference_may_share_a_function():
    """The donating way against the copying way of one function: each is traced and compiled once."""

    def step(x):
        return x * 2 + 1

    seen = measure(jax.jit(step, donate_argnums=0), X + 0, reference=step)
    assert (seen.facts.traces, seen.facts.compiles) == (1, 1)
    assert (seen.facts.sampled_traces, seen.facts.sampled_compiles) == (0, 0)
    assert (seen.facts.aliased_bytes, seen.reference.facts.aliased_bytes) == (128, 0)


def loop(x):
    """A reference with a name of its own."""
    for _ in range(3):
        x = x * 2
    return x


def test_a_reference_is_compiled_once_and_remembered():
    """The second observation traces the reference, and takes facts, compile time and output from the store."""
    store = Store()
    first = measure(lambda x: x * 8, X, store=store, reference=jax.jit(loop))
    said = []
    with record() as events:
        second = measure(lambda x: x * 8, X, store=store, reference=jax.jit(loop), progress=said.append)
    assert (first.reference.cached, second.reference.cached) == (False, True)
    assert second.reference.facts == first.reference.facts
    assert second.reference.phases == first.reference.phases
    assert len(store) == 1
    assert [name for name in events.compiles if "loop" in name] == []
    assert events.traces_of("loop") == 1
    assert said == ["building", "tracing", "compiling", "running", "tracing the reference", "sampling", "reading"]


@pytest.mark.parametrize(
    ("subject", "reference", "value"),
    [(lambda x: x * 8, loop, X + 1), (lambda x: x * 9, lambda x: x * 9.0, X), (lambda x: x * 8, loop, X[:4])],
    ids=["values", "program", "shape"],
)
def test_a_remembered_reference_is_not_used_for_another(subject, reference, value):
    """Other inputs or another program are looked up under another key."""
    store = Store()
    measure(lambda x: x * 8, X, store=store, reference=loop)
    assert not measure(subject, value, store=store, reference=reference).reference.cached
    assert len(store) == 2


def test_a_remembered_output_is_compared_too():
    """A subject that went wrong does not pass because its reference is remembered."""
    store = Store()
    measure(lambda x: x * 8, X, store=store, reference=loop)
    with pytest.raises(InvalidCaseError, match="comparing subject and reference"):
        measure(lambda x: x * 9, X, store=store, reference=loop)


def test_a_plain_function_without_arrays():
    """A function without array inputs has devices all the same: those of its result."""
    seen = measure(lambda: jnp.arange(6.0) * 2)
    assert (seen.facts.argument_bytes, seen.facts.output_bytes) == (0, 24)
    assert (seen.signature, seen.hardware.devices) == ((), 1)


@pytest.mark.parametrize(
    ("options", "args", "kwargs"),
    [({"static_argnums": 1}, (X, 3), {}), ({"static_argnames": "times"}, (X,), {"times": 3})],
    ids=["position", "keyword"],
)
def test_static_arguments(options, args, kwargs):
    """Static arguments are passed on, in the check of the batch too."""
    step = jax.jit(lambda x, times: x * times, **options)
    seen = measure(step, *args, kwargs=kwargs, batch=Batch(argument=0, size=8))
    assert (seen.facts.traces, seen.facts.compiles) == (1, 1)
    assert [leaf.aval for leaf in seen.signature] == ["float32[8,4]"]


def fail(text):
    """Raise from within an expression."""
    raise ValueError(text)


def on_the_host(x):
    """A program that fails when it runs."""
    return jax.pure_callback(lambda _: fail("on the host"), jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def bad_option(x):
    """A program that the compiler refuses."""
    return x * 2


FAILURES = {
    "tracing": (lambda _: fail("not traceable"), {}, "tracing the subject", "ValueError: not traceable (at "),
    "a-number-that-must-stay-one": (
        lambda x, number=4: x + jnp.ones(number)[0],
        {"kwargs": {"number": 5}},
        "tracing the subject",
        "unless static, number is traced: bind a number that must stay one with functools.partial",
    ),
    "compiling": (
        jax.jit(bad_option, compiler_options={"xla_no_such_option": True}),
        {},
        "compiling the subject",
        "xla_no_such_option",
    ),
    "running": (on_the_host, {}, "step 1 of the subject", "on the host"),
    "memory": (
        lambda x: jnp.zeros((1 << 44,)) + x[0, 0],
        {},
        "step 1 of the subject",
        "RESOURCE_EXHAUSTED: asked for 70.4 TB",
    ),
    "nan": (lambda x: x / 0 * 0, {}, "checking the subject's result at step 3", "found 32 NaN of 32 in result"),
    "tracing-the-reference": (
        lambda x: x,
        {"reference": lambda _: fail("not traceable")},
        "tracing the reference",
        "ValueError: not traceable (at ",
    ),
    "running-the-reference": (lambda x: x, {"reference": on_the_host}, "running the reference", "on the host"),
    "nan-of-the-reference": (
        lambda x: x,
        {"reference": lambda x: x / 0 * 0},
        "checking the reference's result",
        "found 32 NaN of 32 in result",
    ),
    "disagreement": (lambda x: x, {"reference": lambda x: x + 1}, "comparing subject and reference", "32 of 32"),
    "cut-batch": (lambda x: x[:-1].sum(), {"batch": Batch(argument=0, size=8)}, "checking the batch", "sample 7 of 8"),
}


@pytest.mark.parametrize(("subject", "options", "stage", "reason"), FAILURES.values(), ids=FAILURES)
def test_failures_name_their_stage(subject, options, stage, reason):
    """Whatever fails, and wherever, is one clear reason with what was being done."""
    with pytest.raises(InvalidCaseError) as caught:
        measure(subject, X, **options)
    assert caught.value.stage == stage
    assert reason in caught.value.reason


def test_a_failing_builder_names_its_line():
    """The innermost line of the project is in the message."""
    line = fail.__code__.co_firstlineno + 2
    with pytest.raises(InvalidCaseError) as caught:
        observe(lambda: fail("no data"), Tools(store=Store()))
    assert caught.value.stage == "building the workload"
    assert caught.value.reason.startswith("ValueError: no data (at ")
    assert caught.value.reason.endswith(f"test_measure.py:{line})")


def test_a_persistent_cache_gives_no_compile_time(persistent_cache):
    """A program that came off the disk was not compiled: its compile time is unknown, its facts are the same."""
    first = measure(lambda x: jnp.tanh(x @ x.T), X)
    jax.clear_caches()
    second = measure(lambda x: jnp.tanh(x @ x.T), X)
    # Either the cache was kept out of it, or its hit was noticed.
    compiled_again = not list(persistent_cache.iterdir())
    assert first.phases.compile_ns == 1000
    assert second.phases.compile_ns == (1000 if compiled_again else None)
    assert second.facts == first.facts


def test_buffers_are_read_without_compiling_again():
    """The largest buffers come out of the executable that was measured; a second look compiles nothing either."""
    seen = observed(lambda x: jnp.sort(x) + 1, X)
    assert seen.measurement.culprits.allocations == ()
    with record() as events:
        first = seen.with_allocations()
        assert seen.with_allocations() == first
    assert not events.log
    assert any(" argument parameter x" in line for line in first.culprits.allocations)
