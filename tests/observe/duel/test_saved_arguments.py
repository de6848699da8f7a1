"""Arguments to the host and back, and JAX's settings for another process."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgate.observe.arguments.signature import to_host
from jaxgate.observe.duel.sides import restore, to_files
from jaxgate.observe.machine.jax_settings import all_settings, apply_settings, settings, settings_of

WEAK = jnp.asarray(3.0)
KEY = jax.random.key(7)
LEAVES = {
    "array": (jnp.arange(6.0).reshape(2, 3), "array"),
    "empty": (jnp.zeros((0, 3), jnp.bfloat16), "array"),
    "scalar": (jnp.float32(2), "array"),
    "bool": (jnp.arange(3) > 1, "array"),
    "bfloat16": (jnp.arange(3, dtype=jnp.bfloat16), "array"),
    "float8": (jnp.arange(3).astype(jnp.float8_e4m3fn), "array"),
    "int4": (jnp.arange(3).astype(jnp.int4), "array"),
    "complex": (jnp.ones(2) * 1j, "array"),
    "legacy-key": (jax.random.key_data(KEY), "array"),
    "weak-scalar": (WEAK, "weak"),
    "weak-integer": (jnp.asarray(3), "weak"),
    "weak-complex": (jnp.asarray(2j), "weak"),
    "key": (KEY, "threefry2x32"),
    "keys": (jax.random.split(KEY, 3), "threefry2x32"),
    "rbg": (jax.random.key(7, impl="rbg"), "rbg"),
}


@pytest.mark.parametrize(("leaf", "kind"), LEAVES.values(), ids=LEAVES)
def test_a_leaf_comes_back_as_it_was(leaf, kind):
    arrays, kinds = to_files([leaf])
    assert kinds == [kind]
    assert isinstance(arrays[0], np.ndarray)
    (back,) = restore(arrays, json.loads(json.dumps(kinds)))
    assert (back.dtype, back.shape) == (leaf.dtype, leaf.shape)
    assert getattr(back, "weak_type", None) == getattr(leaf, "weak_type", None)
    assert to_host(back).tobytes() == to_host(leaf).tobytes()


def test_leaves_keep_their_order():
    """One kind for each; Python numbers, and weak arrays with a shape, come back as a call gives them."""
    numbers = [2.5, 3, True, 1j]
    shapes = [jnp.broadcast_to(WEAK, shape) for shape in ((1,), (3,), (2, 2), (0,))]
    arrays, kinds = to_files([*numbers, KEY, *shapes])
    assert kinds[:5] == ["weak"] * 4 + ["threefry2x32"]
    back = restore(arrays, kinds)
    assert [(leaf.aval, leaf.item()) for leaf in back[:4]] == [(jnp.asarray(number).aval, number) for number in numbers]
    assert [(leaf.dtype, leaf.shape, leaf.tolist()) for leaf in back[5:]] == [
        (leaf.dtype, leaf.shape, leaf.tolist()) for leaf in shapes
    ]
    with pytest.raises(ValueError, match="zip"):
        restore(arrays, kinds[:2])


def test_settings_travel_as_json():
    """What changes programs is there, can be written down, and is set again as it was."""
    before = jax.config.jax_default_matmul_precision
    jax.config.update("jax_default_matmul_precision", "float32")
    try:
        found = json.loads(json.dumps(settings()))
        jax.config.update("jax_default_matmul_precision", "bfloat16")
        apply_settings(found)
        assert jax.config.jax_default_matmul_precision == "float32"
        assert json.loads(json.dumps(settings())) == found
    finally:
        jax.config.update("jax_default_matmul_precision", before)
    assert found["jax_enable_x64"] is False
    assert found["jax_threefry_partitionable"] is True
    assert found["jax_default_prng_impl"] == "threefry2x32"


def test_settings_come_back_for_a_while_only():
    """Unset ones too: what a test had set must not stay on after its capture, nor what is set now."""
    unset = all_settings()
    assert unset["jax_default_matmul_precision"] is None
    try:
        jax.config.update("jax_default_matmul_precision", "bfloat16")
        with settings_of(unset):
            assert jax.config.jax_default_matmul_precision is None
        assert jax.config.jax_default_matmul_precision == "bfloat16"
        there = all_settings()
    finally:
        jax.config.update("jax_default_matmul_precision", None)
    with settings_of(there):
        assert jax.config.jax_default_matmul_precision == "bfloat16"
    assert all_settings() == unset


def test_a_flag_that_was_at_its_default_comes_back_too():
    """Some options are no attributes of ``jax.config``: set now and not then, it is unset for the while."""
    name = "jax_disable_most_optimizations"
    there = all_settings()
    try:
        jax.config.update(name, True)
        with settings_of(there):
            assert jax.config.values[name] is False
        assert jax.config.values[name] is True
    finally:
        jax.config.update(name, False)
