"""Python that each call of an unchanged device program runs: counted, and red with the function that grew."""

from __future__ import annotations

import json

import pytest

HASHED = """
import dataclasses, functools, hashlib, json
import jax, jax.numpy as jnp

@dataclasses.dataclass(frozen=True)
class Config:
    depth: int = 2

@functools.partial(jax.jit, static_argnums=0)
def step(config, w, x):
    for _ in range(config.depth):
        x = jnp.tanh(x @ w)
    return x

def test_step(gate):
    gate(step, Config(), jnp.eye(8), jnp.ones((8, 8)))
"""
DEAR_HASH = """    depth: int = 2

    def __hash__(self):
        text = json.dumps({str(i): self.depth for i in range(2000)})
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
"""
TREE = """
import hashlib
import jax, jax.numpy as jnp

@jax.tree_util.register_pytree_node_class
class State:
    def __init__(self, parts):
        self.parts = parts

    def tree_flatten(self):
        keys = tuple(sorted(self.parts))
        return tuple(self.parts[key] for key in keys), keys

    @classmethod
    def tree_unflatten(cls, keys, values):
        return cls(dict(zip(keys, values)))

@jax.jit
def step(state, x):
    return sum(state.parts.values()) + x

def test_step(gate):
    gate(step, State({f"k{i}": jnp.ones(4) for i in range(30)}), jnp.ones(4))
"""
DEAR_FLATTEN = """        keys = tuple(sorted(self.parts))
        for key in keys:
            hashlib.sha256(key.encode()).hexdigest()
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "shown"),
    [
        (
            HASHED,
            "    depth: int = 2\n",
            DEAR_HASH,
            ("python_calls 2,009 against 2", "test_model.Config.__hash__ 0 → 2000 at test_model.py:9"),
        ),
        (
            TREE,
            "        keys = tuple(sorted(self.parts))\n",
            DEAR_FLATTEN,
            (
                "python_calls",
                "_hashlib.openssl_sha256 0 → 30 at test_model.py:13",
                "str.encode 0 → 30 at test_model.py:13",
            ),
        ),
    ],
    ids=["the hash of a static argument", "the flattening of a pytree"],
)
def test_dear_python_around_an_identical_program_is_red(project, lab, text, old, new, shown):
    """The device program is the same; what each call runs to get there is counted, and who grew is named."""
    project.write("test_model.py", text).record()
    assert project.run().code == 0
    project.edit("test_model.py", old, new)
    result = project.run()
    assert (result.code, lab.duelled, lab.recorded) == (1, [], [])
    result.shows("REGRESSED  model/step", "culprit   Python in each call: ", *shown)
    result.shows("identical program, but each call of it runs more Python", "code outside the subject's source")
    assert project.run("--perf-update").code == 0
    assert project.run().code == 0


def test_a_baseline_from_before_the_count_is_not_judged_by_it(project, lab):
    """Its file has none of the keys; the case is what it was."""
    del lab
    project.write("test_model.py", HASHED).record()
    path = project.baseline()
    content = json.loads(path.read_text())
    assert content["facts"]["python_calls"] == 2
    del content["called"]
    for name in ("host_reads", "jax_calls", "python_calls"):
        del content["facts"][name]
    path.write_text(json.dumps(content))
    project.edit("test_model.py", "    depth: int = 2\n", DEAR_HASH)
    result = project.run()
    assert result.code == 0
    result.shows("SAME", "identical program")
