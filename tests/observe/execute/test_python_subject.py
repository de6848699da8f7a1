"""Plain Python around device programs: launches, transfers, traces and times of a warm call, as it is."""

import itertools
from collections import Counter
from dataclasses import fields
from functools import partial
from types import MethodType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from support.clocks import Ticking
from support.measured import measured, observed
from support.processes import python

from jaxgate.model.computation import Amount, Batch
from jaxgate.model.launched import CALL_FACTS
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.execute import dispatches
from jaxgate.observe.execute.dispatches import ELSEWHERE, count_launches
from jaxgate.observe.execute.subjects import WHY_NOT, EagerSubject
from jaxgate.observe.program.export import NotReplayableError
from jaxgate.observe.source_lines import short_path
from jaxgate.observe.trace.clocks import Clocks
from jaxgate.observe.trace.jitted import find_jitted_functions

W = jnp.ones(8)
HOST_X = np.ones(8, np.float32)


def step(w, x):
    """A step that gives its state and a loss."""
    return w - 0.1 * x, jnp.sum(w * x)


jitted = jax.jit(step)
donating = jax.jit(step, donate_argnames="w")


def body(w, x):
    """One jitted function, one eager operation that takes a Python number, and a number brought back."""
    w, loss = jitted(w, x)
    return w * 0.5, float(loss)


def measure(subject, *args, sampling=False, **computation):
    """What is measured of a subject on the host, under a fake clock."""
    tools = {"sampling": sampling, "clocks": Clocks(wall=Ticking(100_000_000), kept=lambda: 0)}
    return measured(subject, *args, tools=tools, eager=True, **computation)


def thread(output, args):
    """The state of the next step, in a way that only the loop knows."""
    return output[0], *args[1:]


def test_facts_of_a_loop_body():
    """Launches and transfers of a warm call are counted by program and line, and what its programs need is added up."""
    now = measure(body, W, HOST_X, next_args=thread)
    assert now.eager
    assert now.launched == {"step": 1, "multiply": 1}
    known = {
        "jitted": 0, "kept_arrays": 0, "cyclic_objects": 0, "cyclic_arrays": 0, "traces": 1, "lowerings": 1,
        "compiles": 1, "sampled_traces": 0, "sampled_compiles": 0, "donated_bytes": 0,
    }  # fmt: skip
    known |= {"launches": 2, "host_transfers": 3}
    known |= {
        "host_reads": 0,
        "host_waits": 0,
        "python_calls": 3,
        "jax_calls": now.facts.jax_calls,
    }  # the last is of this release
    known |= {name: getattr(now.facts, name) for name in CALL_FACTS if name != "code_bytes"}
    facts = {item.name: getattr(now.facts, item.name) for item in fields(now.facts)}
    assert {name: value for name, value in facts.items() if value is not None} == known
    first, second = (f"{short_path(__file__)}:{body.__code__.co_firstlineno + line}" for line in (2, 3))
    assert now.transferred == {"multiply": 1, "step": 1, "the host": 1}
    assert now.culprits.transfer_lines == {"multiply": second, "step": first, "the host": second}
    launched = {name: line for name, line in now.culprits.lines.items() if name in now.launched}
    assert launched == {"step": first, "multiply": second}
    assert [(leaf.path, leaf.aval, leaf.donated) for leaf in now.signature] == [
        ("w", "float32[8]", False),
        ("x", "float32[8]", False),
    ]


def test_times_of_a_call():
    """The first call is cold and whole, host_ns is a warm call waited for; nothing is told of phases within."""
    now = measure(body, W, HOST_X, sampling=True, amount=Amount(count=8, unit="samples"))
    assert now.amount == Amount(count=8, unit="samples")
    tick = 100_000_000  # the first call is a step, too, for which the clock is read twice
    assert (now.phases.first_call_ns, now.phases.host_ns) == (3 * tick, tick)
    assert (now.phases.trace_ns, now.phases.lower_ns, now.phases.compile_ns) == (None, None, None)
    assert now.samples.bursts_ns == (100_000_000,) * 3
    blocked = measure(body, W, HOST_X, sampling=True, contract="latency").samples
    assert (blocked.calls_per_burst, blocked.contract) == (1, "latency")
    quick = measure(body, W, HOST_X)
    assert (quick.samples, quick.phases.host_ns, quick.facts.sampled_compiles) == (None, None, 0)


def test_arguments_stay_what_they_are():
    """NumPy arguments reach the function as NumPy arrays, and the caller's own are neither changed nor donated."""

    def changes(w, x):
        assert isinstance(x, np.ndarray)
        x += 1
        return donating(w, x)

    w, x = jnp.ones(8), np.ones(8, np.float32)
    now = measure(changes, w, x, sampling=True)
    assert not w.is_deleted()
    assert x.tolist() == [1.0] * 8
    assert now.facts.donated_bytes == 32
    assert [leaf.donated for leaf in now.signature] == [True, False]
    assert now.samples.calls_per_burst == 1  # each call needs copies


def made_anew(w):
    """jax.jit of a new object in each call compiles each time."""
    return jax.jit(lambda v: v + 1)(w)


def longer(w):
    """State that comes back longer compiles anew at every step."""
    return jnp.concatenate([jitted(w, w)[0], w[:1]])


NUMBERS = itertools.count()
powered = jax.jit(lambda w, n: w**n, static_argnums=1)
twice = jax.jit(lambda w: jnp.concatenate([w, w]))


def with_a_static_number(w):
    """A static Python number that counts up compiles in every call."""
    return powered(w, next(NUMBERS))


ANEW = f"step 2 retraced: <lambda>: a new function object per call at {short_path(__file__)}:"


@pytest.mark.parametrize(
    ("subject", "threads", "traces", "sampled", "cause"),
    [
        (made_anew, False, 3, 1, f"{ANEW}{made_anew.__code__.co_firstlineno + 2}"),
        (longer, True, None, None, "step 2 retraced: w: float32[8] → float32[9]"),
        (with_a_static_number, False, 3, 1, ""),
        (lambda w: twice(w), True, 3, None, ""),  # though an earlier call compiled for its shapes: steps start cold
    ],
    ids=["function", "shape", "static number", "compiled before"],
)
def test_what_compiles_in_every_call_is_named(subject, threads, traces, sampled, cause):
    """In the steps; in the steady state too, of which one call is enough."""
    for size in (8, 16, 32, 64, 128) if threads else ():
        twice(jnp.ones(size))
    now = measure(subject, W, next_args=(lambda output, _: (output,)) if threads else None, sampling=sampled == 1)
    assert now.facts.compiles > 1
    assert traces is None or (now.facts.traces, now.facts.compiles) == (traces, traces)
    assert sampled is None or (now.facts.sampled_traces, now.facts.sampled_compiles) == (sampled, sampled)
    assert now.culprits.retraces[0].startswith(cause)
    assert now.samples is None or len(now.samples.bursts_ns) == 1


def test_nnx_train_step_changes_its_model_in_place():
    """A step under nnx.jit runs on copies of model and optimizer, twice as often as needed, and compiles once."""
    model = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def train(model, optimizer, x):
        loss, grads = nnx.value_and_grad(lambda m: jnp.mean(m(x) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    before = np.asarray(model.kernel[...])
    now = measure(train, model, optimizer, np.ones((2, 4), np.float32))
    assert (now.facts.traces, now.facts.compiles, now.facts.sampled_traces, now.facts.sampled_compiles) == (1, 1, 0, 0)
    assert (now.launched, now.facts.host_transfers) == ({"train": 1}, 1)
    assert np.array_equal(before, np.asarray(model.kernel[...]))
    assert "train" in now.culprits.lines


class Net:
    """A module whose arrays stand elsewhere, as Flax Linen has them; unless it is given some."""

    def __init__(self, mean=None):
        self.mean = mean

    def apply(self, w, x):
        return w * x


@pytest.mark.parametrize(("mean", "kept"), [(None, True), (np.ones(8), False)])
def test_a_method_beside_the_state_is_the_same_one_in_each_call(mean, kept):
    """JAX compares it, and would trace for another one; one whose object holds arrays is copied with them."""
    method = Net(mean).apply
    (copied,), _ = EagerSubject(lambda state: state, (([method],), {}), "subject").fresh()
    assert (copied[0] is method) == kept


def test_a_method_that_returns_nothing_is_waited_for():
    """A trainer's step that keeps its state in its object has that to wait for, and its jitted functions are found."""

    class Trainer:
        def __init__(self):
            self.w, self.update = jnp.ones(8), jax.jit(step)

        def step(self, x):
            self.w, _ = self.update(self.w, x)

    trainer = Trainer()
    now = measure(trainer.step, HOST_X)
    assert (now.launched, now.facts.compiles) == ({"step": 1}, 1)
    assert "step" in now.culprits.lines
    passed = measure(lambda trainer: trainer.update(trainer.w, HOST_X), trainer)
    assert (passed.facts.compiles, passed.facts.sampled_compiles) == (1, 0)  # its copy keeps the jitted function


@pytest.mark.jax_text
def test_one_program_on_one_device_or_eight_is_one_launch(tmp_path):
    """A launch counts once per call, however many devices it runs on; an array for all of them is one transfer."""
    file = tmp_path / "several.py"
    file.write_text(
        "import jax, numpy as np\n"
        "jax.config.update('jax_num_cpu_devices', 4)\n"
        "from jax.sharding import Mesh, NamedSharding, PartitionSpec\n"
        "from jaxgate.model.computation import Computation\n"
        "from jaxgate.observe.measure import observe\n"
        "from jaxgate.observe.tools import Tools\n"
        "step = jax.jit(lambda w, x: w + x)\n"
        "step.__wrapped__.__name__ = 'step'\n"
        "w = jax.device_put(np.ones(8, np.float32), NamedSharding(Mesh(np.array(jax.devices()), 'x'), PartitionSpec('x')))\n"
        "def body(w, x):\n"
        "    return step(w, x) * 2.0\n"
        "build = lambda: Computation(subject=body, args=(w, np.ones(8, np.float32)), eager=True)\n"
        "now = observe(build, Tools(store={})).measurement\n"
        "print(now.hardware.devices, now.facts.launches, now.facts.host_transfers, now.facts.compiles, now.unknown)\n"
    )
    assert python("-W", "error", file) == "4 2 2 1 {}\n"


@pytest.mark.jax_text
def test_counts_are_the_same_every_time():
    found = Counter(
        str(count_launches(lambda: partial(body, W, HOST_X), jax.devices()[:1])) for _ in range(10)
    )  # two captures each
    assert len(found) == 1
    assert "'step': 1, 'multiply': 1" in next(iter(found))


@pytest.mark.jax_text
def test_what_is_put_on_devices_is_counted():
    """NumPy arrays and Python numbers count, device arrays do not; device_put counts under its own name."""

    def transfers(call):
        call()
        return count_launches(lambda: call, jax.devices()[:1]).transfers

    assert transfers(lambda: jitted(W, W)) == {}
    assert transfers(lambda: jitted(W, HOST_X)) == {"step": 1}
    assert transfers(lambda: jitted(2.0, 3.0)) == {"step": 2}
    assert transfers(lambda: jax.device_put([HOST_X, HOST_X])) == {ELSEWHERE: 2}


def test_a_callback_s_transfers_are_not_the_call_s():
    """What a host callback moves is its own; the program that calls it is one launch."""
    twice = jax.jit(
        lambda x: jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1
    )
    now = measure(lambda w: twice(w), W)
    assert (now.facts.launches, now.facts.host_transfers, now.facts.host_callbacks) == (1, 0, 1)


def test_a_profile_that_is_open_leaves_the_counts_unknown(tmp_path):
    """While somebody else profiles, launches are None with the reason, and the rest is measured."""
    jax.profiler.start_trace(str(tmp_path))
    try:
        now = measure(body, W, HOST_X)
    finally:
        jax.profiler.stop_trace()
    assert (now.launched, now.facts.launches, now.facts.host_transfers, now.facts.compiles) == ({}, None, None, 1)
    assert "no profile could be taken" in now.unknown["launches"]
    assert "Only one profile may be run at a time" in now.unknown["host_transfers"]


def test_a_profile_that_does_not_show_every_launch_is_not_trusted(monkeypatch):
    """Counts of two calls that differ are no fact; a runtime that names its events otherwise gives None, never 0."""
    turns = iter(range(10**6))

    def uneven(w):
        for _ in range(next(turns) % 2):
            w = jitted(w, w)[0]
        return jitted(w, w)

    found = count_launches(lambda: partial(uneven, W), jax.devices()[:1])
    assert (found.programs, found.transfers, found.why_not) == (None, {}, "the launches of two calls differ")
    monkeypatch.setattr(dispatches, "_ONE_DEVICE", dispatches._WHOLE)
    found = count_launches(lambda: partial(body, W, HOST_X), jax.devices()[:1])
    assert (found.programs, found.transfers) == (None, None)
    assert found.why_not == "the profile of this backend does not show every launch"
    monkeypatch.setattr(jax.profiler, "ProfileData", None)  # another release may write it otherwise
    found = count_launches(lambda: partial(body, W, HOST_X), jax.devices()[:1])
    assert found.why_not.startswith("the profile could not be read: ")


def test_a_call_that_raises_leaves_no_profile_open():
    """An exception within a profile ends it, and is the case's own."""

    def fails():
        raise ValueError("no batch")

    with pytest.raises(ValueError, match="no batch"):
        count_launches(lambda: fails, jax.devices()[:1])
    assert count_launches(lambda: partial(body, W, HOST_X), jax.devices()[:1]).programs is not None


@pytest.mark.parametrize(
    ("subject", "args", "reason"),
    [
        (lambda w: None, (W,), "expected something to wait for"),
        (lambda x: float(x.sum()), (HOST_X,), "expected device programs, found none launched"),
        (lambda w: jitted(w, w)[0] * jnp.nan, (W,), "expected numbers, found 8 NaN of 8"),
        (
            lambda _: 1.0,
            ((item for item in ()),),
            r"copy.deepcopy can copy, .* found for _: cannot pickle 'generator' object",
        ),
    ],
    ids=["nothing returned", "nothing launched", "NaN", "a generator"],
)
def test_what_cannot_be_measured_is_refused(subject, args, reason):
    """No time without a result, no launch count without a program."""
    with pytest.raises(InvalidCaseError, match=reason):
        measure(subject, *args)


def test_a_reference_is_called_as_it_is_too():
    """Launches of both sides are known, and their results are held against each other."""

    def naive(w, x):
        total = sum(float(value) for value in w * x)
        return (w - 0.1 * x) * 0.5, total

    now = measure(body, W, HOST_X, sampling=True, reference=naive)
    assert now.reference.facts.launches > now.facts.launches
    assert (now.reference.facts.traces, now.reference.phases.first_call_ns) == (None, None)
    assert now.reference.phases.host_ns == 100_000_000
    with pytest.raises(InvalidCaseError, match="subject gives"):
        measure(body, W, HOST_X, reference=lambda w, x: (w, 8.0))


def test_a_batch_is_checked():
    batch = np.ones((4, 8), np.float32)
    measure(lambda w, x: jitted(w, x)[1], W, batch, batch=Batch(argument=1, size=4))
    with pytest.raises(InvalidCaseError, match="sample 3 of 4 does not influence the result"):
        measure(lambda w, x: jitted(w, x[:3])[1], W, batch, batch=Batch(argument=1, size=4))


def test_it_is_not_exported():
    found = observed(body, W, HOST_X, eager=True)
    assert (found.export().content, found.export().record.why_not) == (b"", WHY_NOT)
    with pytest.raises(NotReplayableError, match=WHY_NOT):
        found.leaves()


def test_jitted_functions_are_found_by_name_closure_and_attribute():
    """Globals, closures, partials and attributes are looked through; pmap gives no jitted function."""
    inner = jax.jit(lambda v: v)
    inner_name = inner.__wrapped__.__name__

    def caller(w):
        return inner(jitted(w, w)[0])

    assert set(find_jitted_functions(caller)) == {inner_name, "step"}
    assert set(find_jitted_functions(partial(caller, W))) == {inner_name, "step"}
    of_a_library = MethodType(lambda trainer, w: trainer.step(w, w), SimpleNamespace(step=jitted))
    assert set(find_jitted_functions(of_a_library)) == {"step"}
    mapped = jax.pmap(step)
    assert find_jitted_functions(lambda w: mapped(w, w)) == {}


class Keyed:
    """An owner whose dict has keys that nobody can sort, as Keras's models have their layers."""

    def __init__(self):
        self.state = {object(): W, object(): [W, {object(): W}]}

    def step(self, x):
        """Changes what it belongs to, and returns nothing."""
        self.state = {key: jitted(W, x)[0] for key in self.state}


def test_an_owner_with_keys_that_cannot_be_sorted_is_waited_for():
    """Its arrays are found, though JAX refuses to flatten such a dict."""
    owner = Keyed()
    assert len(EagerSubject(owner.step, ((W,), {}), "subject").arrays(None, ((), {}))) == 3
    assert measure(owner.step, W).facts.launches == 2


def test_an_argument_with_keys_that_cannot_be_sorted_is_refused():
    """JAX cannot flatten it, whoever is given it: one error with what was being done, not a traceback."""
    with pytest.raises(InvalidCaseError, match="flattening the arguments: ValueError: Comparator raised exception"):
        measure(lambda nodes: jitted(W, *nodes.values()), {object(): W, object(): W})
