"""Steps that go on: how many, what they count, and a state that nobody said is threaded."""

import gc
import itertools
import re
from collections import deque
from threading import Thread
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.clocks import Ticking
from support.measured import measured, ready
from support.processes import python

from jaxgate.observe.arguments.carry import Carry
from jaxgate.observe.arguments.lockstep import Lockstep
from jaxgate.observe.execute import steps
from jaxgate.observe.execute.steps import MAX_STEPS, STEPS, take_further_steps, take_steps
from jaxgate.observe.execute.subjects import EagerSubject
from jaxgate.observe.trace.clocks import Clocks

MS = 1_000_000
TICKING = {"clocks": Clocks(wall=Ticking())}
X = jnp.ones(4)
_double = jax.jit(lambda x: x * 2)


def on_host(function, args, next_args=None, *, clock=None, **how):
    """What further steps of plain Python show."""
    clock = clock or Ticking()
    jax.clear_caches()
    subject = EagerSubject(function, (args, {}), "subject")
    stepped = take_steps(subject, next_args, clock=clock)
    return stepped, take_further_steps(subject, stepped, clock=clock, **how)


def jitted(function, args, next_args=None, *, clock=None):
    """What those of a jitted function show."""
    clock = clock or Ticking()
    subject = ready(function, args)
    stepped = take_steps(subject, next_args, clock=clock)
    assert (stepped.traces, stepped.compiles) == (0, 0)
    return take_further_steps(subject, stepped, clock=clock)


def now_and_then(every, make):
    """A step that does something at every so many of them."""

    def step(state):
        count = state["i"] + 1
        return {"i": count, "w": make(state["w"], count) if count % every == 0 else _double(state["w"])}

    return step


def carried():
    """A state that counts, and what threads it."""
    return ({"i": 0, "w": X},), Carry((0,), required=True)


@pytest.mark.parametrize("every", [4, 5, 8, 10])
def test_a_function_that_is_made_anew_at_every_so_many_steps(every):
    """The first time it is new; the second time it is one too many, and the steps end: one trace, one compile."""
    anew = now_and_then(every, lambda w, _: jax.jit(lambda v: v * 1.0)(w))
    stepped, found = on_host(anew, *carried())
    assert stepped.retraces == []
    assert (found.traces, found.compiles) == (1, 1)
    assert found.retraces[0].startswith(f"step {2 * every} retraced: <lambda>: a new function object per call at ")


def test_another_shape_at_the_fifth_step():
    """A function that was traced before is traced again: that counts at once."""
    shorter = now_and_then(5, lambda w, _: jnp.concatenate([_double(w[:2]), w[2:]]))
    _, found = on_host(shorter, *carried())
    assert (found.traces > 0, found.compiles > 0) == (True, True)
    assert any("<lambda>" in line and "float32[2]" in line for line in found.retraces)
    assert found.retraces[0].startswith("step 5 ")


def test_what_is_compiled_once_is_no_retrace():
    evaluate = jax.jit(lambda w: w / 3)
    _, found = on_host(now_and_then(5, lambda w, _: evaluate(w)), *carried())
    assert (found.traces, found.compiles, found.retraces) == (0, 0, [])


def test_a_jitted_step_whose_arguments_change_at_the_seventh():
    """An input pipeline whose last batch is shorter."""
    number = itertools.count(2)
    found = jitted(jax.jit(lambda x: x + 1), (X,), lambda *_: (X[:3] if next(number) % 7 == 0 else X,))
    assert (found.traces, found.compiles) == (1, 1)
    assert found.retraces == ["step 7 retraced: x: float32[4] → float32[3]"]


@pytest.mark.parametrize(
    ("step", "tick", "how", "steps"),
    [
        (_double, 1, {}, MAX_STEPS),
        (_double, 12 * MS, {}, MAX_STEPS),
        (_double, 100 * MS, {}, 3 + 4),
        (_double, 300 * MS, {}, STEPS),
        (_double, 1, {"together": Lockstep()}, STEPS),  # ranks would differ in how many there is time for
        (lambda x: jax.jit(lambda v: v + 1)(x), 1, {}, STEPS),  # it is red
    ],
)
def test_there_are_as_many_as_fit(step, tick, how, steps):
    """The clock is read twice in a step: one of two readings takes two of them, and counts one."""
    calls = []
    on_host(lambda x: calls.append(x) or step(x), (X,), clock=Ticking(tick), **how)
    assert len(calls) == steps


def fails_at(step):
    """Plain Python that has no data at one step."""
    count = itertools.count(1)

    def function(x):
        if next(count) == step:
            raise RuntimeError("no more data")
        return _double(x)

    return function


def runs_out(batches):
    """Gives no more batches than so many."""
    left = iter([X] * batches)
    return lambda *_: (next(left),)


@pytest.mark.parametrize("make", [on_host, jitted], ids=["plain Python", "jitted"])
def test_who_has_no_more_arguments_ends_them(make):
    """A pipeline of five batches is no error: the first steps had what they needed."""
    found = make(jax.jit(lambda x: x + 1), (X,), runs_out(5))
    found = found[1] if make is on_host else found
    assert (found.retraces, found.traces) == ([], 0)
    assert found.unseen.startswith("threading the state into the next step: StopIteration")
    assert found.unseen.endswith(": no more steps are counted")


def test_who_threads_nothing_any_more_ends_them_and_nothing_else():
    """How many steps there is time for must not decide how the state is threaded later."""
    left, calls = iter(range(4)), []

    def counted(x):
        calls.append(x)
        return _double(x)

    stepped, found = on_host(counted, (X,), lambda result, _: None if next(left, None) is None else (result,))
    assert (found.unseen, found.retraces, len(calls)) == ("", [], 1 + 4)
    assert stepped.next_args is not None


def test_a_later_step_that_fails_ends_them():
    _, found = on_host(fails_at(9), (X,))
    assert found.unseen.startswith("step 9: RuntimeError: no more data")


def test_a_wrapper_with_names_of_its_own_may_donate():
    """What it calls consumes the state: nobody looks at it afterwards."""
    inner = jax.jit(lambda w, x: jax.tree.map(lambda leaf: leaf + x.sum(), w), donate_argnums=0)

    def around(params, batch):
        return inner(params, batch)

    assert measured(around, {"a": jnp.ones(8)}, X).facts.sampled_traces == 0


# a state that nobody said is threaded

STATE = {"n": jnp.int32(0), "w": X, "lr": jnp.float32(0.1)}


def train(rate):
    """A step with a rate of its own."""

    def step(state, x):
        return {"n": state["n"] + 1, "w": state["w"] - state["lr"] * x, "lr": rate(state)}, x.sum()

    return jax.jit(step)


WEAK = train(lambda state: jnp.where(state["n"] > 100, 0.01, 0.1))
STRONG = train(lambda state: jnp.where(state["n"] > 100, jnp.float32(0.01), jnp.float32(0.1)))


def test_a_weakly_typed_leaf_of_the_state_is_seen():
    """The loop would trace at its second step, and does not at its third."""
    found = jitted(WEAK, (STATE, X))
    assert (found.traces, found.compiles) == (1, 1)
    assert found.retraces == [
        "step 2, fed with state of step 1 (is it no state? next_args=lambda *_: None), retraced: state['lr']: float32[] → float32[] (weak type)"
    ]


@pytest.mark.parametrize(
    ("function", "args", "next_args"),
    [
        (STRONG, (STATE, X), None),
        (WEAK, (STATE, X), lambda *_: None),
        (lambda x: jnp.where(x > 0, 1.0, 0.0), (X,), None),
        (lambda x, tree: (x, {"n": tree["n"]}), (X, STATE), None),
        (lambda x, tree: {"w": tree["w"] * 1.0, "n": x}, (X, {"n": jnp.int32(1), "w": X}), None),
    ],
    ids=["strong", "declared", "an array", "a part of it", "other types"],
)
def test_nothing_is_threaded_that_is_no_state(function, args, next_args):
    """Types that are as given, arrays alone, other trees, and whatever somebody said."""
    found = jitted(function, args, next_args)
    assert (found.traces, found.compiles, found.retraces, found.unseen) == (0, 0, [], "")


def test_one_of_two_states_is_not_guessed():
    """The line says that nothing is threaded, and how to say what is."""

    def mixed(params, average):
        return {"w": params["w"] + average["w"], "lr": jnp.where(params["w"][0] > 0, 0.1, 0.2)}

    tree = {"w": X, "lr": jnp.float32(1)}
    found = jitted(mixed, (tree, tree))
    assert (found.traces, found.unseen) == (0, "nothing is threaded (carry='params' or carry='average')")
    assert measured(mixed, tree, tree, tools=TICKING).unseen == found.unseen


def test_a_state_that_the_function_does_not_take_is_left_alone():
    """It was a guess: what it raises is nobody's error."""

    def picky(state):
        if isinstance(state["lr"], jax.core.Tracer) and state["lr"].weak_type:
            raise TypeError("expected a rate with a type of its own")
        return {"w": state["w"] * state["lr"], "lr": jnp.where(state["w"][0] > 0, 0.1, 0.2)}

    found = jitted(picky, ({"w": X, "lr": jnp.float32(1)},))
    assert (found.traces, found.retraces, found.unseen) == (0, [], "")


def test_facts_count_further_steps_as_steady_ones():
    """Three steps were clean; one trace and one compile after them are red."""
    seen = measured(WEAK, STATE, X, tools=TICKING)
    assert (seen.facts.traces, seen.facts.sampled_traces, seen.facts.sampled_compiles) == (1, 1, 1)
    assert "state['lr']" in seen.culprits.retraces[0]


def test_the_line_of_plain_python_says_where_its_steps_end():
    """What is not counted must not look like nothing to count."""
    found = measured(fails_at(5), X, eager=True, tools={"clocks": Clocks(wall=Ticking(MS))}).unseen
    assert found.startswith("step 5: RuntimeError: no more data")


# What steps leave behind, and what comes later


def test_the_first_step_counts_its_programs_by_function():
    """What was compiled before makes no difference: JAX forgets it first. A jitted subject has no such count."""

    @jax.jit
    def halve(x):
        return x / 2

    def body(x):
        return halve(x).sum() + halve(x[:4]).sum() + halve(x).max()

    x = jnp.ones(8)
    body(x)
    seen = measured(body, x, eager=True)
    assert seen.first == {"halve": 2}  # and none of JAX's own, of which there are several
    assert seen.culprits.lines["halve"].startswith("tests/observe/execute/test_further_steps.py:")
    assert measured(halve, x).first == {}


@pytest.mark.parametrize("every", [4, 9, MAX_STEPS, MAX_STEPS + 1])
def test_what_a_later_step_compiles_is_kept_with_its_step(every):
    """By its line; what comes after the last step is not known."""
    evaluate = jax.jit(lambda x: x - 1)
    steps = itertools.count(1)

    def step(x):
        if next(steps) % every == 0:
            evaluate(x)
        return _double(x)

    _, found = on_host(step, (X,))
    assert found.steps == MAX_STEPS
    assert list(found.later.values()) == ([every] if every <= MAX_STEPS else [])
    assert all(line.startswith("tests/observe/execute/test_further_steps.py:") for line in found.lines.values())
    assert set(found.later) == set(found.lines)
    assert found.retraces == []


def test_what_another_thread_compiles_meanwhile_is_not_the_steps():
    """A loader compiles when it likes: at another step each time."""
    evaluate, steps = jax.jit(lambda x: x - 1), itertools.count(1)

    def step(x):
        if next(steps) == MAX_STEPS // 2:
            thread = Thread(target=evaluate, args=(np.ones(5, np.float32),))
            thread.start()
            thread.join()
        return _double(x)

    _, found = on_host(step, (X,))
    assert (found.steps, found.later) == (MAX_STEPS, {})


ONCE = []


def into_a_list(train, x):
    """Two arrays a step."""
    vars(train).setdefault("LOSSES", []).extend([_double(x), x + 1])


def into_containers(train, x):
    """A list of dictionaries of tuples."""
    vars(train).setdefault("SEEN", []).append({"loss": (_double(x),)[0]})


def into_variables(train, x):
    """Objects that are no containers."""
    setattr(train, f"loss_{len(vars(train))}", SimpleNamespace(value=_double(x)))


@pytest.mark.parametrize(
    ("keep", "arrays", "described"),
    [
        (into_a_list, 2, r"2 × float32\[4\], held by train\.LOSSES"),
        (into_containers, 1, r"1 × float32\[4\], held by train\.SEEN"),
        (into_variables, 1, "(?!.*list).*"),
    ],
)
def test_arrays_that_each_step_leaves_behind_are_counted_and_their_holder_is_named(keep, arrays, described):
    train = ModuleType("train")
    stepped, _ = on_host(lambda x: (keep(train, x), _double(x))[1], (X,), Carry((0,), required=True))
    assert stepped.left.arrays == arrays
    assert re.fullmatch(described, stepped.left.described)


def of_a_cycle(x):
    """An array in a reference cycle: the collector frees it."""
    ring = [_double(x)]
    ring.append(ring)
    return _double(x)


def of_the_first_steps(x):
    """A cache that is full after two steps."""
    if len(ONCE) < 2:
        ONCE.append(_double(x))
    return _double(x)


def of_the_last_step(x):
    """Something that comes once, at the last of the first steps."""
    ONCE.append(None)
    if len(ONCE) == steps.STEPS:
        ONCE[-1] = _double(x)
    return _double(x)


def of_each_for_a_step(x):
    """An array that is replaced at the next step: it does not add up."""
    ONCE[:] = [_double(x)]
    return _double(x)


SLOWLY = [(step, 0) for step in (_double, of_a_cycle, of_the_last_step, of_each_for_a_step)]


@pytest.mark.parametrize(
    "next_args", [None, Carry((0,), required=True), lambda _, args: (args[0] + 0,)], ids=["again", "carried", "made"]
)
@pytest.mark.parametrize(
    ("step", "more_ns"),
    [*SLOWLY, *((step, 10**9) for step in (_double, of_a_cycle, of_the_first_steps, of_each_for_a_step))],
)
def test_what_is_handed_on_collected_or_kept_once_is_not_left_behind(step, next_args, more_ns, monkeypatch):
    """However the arguments of the next step come about, and however few further steps there is time for."""
    monkeypatch.setattr(steps, "MORE_NS", more_ns)
    ONCE.clear()
    stepped, _ = on_host(lambda x: step(x), (X,), next_args)
    assert (stepped.left.arrays, stepped.left.described) == (0, "")


def test_a_window_of_the_last_results_is_not_left_behind_on_a_slow_machine():
    """Where something was left behind there is time for as many steps as tell it from what adds up."""
    window = deque(maxlen=5)
    stepped, found = on_host(lambda x: window.append(_double(x)) or _double(x), (X,), clock=Ticking(100 * MS))
    assert (found.steps, stepped.left.arrays) == (MAX_STEPS, 0)


def of_an_error(x):
    """An error that is kept in the frame which caught it."""
    try:
        float(_double)
    except TypeError as error:
        kept = error
    return _double(x), len(str(kept))


class Ring:
    """Knows itself, and holds an array."""

    def __init__(self, x):
        self.me, self.x = self, x + 1


@pytest.mark.parametrize(
    ("step", "arrays", "least", "named"),
    [
        (_double, 0, 0, ""),
        (of_a_cycle, 1, 2, "1 × ArrayImpl, 1 × list"),
        (lambda x: (Ring(x), _double(x))[1], 1, 2, r"1 × Ring at \S*test_further_steps\.py:\d+, 1 × ArrayImpl"),
        (
            lambda x: of_an_error(x)[0],
            0,
            3,
            r".*1 × frame of of_an_error at \S*test_further_steps\.py:\d+, .*TypeError.*",
        ),
    ],
    ids=["none", "a list", "an object", "an error"],
)
def test_cycles_that_each_step_makes_are_counted_and_named(step, arrays, least, named):
    """Objects, and the arrays among them; the collector's own settings are as before."""
    before = gc.get_debug(), gc.isenabled(), len(gc.garbage)
    stepped, _ = on_host(step, (X,))
    left = stepped.left
    assert (left.cyclic_arrays, left.cyclic_objects >= least, bool(left.cyclic_objects)) == (arrays, True, bool(least))
    assert re.fullmatch(named, left.cycles)
    assert (gc.get_debug(), gc.isenabled(), len(gc.garbage)) == before


@pytest.mark.parametrize("count", [30, 3000])
def test_no_collection_comes_before_cycles_are_counted(count):
    """Of so many objects that Python's collector would come by itself between two steps."""

    def step(x):
        for _ in range(count):
            ring = []
            ring.append(ring)
        return _double(x)

    stepped, further = on_host(step, (X,))
    assert further.steps > 3
    assert stepped.left.cyclic_objects == count


def test_a_further_step_runs_beside_its_own_arguments_alone():
    """A state that is as large as memory allows fits in every step: what the step before was given is let go."""
    alive = []

    def step(x):
        alive.append(sum(array.shape == (1234,) for array in jax.live_arrays()))
        return _double(x)

    on_host(step, (jnp.ones(1234),), Carry((0,), required=True))
    assert alive[STEPS:] == [alive[STEPS - 1]] * (MAX_STEPS - STEPS)


def test_a_jitted_subject_is_not_looked_at():
    seen = measured(jax.jit(lambda x: x * 2), X)
    assert (seen.facts.kept_arrays, seen.later, seen.steps) == (None, {}, 0)


PARTS = """
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jaxgate.observe.execute.left_behind import LeftBehind

jax.config.update("jax_num_cpu_devices", 2)
everywhere = NamedSharding(jax.make_mesh((2,), ("data",)), PartitionSpec())
step = jax.jit(lambda x: x + 1, out_shardings=everywhere)
for keeps in (False, True):
    left, x, kept = LeftBehind(), jax.device_put(np.zeros((8, 8), np.float32), everywhere), []
    for _ in range(2):
        y = step(x)
        left.look((x, y))
        np.asarray(y)
        kept += [step(y)] * keeps
        x = y
    print(left.arrays)
"""


def test_what_an_array_on_several_devices_keeps_of_its_parts_is_not_left_behind():
    """Once read it holds an array of its own for that; one look must say so, as a slow step is looked at once."""
    assert python("-c", PARTS).split() == ["0", "1"]
