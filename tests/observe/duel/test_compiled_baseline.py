"""A baseline's program compiled here: remembered by all that it depends on, and by nothing else."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.computation import Computation
from jaxgate.observe.duel import sides
from jaxgate.observe.duel.sides import Opponents
from jaxgate.observe.measure import observe
from jaxgate.observe.program.executable_fingerprint import executable_fingerprint
from jaxgate.observe.program.export import NotReplayableError
from jaxgate.observe.tools import Tools


@pytest.fixture
def observed():
    """A small product."""
    computation = Computation(subject=jax.jit(lambda x: jnp.tanh(x @ x)), args=(jnp.ones((16, 16)),))
    return observe(lambda: computation, Tools(store=ReferenceCache(None), sampling=False))


@pytest.fixture
def compiles(monkeypatch):
    """Programs that were compiled."""
    done = []
    prepare = sides.prepare
    monkeypatch.setattr(sides, "prepare", lambda *args: done.append(args) or prepare(*args))
    return done


def test_its_facts_and_its_executable_are_those_of_the_subject(observed, tmp_path):
    """The program that was exported a moment ago compiles to what it came from."""
    here = Opponents(ReferenceCache(tmp_path)).compiled(observed.export(), observed)
    assert here.facts["argument_bytes"] == here.facts["output_bytes"] == 16 * 16 * 4
    assert here.executable == executable_fingerprint(observed.lowered.stage.compile())


@pytest.mark.parametrize(("remembers", "times"), [(True, 1), (False, 2)])
def test_it_is_compiled_once(observed, compiles, tmp_path, remembers, times):
    """Another run reads what this one wrote, and knows the same; each compiles where nothing may be written."""
    folder = tmp_path if remembers else None
    first, again = (Opponents(ReferenceCache(folder)).compiled(observed.export(), observed) for _ in range(2))
    assert first == again
    assert len(compiles) == times


def test_another_environment_compiles_it_anew(observed, compiles, tmp_path):
    """A release, a flag or other hardware may make something else of it."""
    opponents = Opponents(ReferenceCache(tmp_path))
    opponents.compiled(observed.export(), observed)
    now = observed.measurement
    others = [
        replace(now, environment={**now.environment, "jaxlib": "9"}),
        replace(now, hardware=replace(now.hardware, device_kind="another")),
    ]
    for other in others:
        opponents.compiled(observed.export(), replace(observed, measurement=other))
    assert len(compiles) == 3


def test_a_program_that_is_not_stored_cannot_be_compiled(observed, tmp_path):
    """Nor is anything remembered under the name of nothing."""
    program = observed.export()
    nothing = replace(program, record=replace(program.record, digest=None, why_not="too large"), content=b"")
    for _ in range(2):
        with pytest.raises(NotReplayableError):
            Opponents(ReferenceCache(tmp_path)).compiled(nothing, observed)
