"""Plain Python that runs operation by operation is recorded as it is, and told."""

from __future__ import annotations

import pytest

MODEL = """
import jax, jax.numpy as jnp
def step(x):
    for number in range(COUNT):
        x = x + number
    return x
def test_step(gate):
    gate(step, jnp.ones(3), eager=True)
"""


@pytest.mark.parametrize(("count", "told"), [(40, True), (5, False)])
def test_many_programs_a_call_are_told(project, count, told):
    """With what to do."""
    result = project.write("test_model.py", MODEL.replace("COUNT", str(count))).run(
        "--perf-update", "--benchmark-disable"
    )
    assert result.code == 0
    assert (f"MANY PROGRAMS: model/step starts {count} a call: put more of it under one jax.jit" in result.text) is told
