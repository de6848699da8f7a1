"""Who jits a function is part of its baseline: a decorator that is lost is red, though the gate jits what is plain."""

import pytest

HEADER = """
import functools, jax, jax.numpy as jnp

def logged(function):
    @functools.wraps(function)
    def called(*args):
        return function(*args)
    return called
"""
GATED = """
{decorator}
def {name}(w, x):
    return w * jnp.mean(jnp.tanh(x @ w) ** 2)
{after}
class Model_{name}:
    {method}
    def loss(self, w, x):
        return w * jnp.mean(jnp.tanh(x @ w) ** 2)

def test_{name}(gate):
    gate({gated}, jnp.ones((64, 8)), jnp.ones((32, 64)){options})
"""
METHOD = {"gated": "Model_method().loss"}
LOST = {
    "decorator": ({"decorator": "@jax.jit"}, {}),
    "by_hand": ({"after": "by_hand = jax.jit(by_hand)"}, {}),
    "below": ({"decorator": "@logged\n@jax.jit"}, {"decorator": "@logged"}),
    "method": (METHOD | {"method": "@functools.partial(jax.jit, static_argnums=0)"}, METHOD),
}
KEPT = {
    "the_gate_jits": ({"options": ", donate='w'"}, {"options": ", donate='w'"}),
    "otherwise": ({"decorator": "@jax.jit"}, {"after": "otherwise = jax.jit(otherwise)"}),
    "wrapped": ({"decorator": "@jax.jit"}, {"decorator": "@logged\n@jax.jit"}),
    "jitted_now": ({}, {"decorator": "@jax.jit"}),
}


@pytest.fixture
def moved(project):
    """Records each function as it was, and gives the cases of a run of them as they are now."""

    def written(number, functions):
        parts = {"decorator": "", "after": "", "method": "", "options": ""}
        tests = (GATED.format(**parts | {"name": name, "gated": name} | two[number]) for name, two in functions.items())
        return project.write("test_model.py", HEADER + "".join(tests))

    def run(functions):
        written(0, functions).record()
        written(1, functions).run()
        return {case["case"].removeprefix("model/"): case for case in project.results()["cases"]}

    return run


def test_a_function_that_is_jitted_no_more_is_red(moved):
    """The program is the same, and nobody compiles it but the gate."""
    found = moved(LOST)
    assert found.keys() == LOST.keys()
    for name, case in found.items():
        (finding,) = case["findings"]
        assert (finding["name"], finding["now"], finding["against"], case["fails"]) == ("jitted", 0, 1, True), name
        assert case["causes"][0].startswith("the function is no longer jitted by its own code"), name


def test_who_jits_in_another_way_is_no_matter(moved):
    """A plain function stays one, a jitted one may be written otherwise, and a plain one may become jitted."""
    assert {name: case["fails"] for name, case in moved(KEPT).items()} == dict.fromkeys(KEPT, False)
