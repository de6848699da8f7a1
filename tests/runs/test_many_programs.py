"""What a first baseline would bless is recorded as it is, and told: plain Python of many programs, names that nothing has."""

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
    result = project.write("test_model.py", MODEL.replace("COUNT", str(count))).run(
        "--perf-update", "--benchmark-disable"
    )
    assert result.code == 0
    assert (f"MANY PROGRAMS: model/step starts {count} a call: put more of it under one jax.jit" in result.text) is told


KEPT = """
import jax, jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
policy = jax.checkpoint_policies.save_only_these_names("mlp", "attention")
def block(x):
    return jnp.sin(checkpoint_name(jnp.sin(x), NAME))
def test_step(gate):
    gate(jax.grad(lambda x: jnp.sum(jax.checkpoint(block, policy=policy)(x))), jnp.ones(3), name="model/step")
"""


def test_names_of_a_policy_that_no_array_has_are_told(project):
    """One of two; without that one there is nothing to tell."""
    result = project.write("test_model.py", KEPT.replace("NAME", "'mlp'")).run("--perf-update", "--benchmark-disable")
    assert result.code == 0
    result.shows("UNMATCHED NAMES: model/step 1 in its policies of jax.checkpoint: no array has them, so none is kept")
    project.edit("test_model.py", '"mlp", "attention"', '"mlp"')
    assert "UNMATCHED" not in project.run("--perf-update", "--benchmark-disable").text
