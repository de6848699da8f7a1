"""A call that gets its arguments in a worse way than the baseline's did, with the same program: whole runs."""

from __future__ import annotations

import json

import pytest
from support.fakes import hardware_slug

from ci.attacks.gated_sources import BATCH

PLACED, HOST, WIDE = "jnp.ones((1024, 1024))", "np.ones((1024, 1024), np.float32)", "np.ones((1024, 1024))"
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


def test_a_wider_type_on_the_host_is_red(recorded):
    """The batch came from the host before; twice the bytes are read and converted now."""
    result = recorded(HOST, WIDE)
    assert result.code == 1
    result.shows(
        "sent_bytes 8.39 MB against 4.19 MB = 2.00 ×, allowed 5.61 MB", "NumPy float32 then, NumPy float64 now"
    )


@pytest.mark.parametrize(("before", "now"), [(HOST, HOST), (PLACED, f"jax.device_put({PLACED}, jax.devices()[0])")])
def test_the_same_is_the_same(recorded, before, now):
    """NumPy that was recorded so, and an array that is committed to where it lay."""
    result = recorded(before, now)
    assert result.code == 0
    result.shows("1 case: 1 SAME")


def test_what_no_longer_comes_from_the_host_is_a_win(recorded):
    """It is told, and asks for a tighter baseline."""
    result = recorded(WIDE, PLACED)
    assert result.code == 0
    result.shows("IMPROVED  model/step", "improved: sent_bytes 0.00 ×")


def test_state_that_starts_on_the_host_is_not_red(recorded):
    """It is sent once; every later step gets it from the one before."""
    result = recorded("jnp.ones((1024, 1024))", "np.ones((1024, 1024))", text=LOOP, word="STATE")
    assert result.code == 0
    result.shows("1 case: 1 SAME")


def test_a_baseline_from_before_is_judged_without(project, lab):
    """It lacks what its arguments cost: nothing is red, and nothing is an error."""
    del lab
    project.write("test_model.py", BATCH.replace("BATCH", PLACED)).record()
    path = project.baseline()
    content = json.loads(path.read_text())
    for leaf in content["signature"]:
        del leaf["arrival"], leaf["sent_bytes"]
    path.write_text(json.dumps(content))
    project.edit("test_model.py", PLACED, WIDE)
    result = project.run()
    assert result.code == 0
    result.shows("identical program", "1 case: 1 SAME")
