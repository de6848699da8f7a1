"""Device memory that a measurement takes besides the program's own: how many copies of the state are alive at once."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.measured import alive

from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.computation import Computation
from jaxgate.observe.arguments import feeder
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools


def step(state, x):
    """A step that gives its state back."""
    return state * 0.9 + x, x + 1


@pytest.fixture
def seen(monkeypatch):
    """Bytes of arrays before and after each call of a subject or reference; results are read as from an accelerator."""
    found, begin, to_host = [], JittedSubject.__init__, feeder.to_host

    def watched(self, *args):
        begin(self, *args)
        function = self.function
        self.function = lambda *args, **kwargs: (
            found.append(alive()),
            function(*args, **kwargs),
            found.append(alive()),
        )[1]

    monkeypatch.setattr(JittedSubject, "__init__", watched)
    # On CPU what is read shares its memory with the array, and keeps that alive.
    monkeypatch.setattr(feeder, "to_host", lambda leaf: np.array(to_host(leaf)))
    return found


@pytest.mark.parametrize("reference", [None, step], ids=["alone", "with a reference"])
def test_a_step_that_donates_its_state_takes_twice_its_state(seen, reference):
    """The caller's arrays, which are never consumed, and the one copy that goes from step to step."""
    gc.collect()
    others = alive()
    state = jnp.ones((256, 256))
    donated = jax.jit(step, donate_argnums=0)
    observe(
        lambda: Computation(subject=donated, args=(state, jnp.float32(1)), reference=reference),
        Tools(store=ReferenceCache(None)),
    )
    assert len(seen) > 10
    assert max(seen) - others <= 2 * state.nbytes + 64
