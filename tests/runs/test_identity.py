"""What is identical, and what is not, beside the device program."""

import pytest

from ci.attacks.gated_sources import LOADED

HEAD = "import atexit, functools, jax, jax.numpy as jnp\n"
STATIC = {
    "a function": """
@functools.partial(jax.jit, static_argnums=2)
def step(w, x, act):
    return act(x @ w)

def LAST(x):
    return jnp.tanh(x)
""",
    "an object without a text of its own": """
class Config:
    depth = 3

@functools.partial(jax.jit, static_argnums=2)
def step(w, x, config):
    for _ in range(config.depth):
        x = jnp.tanh(x @ w)
    return x

LAST = Config()
""",
}
KEPT = "atexit.register(id, {})\n"
"""Keeps an object for as long as this process lives: that of the next run, which imports the file anew, has another address."""
GATES = KEPT.format("LAST") + "\ndef test_step(gate):\n    gate(step, jnp.eye(64), jnp.ones((64, 64)), LAST)\n"
METHOD = """
class Model:
    def __init__(self, depth):
        self.depth = depth

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, w, x):
        for _ in range(self.depth):
            x = jnp.tanh(x @ w)
        return x

MODEL = Model(3)

def test_step(gate):
    gate(MODEL.step, jnp.eye(64), jnp.ones((64, 64)))
""" + KEPT.format("MODEL")
LOADER = """
import itertools
import jax, numpy as np

LENGTHS = itertools.count(2)
widen = jax.jit(lambda batch: batch * 2)

def load():
    length = next(LENGTHS)
    longer = widen.lower(np.ones(length))
    if length % 4 == 0:
        longer.compile()
"""
"""Lowers a program for a longer batch each time, and compiles some."""


def status(project):
    """The verdict of the one case, without duels, and what the run printed."""
    found = project.run("--benchmark-disable")
    (row,) = project.results()["cases"]
    return row["status"], found.text


@pytest.mark.parametrize("text", [*(head + GATES for head in STATIC.values()), METHOD], ids=[*STATIC, "a method"])
def test_static_arguments_are_the_same_at_every_address(project, text):
    """They have an address for a name; what they do stands in the program."""
    project.write("test_model.py", HEAD + text).record()
    found, output = status(project)
    assert found == "SAME", output
    assert "identical program" in output


def test_a_thread_that_compiles_beside_a_case_is_not_the_case(project):
    """The step is compiled once, as before, whatever its loader compiles during a call."""
    project.write("loader.py", LOADER).write("test_model.py", LOADED).record()
    found, output = status(project)
    assert found == "SAME", output


def test_an_executable_that_nothing_explains_is_not_identical(project):
    """Another one than the baseline's, of the same source in the same environment: time is open, and no duel is run."""
    text = "import jax, jax.numpy as jnp\n\n@jax.jit\ndef step(x):\n    return jnp.tanh(x) * 2\n"
    project.write("test_model.py", text + "\ndef test_step(gate):\n    gate(step, jnp.ones((64, 64)))\n").record()
    project.edit_baseline(fingerprints={"executable": "0" * 32})
    found, output = status(project)
    assert found == "UNDECIDED", output
    assert "nothing that is known explains it and a duel would compile both sides here" in output
