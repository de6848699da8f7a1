"""Python in a warm call: what is counted, for whom, and that it is the same every time."""

import cProfile
import functools
import gc
import sys
import threading
import types
from time import sleep as nap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.measured import measured

from jaxgate.observe.execute.python_calls import PythonEvents, count_python
from jaxgate.observe.execute.subjects import EagerSubject
from jaxgate.observe.source_lines import short_path

X = jnp.ones(8)
HERE = short_path(__file__)


def counted(function, *args):
    """The events of one call."""
    function(*args)
    events = PythonEvents()
    events.run(function, args, {})
    return events


def line(function, offset=0):
    """Where a function of this file stands."""
    return f"{HERE}:{function.__code__.co_firstlineno + offset}"


@jax.jit
def double(x):
    """A program."""
    return x * 2


def test_a_plain_jitted_function_runs_no_python():
    """Its warm calls take JAX's fast path, from first to last in C++."""
    facts = measured(double, X).facts
    assert (facts.python_calls, facts.jax_calls, facts.host_reads) == (0, 0, None)


def test_a_turn_of_a_loop_counts_as_a_call():
    """A comprehension calls nothing: Python 3.11 has a frame for it, later ones do not, and the count is the same."""

    def turns(count):
        squares = {str(i): i for i in range(count)}
        total = 0
        while total < count:
            total += 1
        for _ in range(count):
            pass
        return squares

    name = f"{__name__}.{turns.__qualname__}"
    assert counted(turns, 100).functions == {name: 1 + 99 + 99 + 100}
    assert counted(turns, 1).functions == {name: 1 + 1}
    assert counted(turns, 100) == counted(turns, 100)


def test_calls_are_told_by_who_makes_them():
    """The project's and its libraries' count, the standard library's for who calls it; JAX's own within JAX do not."""
    library = types.ModuleType("somelibrary")
    exec(
        compile("def wrap(f):\n    def inner(x):\n        return f(x)\n    return inner\n", "<frozen>", "exec"),
        vars(library),
    )

    def body(x):
        return jax.tree.leaves({"x": x}), sorted([2, 1])

    events = counted(library.wrap(body), X)
    own = f"{__name__}.{body.__qualname__}"
    assert {name for name in events.functions if not name.startswith("jax.")} == {
        "somelibrary.wrap.<locals>.inner",
        own,
        "sorted",
    }
    assert sum(count for name, count in events.functions.items() if name.startswith("jax.")) == 1
    assert events.jax_calls > 0
    assert events.line_of(own) == line(body)  # where the project's stands
    assert events.line_of("sorted") == line(body, 1)  # where the project calls another's
    assert events.line_of("somelibrary.wrap.<locals>.inner") == ""


def test_reads_of_shared_memory_are_counted():
    """On CPU item() and np.asarray move nothing, and wait all the same; what JAX or a list does is no read."""

    def body(x):
        y = double(x)
        return double(y), np.asarray(y)[0] + np.array(y)[0], y.sum().item(), np.asarray([1.0])

    now = measured(body, X, eager=True)
    assert now.facts.host_reads == 3
    assert now.culprits.reads == tuple(f"1 × {how} at {line(body, 2)}" for how in ("np.asarray", "np.array", "item()"))
    assert now.facts.python_calls == 6  # sum, item and those of NumPy, not what counts them


@pytest.mark.jax_text
def test_a_function_of_jax_has_its_own_name():
    """Not that of the wrapper that many of them share."""

    def body(x):
        return jax.jit(double)(x)

    assert measured(body, X, eager=True).called["jax._src.api.jit"] == 1


@pytest.mark.jax_text
def test_waits_for_arrays_are_counted():
    """Methods of arrays and JAX's own function; what JAX waits for inside of it counts once."""

    def body(x):
        y = double(x).block_until_ready()
        return jax.block_until_ready([double(y), y])

    assert measured(body, X, eager=True).facts.host_waits == 2
    assert measured(lambda x: double(x), X, eager=True).facts.host_waits == 0


def test_sleeps_and_threads_are_waits():
    """Each stops Python, whatever their names in the project."""

    def body(x):
        nap(0)
        thread = threading.Thread(target=str)
        thread.start()
        thread.join()
        return double(x)

    found = measured(body, X, eager=True)
    assert found.facts.host_waits == 3
    assert {name: found.called[name] for name in ("time.sleep", "threading.Thread.start")} == {
        "time.sleep": 1,
        "threading.Thread.start": 1,
    }


def test_calls_that_differ_are_unknown():
    """A subject that does something else each time has no count, and says so; one odd call is passed over."""

    def subject(turns):
        made = iter(turns)
        return EagerSubject(lambda x: (double(x), [None for _ in range(next(made))]), ((X,), {}), "subject")

    unsteady = count_python(subject([10, 20, 30, 40]), reads=True)
    assert (unsteady.calls, unsteady.functions) == (None, {})
    assert unsteady.unknown["python_calls"] == "the Python calls of 3 warm calls differ"
    assert count_python(subject([10, 20, 20]), reads=True).calls == count_python(subject([20, 20]), reads=True).calls


def test_whoever_listens_has_its_place_again():
    """Profilers, debuggers and NumPy are as they were, also where the call raises."""
    heard, own = [], np.asarray

    def listen(_frame, event, _):
        heard.append(event)

    def fails():
        assert np.asarray is not own
        raise ValueError("on purpose")

    before = sys.gettrace()
    assert gc.isenabled()
    sys.setprofile(listen)
    try:
        with pytest.raises(ValueError, match="on purpose"):
            PythonEvents().run(fails, (), {})
        assert sys.getprofile() is listen
    finally:
        sys.setprofile(None)
    assert heard
    assert (sys.gettrace(), np.asarray, gc.isenabled()) == (before, own, True)


def test_a_run_under_cprofile_is_counted_as_any_other():
    """It is no function that can be given its place: it has to take it. Newer ones listen in another way."""
    profiler = cProfile.Profile()
    with profiler:
        before = sys.getprofile()
        found = counted(lambda: sorted([2, 1]))
        assert sys.getprofile() is before
        "seen".upper()
    assert found == counted(lambda: sorted([2, 1]))
    profiler.create_stats()
    assert any("upper" in name for _, _, name in profiler.stats)


def test_a_call_without_end_is_counted_up_to_a_limit(monkeypatch):
    """Each time alike: what is beyond it is beyond what is allowed, too."""
    monkeypatch.setattr("jaxgate.observe.execute.python_calls.MAX_EVENTS", 1000)

    def many():
        return sum(i for i in range(100_000))

    assert counted(many) == counted(many)
    assert 300 < counted(many).functions.total() < 1000


class Text:
    """A static argument; what makes it dear is chosen by its ``mode``."""

    def __init__(self, mode):
        self.mode = mode

    def __hash__(self):
        return 7

    def __eq__(self, other):
        dear = self.mode == "eq" and all(i == i + 0 for i in range(300))
        return dear or self is other


def names():
    """Keys, made anew."""
    return [f"k{i}" for i in range(300)]


@functools.lru_cache
def cached_names():
    """The same, made once."""
    return names()


@jax.tree_util.register_pytree_node_class
class Node:
    """A pytree whose flattening asks for its keys: once made, by a property, or each time anew."""

    def __init__(self, x, mode):
        self.x, self.mode = x, mode

    @property
    def keys(self):
        return sorted(f"{i}" for i in range(300))

    def tree_flatten(self):
        {"property": lambda: self.keys, "anew": names}.get(self.mode, cached_names)()
        return (self.x,), self.mode

    @classmethod
    def tree_unflatten(cls, mode, children):
        return cls(children[0], mode)


static = functools.partial(jax.jit, static_argnums=1)(lambda x, _: x * 2)
over = jax.jit(lambda node: node.x * 2)


@pytest.mark.parametrize(
    ("function", "cheap", "dear", "who"),
    [
        (static, (X, Text("")), (X, Text("eq")), Text.__eq__),
        (over, (Node(X, ""),), (Node(X, "property"),), Node.keys.fget),
        (over, (Node(X, ""),), (Node(X, "anew"),), names),
    ],
    ids=["eq of a static argument", "a property read by each flattening", "a cache that is lost"],
)
def test_python_around_a_program_is_counted_and_named(function, cheap, dear, who):
    """What a jitted function runs on its way to the device, with the function that does most of it."""
    before, now = measured(function, *cheap), measured(function, *dear)
    assert before.fingerprints.program == now.fingerprints.program
    assert before.facts.python_calls + 300 <= now.facts.python_calls
    (most, *_), name = now.called, f"{__name__}.{who.__qualname__}"
    assert most.startswith(name)
    assert now.culprits.lines[most].startswith(f"{HERE}:")
