"""What is identical, and what is not, beside the device program."""

from __future__ import annotations

import json

import pytest

HEAD = "import functools, jax, jax.numpy as jnp\n"
STATIC = {
    "a function": "@functools.partial(jax.jit, static_argnums=2)\ndef step(w, x, act):\n    return act(x @ w)\n\nLAST = jnp.tanh\n",
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
GATES = "\ndef test_step(gate):\n    gate(step, jnp.eye(64), jnp.ones((64, 64)), LAST)\n"
METHOD = """
class Model:
    def __init__(self, depth):
        self.depth = depth

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, w, x):
        for _ in range(self.depth):
            x = jnp.tanh(x @ w)
        return x

def test_step(gate):
    gate(Model(3).step, jnp.eye(64), jnp.ones((64, 64)))
"""
THREAD = """
import threading

@jax.jit
def step(x):
    return jnp.tanh(x)

@__import__("pytest").fixture(autouse=True)
def loader():
    over = threading.Event()
    def load():
        n = 2
        while not over.is_set():
            jnp.pad(jnp.ones(n), 1).block_until_ready()
            n += 1
    thread = threading.Thread(target=load)
    thread.start()
    yield
    over.set()
    thread.join()

def test_step(gate):
    gate(step, jnp.ones((64, 64)))
"""


def status(project, *arguments):
    """The verdict of the one case in a process of its own, where every address is another one."""
    done = project.alone("-m", "pytest", "-q", "--benchmark-disable", *arguments)
    (row,) = json.loads((project.path / "perf-artifacts" / "results.json").read_text())["cases"]
    return row["status"], done.stdout


@pytest.mark.parametrize("text", [*(head + GATES for head in STATIC.values()), METHOD], ids=[*STATIC, "a method"])
def test_static_arguments_are_the_same_in_every_process(project, text):
    """They have an address for a name; what they do stands in the program."""
    project.write("test_model.py", HEAD + text).record(alone=True)
    found, output = status(project)
    assert found == "SAME", output
    assert "identical program" in output


def test_what_a_static_argument_does_is_seen(project):
    """Another function is another program."""
    project.write("test_model.py", HEAD + STATIC["a function"] + GATES).record(alone=True)
    project.edit("test_model.py", "LAST = jnp.tanh", "LAST = lambda x: jnp.tanh(x) @ x")
    found, output = status(project)
    assert found == "REGRESSED", output


def test_a_thread_that_compiles_beside_a_case_is_not_the_case(project):
    """A loader pads batches of growing lengths; the step is compiled once, as before."""
    project.write("test_model.py", HEAD + THREAD).record(alone=True)
    found, output = status(project)
    assert found == "SAME", output
