"""The sides of a duel opened for real: what a process of its own is given of what this one knows."""

import os

import jax
import jax.numpy as jnp
import pytest

from jaxgate.engine.duels.duel_processes import Environments, FreshDuel, open_sides
from jaxgate.model.program import Match
from jaxgate.observe.machine.environment import read_environment
from jaxgate.observe.machine.jax_settings import know_defaults, known_defaults
from jaxgate.observe.program.export import export_program, split_call
from jaxgate.observe.trace.lowering import lower
from jaxgate.processes.jax_query import find_defaults


@pytest.fixture
def apart():
    """A duel of a program with itself, where a conftest chose another platform than the variables say."""
    known = known_defaults()
    know_defaults(find_defaults())
    call = ((jnp.ones((8, 8)),), {})
    lowered = lower(jax.jit(jnp.tanh), *call, role="subject", clock=lambda: 0)
    program, leaves = export_program(lowered, call, None, 0), split_call(lowered, call)[0]
    here = read_environment(jax.devices()[0])
    variables = {**os.environ, "JAX_PLATFORMS": "tpu"}
    yield FreshDuel(
        [Match(now=program, baseline=program, leaves=leaves)],
        "cpu",
        environments=Environments(now=here, baseline=here, variables=variables),
    )
    know_defaults(known)


def test_they_run_where_the_case_ran_with_the_defaults_known_here(apart):
    """What the variables say of the platform does not count."""
    with open_sides(apart) as sides:
        assert [side.burst(1, lambda: 0) > 0 for side in sides] == [True, True]
