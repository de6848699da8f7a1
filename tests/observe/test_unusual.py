"""Observations of programs and settings that are out of the ordinary: each has an answer, or says why it has none."""

import jax
import jax.numpy as jnp
import pytest
from support.measured import measured
from support.processes import python

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.errors import describe

X = jnp.ones((8, 4))


@pytest.mark.parametrize("setting", ["jax_disable_jit", "jax_debug_nans", "jax_debug_infs"])
def test_settings_that_look_for_faults_are_refused(setting):
    """Under them a retrace does not show and donation is left out: nothing may be called the same."""
    before = getattr(jax.config, setting)
    jax.config.update(setting, True)
    try:
        with pytest.raises(InvalidCaseError) as caught:
            measured(jax.jit(jnp.sin, donate_argnums=0), X)
    finally:
        jax.config.update(setting, before)
    assert caught.value.reason.startswith(f"expected {setting} off, found it on: ")


def test_a_tangent_of_integers_is_a_result_without_bytes():
    """float0, which JAX gives for the gradient by an integer, takes no memory."""
    gradients = jax.jit(jax.grad(lambda x, n: (x * n).sum(), argnums=(0, 1), allow_int=True))
    seen = measured(gradients, X, jnp.arange(4))
    assert [leaf.nbytes for leaf in seen.results] == [8 * 4 * 4, 0]


def test_a_donated_key_is_not_fed_from_numbers():
    """Random numbers of the keys' shape are no keys: each step starts from the same ones."""
    keys = jax.random.split(jax.random.key(0), 4)
    draw = jax.jit(lambda keys: jax.vmap(jax.random.normal)(keys), donate_argnums=0)
    assert measured(draw, keys).facts.lost_bytes == 4 * 8


def test_of_two_results_of_one_shape_the_one_of_the_same_type_is_fed_back():
    """A float that happens to have the shape of the donated integers is no state that drifted."""

    def step(tokens):
        return jnp.log(tokens + 1.0), tokens + 1

    facts = measured(jax.jit(step, donate_argnums=0), jnp.arange(4)).facts
    assert (facts.traces, facts.lost_bytes) == (1, 0)


FIRST_KERNEL = """
import jax, jax.numpy as jnp
from jax.experimental import pallas
from jaxgate.model.computation import Computation
from jaxgate.observe.errors import describe
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.keep.cache import ReferenceCache

def twice(x, out):
    out[...] = x[...] * 2

kernel = jax.jit(lambda x: pallas.pallas_call(twice, out_shape=jax.ShapeDtypeStruct((8, 4), x.dtype), interpret=True)(x))
build = lambda: Computation(subject=kernel, args=(jnp.ones((8, 4)),))
facts = observe(build, Tools(store=ReferenceCache(None), sampling=False)).measurement.facts
print(facts.traces, facts.lowerings, facts.compiles)
"""


def test_the_first_kernel_of_a_process_is_traced_once():
    """With 0.12 the first Pallas kernel adds to JAX's settings while it is traced, which is no fault of the program."""
    assert python("-c", FIRST_KERNEL) == "1 1 1\n"


FORBIDDEN = """
import jax, jax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 2)
from jax.sharding import NamedSharding, PartitionSpec
from jaxgate.model.computation import Computation
from jaxgate.observe.errors import describe
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.keep.cache import ReferenceCache

x = jax.device_put(jnp.ones((8, 4)), NamedSharding(jax.make_mesh((2,), ("x",)), PartitionSpec("x")))
jax.config.update("jax_transfer_guard", "disallow")
tanh, plain = jax.jit(lambda x: jnp.tanh(x) + 1), lambda x: jnp.tanh(x) + 1
build = lambda: Computation(subject=tanh, args=(x,), reference=plain)
facts = observe(build, Tools(store=ReferenceCache(None), sampling=False)).measurement.facts
print(facts.traces, facts.compiles)
"""


def test_what_is_read_to_check_a_case_is_no_transfer_of_its_program():
    """A project may forbid all implicit transfers: results of several devices are still brought to the host."""
    assert python("-c", FORBIDDEN) == "1 1\n"


def test_a_donated_number_is_not_lost():
    """A Python number among donated state (the step of a TrainState) has no buffer that could be held twice."""
    seen = measured(jax.jit(lambda x, n: (x * n, n + 1), donate_argnums=1), X, 2.0)
    assert (seen.facts.lost_bytes, seen.unknown) == (0, {})


def test_what_the_text_of_an_error_announces_is_kept():
    """JAX writes an empty line between the sentence that ends in a colon and the types that differ."""
    with pytest.raises(TypeError) as caught:
        jax.lax.scan(lambda c, _: (c.astype(jnp.bfloat16), None), jnp.ones(4), None, length=2)
    text = describe(caught.value)
    assert "but they differ: The input carry c has type float32[4]" in text
    assert "bfloat16[4]" in text
