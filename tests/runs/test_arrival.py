"""A call that gets its arguments in a worse way than the baseline's did, with the same program: whole runs."""

import json

import pytest
from support.fakes import hardware_slug

from ci.attacks.gated_sources import BATCH

PLACED, WIDE = "jnp.ones((1024, 1024))", "np.ones((1024, 1024))"
LOOP = """
import jax, jax.numpy as jnp, numpy as np

def step(state, batch):
    return state * 0.5 + batch.sum(), batch.mean()

def test_step(gate):
    gate(step, STATE, jnp.ones((8, 8)), donate="state")
"""


@pytest.fixture
def recorded(project, lab):
    """Records a batch that is made like this, then changes it into another one."""
    del lab  # its clocks: nothing here is timed

    def record_and_change(before, now, text=BATCH, word="BATCH"):
        project.write("test_model.py", text.replace(word, before)).record()
        project.write("test_model.py", text.replace(word, now))
        return project.run()

    return record_and_change


def test_a_batch_that_becomes_numpy_is_red(recorded, project):
    """The attack: what the program computes, and the time of a call in place, are the same."""
    result = recorded(PLACED, WIDE)
    assert result.code == 1
    result.shows(
        f"REGRESSED  model/step  on {hardware_slug()}",
        "sent_bytes 8.39 MB against 0 B, allowed 1 MB",
        "UNDECIDED: identical program, but its arguments arrive otherwise, and a duel would put them in place first",
        "x: uncommitted device array then, NumPy float64 now: 8,388,608 bytes are converted and sent at every call",
        "comes from: options or values that the function's source does not have",
    )
    assert "identical program" not in result.line("REGRESSED  model/step  10 ms")
    content = json.loads(project.baseline().read_text())
    assert [(leaf["arrival"], leaf["sent_bytes"]) for leaf in content["signature"]] == [
        ("uncommitted device array", 0)
    ] * 2


def test_state_that_starts_on_the_host_is_not_red(recorded):
    """It is sent once; every later step gets it from the one before."""
    result = recorded("jnp.ones((1024, 1024))", "np.ones((1024, 1024))", text=LOOP, word="STATE")
    assert result.code == 0
    result.shows("1 case: 1 SAME")
