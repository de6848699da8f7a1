"""What the compiler's cost model says of a program."""

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.trace.stages import compiled_facts

X = jnp.ones((8, 8))


@pytest.mark.parametrize(
    ("function", "flops", "transcendentals"),
    [(lambda x: x * 2, 64, 0), (jnp.tanh, 0, 64), (lambda x: jnp.sin(jnp.exp(x)), 0, 128)],
    ids=["neither", "one", "two"],
)
@pytest.mark.jax_text
def test_transcendentals_are_no_flops(function, flops, transcendentals):
    """What a program has nothing of is zero, though XLA leaves it out; only a backend that tells nothing is unknown."""
    facts = compiled_facts(jax.jit(function).lower(X).compile())
    assert (facts["xla_flops"], facts["transcendentals"]) == (flops, transcendentals)


def test_a_backend_that_tells_nothing_is_unknown():
    class Silent:
        def memory_analysis(self):
            return None

        def cost_analysis(self):
            return None

        def as_text(self):
            return None

    assert set(compiled_facts(Silent()).values()) == {None}
