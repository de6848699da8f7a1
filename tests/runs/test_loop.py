"""Training loops end to end: a fresh process restores, a red text names its culprit, a loop is a case like any other."""

import re

from support.corpora import nightly

LOOP = """
import pickle
import jax, jax.numpy as jnp, numpy as np
@jax.jit
def step(state, batch):
    return {"w": state["w"] + batch, "step": state["step"] + 1}, jnp.sum(state["w"])
def make_state():
    return {"w": jnp.zeros((64, 64)), "step": jnp.int32(0)}
def batches():
    while True:
        yield np.ones((64, 64), np.float32)
def save(folder, state):
    (folder / "state").write_bytes(pickle.dumps(jax.device_get(state)))
def restore(folder, like):
    return jax.device_put(pickle.loads((folder / "state").read_bytes()))
def test_train(gate_loop):
    gate_loop(make_state, batches, step, save=save, restore=restore, steps=14)
"""


def test_another_process_restores_and_the_text_names_what_it_changes(project):
    """NumPy's arrays come back where the device's were saved: one text, one line, exit code 1; nothing else is red."""
    project.write("test_model.py", LOOP.replace("jax.device_put(pickle.loads", "(pickle.loads"))
    red = project.run("--perf-profile=never")
    assert red.code == 1
    assert re.search(r"found +restored_leaves: restore= gives 1 leaf of the state otherwise than saved\n", red.text)
    assert re.search(
        r"culprit +state\['w'\]: uncommitted device array float32\[64,64\] → NumPy float32\[64,64\]", red.text
    )
    assert "reproduce: pytest 'test_model.py::test_train'" in red.text
    assert "accept: add --perf-update" not in red.text


@nightly
def test_the_other_process_leaves_what_red_cases_left(project):
    """Its run begins without bundles of its own folder, not of this run's."""
    project.write("test_model.py", LOOP)
    project.write(
        "test_first.py",
        "import jax.numpy as jnp\ndef test_a(gate):\n    gate(jnp.sin, jnp.ones(3), max_output_bytes=1)\n",
    )
    assert project.run("test_first.py", "test_model.py", "--perf-profile=never").code == 1
    assert (project.path / "perf-artifacts/first/a/report.md").exists()


@nightly
def test_several_loops_and_a_gate_stand_in_one_test(project):
    """Each with its name; the process that resumes one passes by the others."""
    more = "    gate_loop(make_state, batches, step, steps=14, name='{0}')\n"
    test = LOOP.replace("steps=14)", "steps=14, name='saved')") + more.format("last")
    test = test.replace("(gate_loop):\n", "(gate_loop, gate):\n" + more.format("first"))
    project.write("test_model.py", test + "    gate(step, make_state(), np.ones((64, 64), np.float32), name='step')\n")
    found = project.run()
    assert [len(re.findall(rf"SAME +model/{name} ", found.text)) for name in ("first", "saved", "last")] == [1, 1, 1]
    assert "NO_BASELINE  model/step" in found.text


@nightly
def test_a_loop_records_nothing_and_is_judged_without_a_baseline(project):
    """Nor does it break a run that records, or is for a target."""
    project.write("test_model.py", LOOP)
    recorded = project.run("--perf-update")
    assert (recorded.code, project.baselines()) == (0, {})
    green = project.run()
    assert green.code == 0
    assert "model/train 21 claims hold · a step " in re.sub(" +", " ", green.text)


@nightly
def test_what_the_other_process_dies_of_is_the_reason(project):
    """A restore that ends its process is INVALID, and the loop red."""
    project.write(
        "test_model.py",
        LOOP.replace("    return jax.device_put(pickle", "    import os; os._exit(3)\n    return (pickle"),
    )
    found = project.run("--perf-profile=never")
    assert found.code == 1
    assert "resuming the loop in another process" in found.text
