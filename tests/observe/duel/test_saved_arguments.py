"""Arguments to the host and back, and JAX's settings for another process."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.jax_settings import settings_restored

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


PRECISION, PLAIN = "jax_default_matmul_precision", "jax_disable_most_optimizations"


@settings_restored()
def test_settings_travel_as_json():
    """What changes programs is there, can be written down, and is set again as it was."""
    jax.config.update(PRECISION, "float32")
    found = json.loads(json.dumps(settings()))
    jax.config.update(PRECISION, "bfloat16")
    apply_settings(found)
    assert jax.config.jax_default_matmul_precision == "float32"
    assert json.loads(json.dumps(settings())) == found
    assert found["jax_enable_x64"] is False
    assert found["jax_threefry_partitionable"] is True
    assert found["jax_default_prng_impl"] == "threefry2x32"


@settings_restored()
def test_settings_come_back_for_a_while_only():
    """Unset ones, and options that are no attributes of ``jax.config``: neither what a test had set stays on, nor what is now."""
    there, values = all_settings(), jax.config.values
    assert (values[PRECISION], values[PLAIN]) == (None, False)
    jax.config.update(PRECISION, "bfloat16")
    jax.config.update(PLAIN, True)
    with settings_of(there):
        assert all_settings() == there
    assert (jax.config.values[PRECISION], jax.config.values[PLAIN]) == ("bfloat16", True)
    now = all_settings()
    apply_settings(there)
    with settings_of(now):
        assert all_settings() == now
    assert all_settings() == there
