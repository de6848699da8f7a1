"""Attacks 7, 8, 11, 15 to 18 and 22 to 24: loops of plain Python, static arguments, shared helpers, state, threads and waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from attack import FACTS, Attack, Change, Seen, one_file, passes, told
from gated_sources import LOADED
from scratch_project import Workshop

PLAIN_PYTHON = ("SAME", "UNDECIDED")
"""What unchanged plain Python is: undecided until the programs that it launches were recorded."""
TRAIN = """
import jax, jax.numpy as jnp

@jax.jit
def inner(w, x):
    return jnp.tanh(x @ w)

def train(w, x):
    for _ in range(3):
        x = inner(w, x)
    return x

def test_case(gate):
    gate(train, jnp.eye(256), jnp.ones((256, 256)), eager=True)
"""
STATE = """
import jax, jax.numpy as jnp

EVERY = 0

@jax.jit
def inner(w, x):
    return jnp.tanh(x @ w)

def train(state, x):
    state = {"w": inner(state["w"], x), "i": state["i"] + 1}
    if EVERY and state["i"] % EVERY == 0:
        state["w"] = jax.jit(lambda w: w * 1.0)(state["w"])
    return state

def test_case(gate):
    gate(train, {"w": jnp.eye(64), "i": 0}, jnp.ones((64, 64)), eager=True, carry="state")
"""
STATIC = "import functools, jax, jax.numpy as jnp\n"
FUNCTION = """
def relu(x):
    return jnp.maximum(x, 0)

@functools.partial(jax.jit, static_argnames=("act",))
def step(w, x, act):
    return act(x @ w)

def test_case(gate):
    gate(step, jnp.eye(64), jnp.ones((64, 64)), {act})
"""
OBJECT = """
class Config:
    depth = 3

@functools.partial(jax.jit, static_argnums=0)
def step(config, w, x):
    for _ in range(config.depth):
        x = jnp.tanh(x @ w)
    return x

def test_case(gate):
    gate(step, Config(), jnp.eye(64), jnp.ones((64, 64)))
"""
METHOD = """
class Model:
    depth = 3

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, w, x):
        for _ in range(self.depth):
            x = jnp.tanh(x @ w)
        return x

def test_case(gate):
    gate(Model().step, jnp.eye(64), jnp.ones((64, 64)))
"""
HELPER = """
import jax.numpy as jnp

def act(x):
    return jnp.tanh(x)
"""
ORDER = """
import jax, jax.numpy as jnp

def act(x):
    return jax.lax.fori_loop(0, 40, lambda _, y: jnp.minimum(y, 3.0) * 0.5, x)
"""
"""More turns of a loop whose number stands in its state: no static fact moves."""
EIGHT = """
import jax.numpy as jnp, pytest
from helper import act

@pytest.mark.parametrize("width", range(8))
def test_case(gate, width):
    def step(x):
        return act(x * (width + 1))
    gate(step, jnp.linspace(-3.0, 3.0, 400_000 + width))
"""
WEAK = """
import jax, jax.numpy as jnp

def init():
    return {"n": jnp.int32(0), "lr": jnp.float32(0.1), "w": jnp.ones(8)}

@jax.jit
def step(state, x):
    rate = jnp.where(state["n"] > 100, jnp.float32(0.01), jnp.float32(0.1))
    return {"n": state["n"] + 1, "lr": rate, "w": state["w"] - state["lr"] * x}

def test_case(gate):
    gate(step, init(), jnp.ones(8))
"""
EIGHT_CASES = 8
OPEN_CASES = "import jax.numpy as jnp, pytest\n" + "".join(
    f"\ndef test_case{n}(gate):\n    gate(lambda x: x * 2 + {n}.0, jnp.ones((8, 8)))\n" for n in range(EIGHT_CASES)
)
STEP = """
import jax, jax.numpy as jnp

def step(x):
    return jnp.tanh(x) * 2

def test_case(gate):
    gate(step, jnp.ones((64, 64)))
"""
SOLVER = """
import jax, jax.numpy as jnp

@jax.jit
def solve(x, close):
    def far(state):
        return state[1] > close
    def turn(state):
        better = jnp.cos(state[0])
        return better, jnp.max(jnp.abs(better - state[0]))
    return jax.lax.while_loop(far, turn, (x, jnp.float32(1)))[0]

def test_case(gate):
    gate(solve, jnp.ones(8), jnp.float32(1e-1))
"""
TREE = """
import time
import jax, jax.numpy as jnp

EVERY, WAIT = 1, 0.0

@jax.tree_util.register_pytree_node_class
class State:
    calls = 0
    def __init__(self, x):
        self.x = x
    def tree_flatten(self):
        State.calls += 1
        time.sleep(WAIT if State.calls % EVERY == 0 else 0)
        return (self.x,), None
    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)

@jax.jit
def step(state):
    return jnp.tanh(state.x @ state.x)

def test_case(gate):
    gate(step, State(jnp.ones((900, 900))))
"""
LOADER = """
def load():
    pass
"""
COMPILES = """
import itertools
import jax, jax.numpy as jnp

LENGTHS = itertools.count(3)

def load():
    length = next(LENGTHS)
    jnp.pad(jnp.ones(length), (length % 5, 2)).block_until_ready()
"""


def _unchanged(test: str) -> Callable[[Workshop], Seen]:
    """Nothing changes but the process, in which everything has another address."""

    def run(workshop: Workshop) -> Seen:
        project = workshop.project({"test_case.py": STATIC + test})
        project.record()
        return passes(project.gate(FACTS))

    return run


def _shared_helper(before: str, old: str, new: str) -> Callable[[Workshop], Seen]:
    """Eight cases get slower at once: that is the change, not the machine."""

    def run(workshop: Workshop) -> Seen:
        project = workshop.recorded({"helper.py": before, "test_case.py": EIGHT})
        project.edit("helper.py", old, new)
        run = project.gate("--perf-max-undecided=1")
        blamed = "machine is the suspect" in run.text
        what = f"{run.statuses}, exit {run.code}{', the machine is the suspect' if blamed else ''}"
        return told(run.code == 1 and not blamed, what)

    return run


def _all_undecided(workshop: Workshop) -> Seen:
    """Eight programs changed, and no time was judged: the page must not say that they passed, and must name them."""
    project = workshop.recorded({"test_case.py": OPEN_CASES}, then=(FACTS,))
    project.write("test_case.py", OPEN_CASES.replace("x * 2", "x * 3"))
    run = project.gate(FACTS, "--perf-max-undecided=1")
    page = (project.path / "perf-artifacts" / "summary.md").read_text()
    headline = next((line for line in page.splitlines() if line.startswith("## ")), "no headline")
    named = sum(f"case{n}" in page for n in range(EIGHT_CASES))
    what = f"{run.statuses}, exit {run.code}, {headline!r}, {named} of {EIGHT_CASES} cases are named"
    return told("✅" not in headline and named == EIGHT_CASES, what)


ATTACKS = (
    Attack(
        "7a",
        "a loop of plain Python: three times the products",
        one_file(TRAIN, ("jnp.tanh(x @ w)", "jnp.sin(jnp.tanh(x @ w @ w @ w))"), unchanged=PLAIN_PYTHON),
    ),
    Attack(
        "7b",
        "a loop of plain Python: more memory, as many products",
        one_file(TRAIN, ("jnp.tanh(x @ w)", "jnp.sort(jnp.tile(x @ w, (8, 1)), axis=0)[::8]"), unchanged=PLAIN_PYTHON),
    ),
    Attack("7c", "a compile in every fourth step", one_file(STATE, ("EVERY = 0", "EVERY = 4"), unchanged=PLAIN_PYTHON)),
    Attack("7d", "a compile in every eighth step", one_file(STATE, ("EVERY = 0", "EVERY = 8"), unchanged=PLAIN_PYTHON)),
    Attack(
        "22a",
        "a tolerance that is an argument: a loop takes more turns",
        one_file(SOLVER, ("jnp.float32(1e-1)", "jnp.float32(1e-6)")),
    ),
    Attack("22b", "a tolerance that is compiled in", one_file(SOLVER, ("state[1] > close", "state[1] > close * 1e-3"))),
    Attack(
        "23a",
        "a list that keeps the result of every step",
        one_file(
            TRAIN, ("    return x\n", "    KEPT.append(x)\n    return x\n"), ("def train", "KEPT = []\n\ndef train")
        ),
    ),
    Attack(
        "23b",
        "an evaluation at every fifth step",
        one_file(
            STATE,
            ("EVERY = 0", "EVERY = 5"),
            ('state["w"] = jax.jit(lambda w: w * 1.0)(state["w"])', 'evaluate(state["w"]).block_until_ready()'),
            (
                "@jax.jit\ndef inner",
                "@jax.jit\ndef evaluate(w):\n    return jnp.linalg.norm(w @ w @ w)\n\n@jax.jit\ndef inner",
            ),
        ),
    ),
    Attack(
        "23c",
        "plain Python that waits between its programs",
        one_file(
            TRAIN,
            ("        x = inner(w, x)\n", "        x = inner(w, x)\n        __import__('time').sleep(0.01)\n"),
            then=(),
        ),
    ),
    Attack(
        "23d",
        "a first call that waits",
        one_file(
            TRAIN,
            ("def train", "@__import__('functools').cache\ndef load():\n    __import__('time').sleep(6)\n\ndef train"),
            ("    for _ in range(3)", "    load()\n    for _ in range(3)"),
            then=(),
        ),
    ),
    Attack(
        "24a",
        "every third call waits",
        replace(one_file(TREE, ("EVERY, WAIT = 1, 0.0", "EVERY, WAIT = 3, 0.5"), then=()), held=("SLOWER",)),
    ),
    Attack(
        "24b",
        "a jit that is made anew at each call",
        one_file(STEP, ("    return jnp.tanh(x) * 2", "    return jax.jit(lambda x: jnp.tanh(x) * 2)(x)")),
    ),
    Attack("8a", "unchanged: a function as a static argument", _unchanged(FUNCTION.replace("{act}", "relu"))),
    Attack("8b", "unchanged: an object as a static argument", _unchanged(OBJECT)),
    Attack("8c", "unchanged: a method whose self is static", _unchanged(METHOD)),
    Attack(
        "8d",
        "unchanged: a partial as a static argument",
        _unchanged(FUNCTION.replace("{act}", "functools.partial(relu)")),
    ),
    Attack(
        "11a",
        "a shared helper that is slower in eight cases",
        _shared_helper(HELPER, "jnp.tanh(x)", "jnp.sin(jnp.sin(jnp.sin(x)))"),
    ),
    Attack("11b", "a shared helper whose loop turns more often", _shared_helper(ORDER, "0, 40", "0, 160")),
    Attack(
        "15",
        "state of a weak type, neither donated nor carried",
        one_file(
            WEAK,
            (
                'jnp.where(state["n"] > 100, jnp.float32(0.01), jnp.float32(0.1))',
                'jnp.where(state["n"] > 100, 0.01, 0.1)',
            ),
        ),
    ),
    Attack("16", "eight cases, none decided", _all_undecided),
    Attack(
        "17",
        "a thread beside the case that compiles",
        Change({"loader.py": LOADER, "test_case.py": LOADED}, {"loader.py": COMPILES}, harmless=True),
    ),
    Attack(
        "18a",
        "a sleep while tracing",
        one_file(STEP, ("    return jnp.tanh(x)", "    __import__('time').sleep(3)\n    return jnp.tanh(x)"), then=()),
    ),
    Attack(
        "18b",
        "a child process while tracing",
        one_file(
            STEP,
            ("    return jnp.tanh(x)", "    __import__('subprocess').run(['sleep', '3'])\n    return jnp.tanh(x)"),
            then=(),
        ),
    ),
)
