"""Arguments that a library hides in a static value: they have the names that their caller knows."""

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.arguments.signature import ArgumentKey, difference
from jaxgate.observe.arguments.static_trees import open_static


def step(batch, model, rate, *, scale=1.0):
    """A function of a library's user."""
    return batch, model, rate, scale


def part(tree):
    """Leaves without arrays, and the tree."""
    leaves, shape = jax.tree.flatten(tree)
    return tuple(None if isinstance(leaf, jax.Array) else leaf for leaf in leaves), shape


def keys(*places):
    """Dynamic leaves as the library names them."""
    return [ArgumentKey(f"dynamic['rest'][{place}]", "float32[3]", False, "", False) for place in places]


def call(rate=0.5, scale=1.0, name="a", size=3, function=step):
    """One call, as an inner function gets it."""
    first = {"x": jnp.ones(size), "y": jnp.ones(size), "mode": "train"}
    rest = (({"w": jnp.ones(3), "name": name}, rate), {"scale": scale})
    seen = [ArgumentKey(f"dynamic['first'][{place}]", f"float32[{size}]", False, "", False) for place in (1, 2)]
    return open_static([*seen, *keys(1)], {"static": (part(function), part(first), part(rest))}, "step")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rate": 0.25}, "rate: static 0.5 → static 0.25"),
        ({"scale": 2.0}, "scale: static 1.0 → static 2.0"),
        ({"name": "b"}, "model['name']: static 'a' → static 'b'"),
        ({"size": 5}, "batch['x']: float32[3] → float32[5]; batch['y']: float32[3] → float32[5]"),
        ({}, ""),
    ],
    ids=["positional", "by name", "within a model", "an array", "nothing"],
)
def test_what_changed_has_its_path(changes, said):
    """By the names of the function's own parameters, whatever the library calls them."""
    assert difference(call(), call(**changes)) == said


def test_another_tree_is_told():
    """An attribute that is part of the tree itself: none of its leaves changed."""
    trees = [open_static([], {"static": (part(step), part(((tree,), {})))}, "step") for tree in ([1.0], (1.0,))]
    assert difference(*trees).startswith("the tree of the arguments: static ")


def test_without_the_function_there_are_no_names():
    """Its place in the static value is all there is to say."""
    calls = [open_static([], {"static": (part(7), part(((rate,), {})))}, "step") for rate in (0.5, 0.25)]
    assert difference(*calls) == "static[1][0][0]: static 0.5 → static 0.25"


@pytest.mark.parametrize(
    "value",
    [3, "text", (), (1, 2), (part(step), 3), (((1, 2), jax.tree.structure(1)),)],
    ids=["number", "text", "empty", "numbers", "something else beside", "another number of leaves"],
)
def test_any_other_static_value_is_told_whole(value):
    (key,) = open_static([], {"mode": value}, "step")
    assert (key.path, key.aval) == ("mode", f"static {value!r}")


def test_leaves_that_may_be_anywhere_keep_their_names():
    """Two tuples that leave out the same places: either could be the part's."""
    twice = [*keys(0), ArgumentKey("dynamic['first'][0]", "float32[3]", False, "", False)]
    found = open_static(twice, {"static": (part(step), part(jnp.ones(3)))}, "step")
    assert [key.path for key in found[:2]] == ["dynamic['rest'][0]", "dynamic['first'][0]"]
