"""What other people's libraries make: which functions stage themselves, what is static of their arguments, who owns a method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from support.function_cases import function_case

from jaxgate.observe.arguments.function_case import StaticLeaves, stages_itself, with_owner
from jaxgate.observe.trace.source import source_fingerprint

X = jnp.ones(4)


class Net(eqx.Module):
    """A layer, what follows it, a flag and a rate."""

    layer: eqx.nn.Linear
    activation: object
    inference: bool
    rate: float

    def __init__(self, activation=jnp.tanh):
        self.inference, self.rate = False, 0.5
        self.layer, self.activation = eqx.nn.Linear(4, 4, key=jax.random.key(0)), activation

    def __call__(self, x):
        return self.activation(self.layer(x)) * (1.0 if self.inference else self.rate)

    @eqx.filter_jit
    def jitted(self, x):
        """Staged by Equinox."""
        return self(x)

    def plain(self, x):
        """A method of its own."""
        return self(x) + 1


@jax.tree_util.register_dataclass
@dataclass
class Pair:
    """A pytree without any library."""

    left: jax.Array
    right: jax.Array

    def added(self, x):
        """A method."""
        return self.left + self.right + x


NET, PAIR = Net(), Pair(X, X)


def loss(net, x):
    """A plain function of a module."""
    return net(x).sum()


@pytest.mark.parametrize(
    ("function", "own"),
    [
        (eqx.filter_jit(loss), True), (NET.jitted, True), (nnx.jit(loss), True),
        (partial(eqx.filter_jit(loss), NET), True), (jax.jit(loss), False), (partial(jax.jit(loss), NET), False),
        (jax.pmap(loss), False), (loss, False), (NET, False), (NET.plain, False),
        (eqx.filter_value_and_grad(loss), False), (jax.vmap(NET), False),
    ],
    ids=[
        "filter_jit", "its-method", "nnx", "its-partial", "jit", "partial-of-jit", "pmap", "plain", "module", "method",
        "filter_grad", "vmap",
    ],
)  # fmt: skip
def test_which_functions_stage_themselves(function, own):
    assert stages_itself(function) is own


def given(function, *args, **changes):
    """What a gate makes of a function and its arguments."""
    return function_case(function, args, **changes).build()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (loss, (NET, X)), (NET, (X,)), (NET.plain, (X,)), (PAIR.added, (X,)), (eqx.filter_grad(loss), (NET, X)),
        (lambda x, how: jnp.tanh(x) if how == "tanh" else x, (X, "tanh")),
        (lambda tree: tree["f"](tree["x"]), ({"f": jnp.sin, "x": X},)), (lambda net, x: (net, net(x)), (NET, X)),
    ],
    ids=["module", "callable", "method", "dataclass", "grad", "string", "function", "returned"],
)  # fmt: skip
def test_jax_takes_the_arrays_and_gives_the_same(function, args):
    """Whatever is no array is where it was when the function is called."""
    made = given(function, *args)
    jaxpr = jax.make_jaxpr(made.subject)(*made.args)
    assert not jaxpr.consts  # no array is captured
    found, expected = jax.jit(made.subject)(*made.args), function(*args)
    arrays = [leaf for leaf in jax.tree.leaves(expected) if eqx.is_array(leaf)]
    assert all(map(np.allclose, jax.tree.leaves(found), arrays))


def test_names_and_paths_are_those_of_the_project():
    """An argument is found by its path, and donated by its name."""
    made = given(lambda net, x: (net, net(x)), NET, X, donate="net")
    stage = made.subject.lower(*made.args)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(stage.args_info)]
    assert paths == ["[0][0].layer.weight", "[0][0].layer.bias", "[0][1]"]
    assert [leaf.donated for leaf in jax.tree.leaves(stage.args_info)] == [True, True, False]


def test_numbers_are_static_beside_what_jax_does_not_take():
    """As Equinox has it; all other numbers are dynamic, as jax.jit has it: the step of a TrainState."""
    static = StaticLeaves((NET, 3, {"rate": 0.5}), {})
    args, _ = static.arguments()
    assert (args[0].rate, args[0].inference, args[1], args[2]) == (None, None, 3, {"rate": 0.5})
    assert not StaticLeaves((X, 3, [0.5], None, Pair(X, 3)), {"flag": True})


def test_a_static_value_that_a_call_changes_is_refused():
    """The program would keep the one that it was traced with; an array, or a number that is dynamic, may change."""
    changed = lambda net: eqx.tree_at(lambda net: net.rate, net, net.rate + 1)  # noqa: E731 - a step of a project
    made = given(lambda net, x: (changed(net), net(x)), NET, X)
    with pytest.raises(TypeError, match=r"found Net\.rate 0\.5 → 1\.5: make it an array"):
        jax.jit(made.subject)(*made.args)
    counted = given(lambda pair: Pair(pair.left, pair.right + 1), Pair(X, 3))
    assert jax.jit(counted.subject)(*counted.args).right == 4


def test_a_reference_takes_what_the_subject_was_given():
    made = given(NET, X, reference=lambda x: NET(x))
    assert np.allclose(made.reference(*made.args), NET(X))
    made = given(loss, NET, X, reference=lambda net, x: net(x).sum())
    assert np.allclose(made.reference(*made.args), loss(NET, X))


def test_the_methods_of_an_argument_are_part_of_the_source():
    """A plain function of a module is as much the module's."""

    class Other(Net):
        def __call__(self, x):
            return super().__call__(x) * 2

    first, second = (given(loss, net, X).subject for net in (NET, Other()))
    assert source_fingerprint(first) != source_fingerprint(second)
    assert source_fingerprint(first) == source_fingerprint(given(loss, Net(jnp.sin), X).subject)


def test_functions_of_jax_are_left_as_they_are():
    """Their arrays stay constants, their static arguments theirs."""
    captured = jax.jit(lambda x: x + X)
    assert with_owner(captured, (X,)) == (captured, (X,))
    made = given(jax.jit(lambda x, how: x, static_argnames="how"), X, "tanh")
    assert made.args[1] == "tanh"


def test_what_stages_itself_donates_itself():
    with pytest.raises(TypeError, match="found donate='net'"):
        given(eqx.filter_jit(loss), NET, X, donate="net")
    assert given(eqx.filter_jit(loss), NET, X).eager
