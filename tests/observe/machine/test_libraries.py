"""The packages that a program comes from: those whose functions made its operations, and no others that are installed."""

from importlib.metadata import version

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.machine import environment
from jaxgate.observe.trace.jaxpr_cost import count_work

LAYER = nn.Dense(4)
X = jnp.ones((2, 3))
PARAMS = LAYER.init(jax.random.key(0), X)


@pytest.fixture
def unnamed(monkeypatch):
    """An environment that names no package: flax stands for one that nobody knows."""
    monkeypatch.setattr(environment, "_versions", lambda: dict.fromkeys(("jax", "jaxlib"), ""))


def packages(function, *args):
    """Those of a function."""
    return dict(count_work(jax.jit(function).trace(*args).jaxpr).libraries)


@pytest.mark.usefixtures("unnamed")
def test_the_package_of_a_layer_is_found():
    """With its version; JAX's own is in the environment, and pytest made no operation."""
    assert packages(LAYER.apply, PARAMS, X) == {"flax": version("flax")}


@pytest.mark.usefixtures("unnamed")
def test_what_a_function_does_by_itself_is_of_no_package():
    assert packages(lambda x: jnp.tanh(x) @ x.T, X) == {}


def test_what_the_environment_names_is_not_named_twice():
    assert packages(LAYER.apply, PARAMS, X) == {}
