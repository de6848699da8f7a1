"""Starts of jobs end to end: two fresh processes, and the second one finds what the first one compiled."""

import re

import pytest

START = """
import jax, jax.numpy as jnp
NAMES = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}
@jax.jit
def ordered(x):
    for name in NAMES:
        x = jnp.sin(x) * ord(name[0])
    return x
@jax.jit
def plain(x):
    return x @ x
def test_both(gate_start):
    gate_start(lambda: (ordered(jnp.ones(8)), plain(jnp.ones((8, 8)))), programs=99)
"""


@pytest.mark.jax_text
def test_a_program_that_the_order_of_a_set_decides_is_compiled_again(project):
    """It is named with the line that differs; the other programs of the start are found, and no limit is broken."""
    project.write("test_model.py", START)
    found = project.run("--perf-profile=never")
    text = re.sub(" +", " ", found.text)
    assert found.code == 1
    assert "found missed_programs: the second process compiles again what the first one kept: 1 program\n" in text
    assert re.search(r"culprit ordered at test_model.py:\d+: %cst = stablehlo.constant dense<\S+> : \S+ → %cst", text)
    assert re.search(r"time SAME: \d+ programs, [\d.]+ s \(imports ", text)
    assert "accept: add --perf-update" not in text
