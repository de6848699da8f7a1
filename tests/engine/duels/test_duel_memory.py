"""Memory of a duel: buffers are shared where nothing eats them, copies are not left behind, too little says so."""

import gc
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from support.fakes import duel
from support.measured import alive
from support.projects import model

from jaxgate.observe.arguments.feeder import on_device
from jaxgate.observe.duel.duel import Contender, agree, prepare, run_duel
from jaxgate.observe.execute.correctness import Closeness
from jaxgate.observe.program.export import export_program
from jaxgate.observe.trace.lowering import lower

STATE, BATCH = jnp.ones((64, 8)), jnp.ones((64, 8))
STEPS = {
    "kept": (lambda s, b: (s * 0.9 + b, s.sum()), None),
    "kept and threaded": (lambda s, b: (s * 0.9 + b, s.sum()), (0, None)),
    "donated and threaded": (jax.jit(lambda s, b: (s * 0.9 + b, s.sum()), donate_argnums=0), (0, None)),
    "donated and consumed": (jax.jit(lambda s, b: (s * 0.9 + b, s.sum()), donate_argnums=0), None),
}


def two_sides(step):
    """One program, prepared twice for the same arguments."""
    function, feeds = STEPS[step]
    call = on_device((STATE, BATCH), {})
    lowered = lower(function, *call, role="subject", clock=lambda: 0)
    program = export_program(lowered, call, feeds, 0)
    return [prepare(program, [STATE, BATCH]) for _ in range(2)]


def pointers(leaves):
    """Where the buffers lie."""
    return [leaf.unsafe_buffer_pointer() for leaf in leaves]


@pytest.mark.parametrize("step", STEPS)
def test_what_nothing_eats_is_shared(step):
    """Both sides are called with the arguments' own buffers; a donated argument is copied, its neighbour is not."""
    ours, theirs = pointers([STATE, BATCH])
    for side in two_sides(step):
        state, batch = pointers(side.feeder.fresh()[0])
        assert batch == theirs
        assert (state == ours) is ("donated" not in step)


@pytest.mark.parametrize("step", STEPS)
def test_a_duel_leaves_no_array_behind(step):
    """As many arrays are alive after it as before, and the caller's are among them."""
    sides = two_sides(step)
    gc.collect()
    before = len(jax.live_arrays())
    assert agree(*sides, Closeness(0, 0))
    run_duel(*sides, settled=lambda _: False, max_pairs=2, platform="cpu")
    assert len(jax.live_arrays()) == before
    assert not STATE.is_deleted()
    assert not BATCH.is_deleted()


@pytest.mark.parametrize("step", STEPS)
def test_a_duel_holds_two_calls_at_most(step):
    """While it runs: the arguments, the copies for one burst, and the results of the last call and of this one."""
    sides = two_sides(step)
    seen = []
    for side in sides:
        real = side.function
        object.__setattr__(side, "function", lambda *leaves, real=real: (seen.append(alive()), real(*leaves))[1])
    before = alive()
    run_duel(*sides, settled=lambda _: False, max_pairs=2, platform="cpu")
    assert max(seen) - before <= 2 * STATE.nbytes + 8  # a copy or threaded state, and the result of the call before


# Through the plugin

MODEL = model("jnp.ones((123, 7))", step="x @ x.T")
LIVE = """
def test_memory():
    import gc
    gc.collect()
    assert [a.shape for a in jax.live_arrays() if a.shape == (123, 7)] == []
"""
CHANGE = ("x @ x.T", "x[::-1] @ x.T")
MORE = ("x @ x.T", "x @ x.T + (x * 2) @ x.T")


@pytest.fixture
def _duels_call(project, lab):
    """A project whose duels call both sides; no other clock is real: on a busy machine a call may take three times as long."""
    project.instruments["run_duel"] = run_duel


@pytest.mark.usefixtures("_duels_call")
def test_a_case_that_was_duelled_lets_its_arguments_go(project):
    """Hundreds of cases may be duelled in one run: only one that will be repeated keeps what it needs for that."""
    project.instruments["run_duel"] = lambda *_, **__: duel(1.0)
    project.write("test_model.py", MODEL + LIVE).record()
    project.edit("test_model.py", *CHANGE)
    result = project.run()
    assert "1.00 × the baseline" in result.line("SAME  model/step")
    result.counts(passed=2)


OUT_OF_MEMORY = {
    "device": lambda: jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 17179869184 bytes."),
    "host": lambda: MemoryError("cannot allocate"),
}


def starve(monkeypatch, error, *, side, at):
    """Let one side of every duel run out of memory at its call number ``at``; tell which sides were called."""
    order, calls, real = [], {}, Contender.call

    def call(self, leaves):
        if not any(self.function is known for known in order):
            order.append(self.function)  # kept alive: the id of one that ended is given to another
        number = next(n for n, known in enumerate(order) if self.function is known)
        calls[number] = calls.get(number, 0) + 1
        if number == side and calls[number] == at:
            raise error()
        return real(self, leaves)

    monkeypatch.setattr(Contender, "call", call)
    return calls


@pytest.mark.usefixtures("_duels_call")
@pytest.mark.parametrize(("error", "side", "at"), [("device", 0, 9), ("host", 1, 1)])
def test_too_little_memory_for_a_side_is_undecided(project, monkeypatch, error, side, at):
    """Never SAME: the line says what happened; the facts were judged; nothing is left behind."""
    project.write("test_model.py", MODEL + LIVE).record()
    project.edit("test_model.py", *CHANGE)
    calls = starve(monkeypatch, OUT_OF_MEMORY[error], side=side, at=at)
    result = project.run("--perf-strict", "--perf-max-undecided=1")
    assert calls[side] == at
    result.counts(passed=2)
    line = result.line("model/step")
    assert line.startswith("UNDECIDED")
    assert "program changed and the duel failed: out of memory: " in line


@pytest.mark.usefixtures("_duels_call")
def test_facts_are_judged_where_memory_is_too_little(project, monkeypatch):
    """A second multiplication is REGRESSED all the same, and time is UNDECIDED beside it."""
    project.write("test_model.py", MODEL).record()
    project.edit("test_model.py", *MORE)
    starve(monkeypatch, OUT_OF_MEMORY["device"], side=1, at=1)
    result = project.run()
    assert result.code == 1
    result.shows("REGRESSED  model/step", "matmul_flops")
    assert "UNDECIDED: program changed and the duel failed: out of memory: RESOURCE_EXHAUSTED" in result.line("  time")


# Several devices

PLACED = """
import json
import jax, jax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 8)
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.execute.correctness import Closeness
from jaxgate.observe.duel.duel import agree, prepare, run_duel
from jaxgate.observe.program.export import export_program

def pointers(leaf):
    return [shard.data.unsafe_buffer_pointer() for shard in leaf.addressable_shards]

def step(w, x, b, loose):
    return jnp.sin(x @ w) + b, w * 0.5, loose + 1

def arguments(axes, kind, shape=(2, 4)):
    mesh = jax.make_mesh(shape, axes, axis_types=(kind,) * 2)
    put = lambda value, *spec: jax.device_put(value, NamedSharding(mesh, P(*spec)))
    return [put(jnp.ones((16, 8)), None, axes[1]), put(jnp.ones((8, 16)), axes[0]), put(jnp.ones(8)), jnp.ones(3)]

def stored(leaves, donated=()):
    lowered = lower(jax.jit(step, donate_argnums=donated), leaves, {}, role="subject", clock=lambda: 0)
    program = export_program(lowered, (tuple(leaves), {}), None, 0)
    assert program.record.why_not == "", program.record.why_not
    return program

found = {}
for kind in (AxisType.Auto, AxisType.Explicit):
    theirs = arguments(("dp", "mp"), kind)
    for name, axes, shape in (("same", ("dp", "mp"), (2, 4)), ("renamed", ("data", "model"), (2, 4)),
                              ("other shape", ("dp", "mp"), (4, 2))):
        leaves = arguments(axes, kind, shape)
        now, baseline = prepare(stored(leaves), leaves), prepare(stored(theirs), leaves)
        given = baseline.feeder.fresh()[0]
        duel = run_duel(now, baseline, settled=lambda _: False, max_pairs=2, platform="cpu")
        found[f"{kind.name} {name}"] = {
            "shared": [pointers(a) == pointers(b) for a, b in zip(leaves, given)],
            "agrees": agree(now, baseline, Closeness(1e-6, 0)), "pairs": len(duel.now_ns), "traces": duel.traces,
        }
    side = prepare(stored(theirs, donated=0), theirs)
    given = side.feeder.fresh()[0]
    found[f"{kind.name} donated"] = {"shared": [pointers(a) == pointers(b) for a, b in zip(theirs, given)]}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def placed():
    """What eight virtual devices show, in a process of their own."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", PLACED], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("mesh", ["same", "renamed"])
def test_arguments_that_lie_right_are_not_copied(placed, kind, mesh):
    """On a mesh of the program's form, whatever its axes are called: shards are used where they are."""
    found = placed[f"{kind} {mesh}"]
    assert found["shared"] == [True, True, True, False]  # the last lies on one device, and has to go to eight
    assert (found["agrees"], found["pairs"], found["traces"]) == (True, 2, 0)


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_arguments_on_another_mesh_are_moved(placed, kind):
    """A program for 2x4 devices gets its arguments from 4x2: what is split is moved, what is everywhere stays."""
    found = placed[f"{kind} other shape"]
    assert found["shared"] == [False, False, True, False]
    assert (found["agrees"], found["pairs"], found["traces"]) == (True, 2, 0)


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_donated_arguments_of_several_devices_are_copied(placed, kind):
    assert placed[f"{kind} donated"]["shared"] == [False, True, True, False]
