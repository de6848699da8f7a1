"""An identical program whose calls take far longer than recorded: looked for again in fresh processes, then red."""

import pytest
from support.fakes import CALL_NS
from support.projects import TALK, model

MODEL = model("jnp.ones((8, 8))", step="jnp.exp(-x)")


@pytest.fixture
def accepted(project, lab):
    """A recorded case; its calls take twenty times as long since."""
    project.write("test_model.py", MODEL).record()
    lab.call_ns = 20 * CALL_NS
    return project


def test_it_is_red_where_every_fresh_process_agrees(accepted, lab):
    """With the ratio here and there, and what it does not come from."""
    lab.fresh_ns = [19 * CALL_NS, 21 * CALL_NS]
    result = accepted.run()
    assert (result.code, len(lab.recorded)) == (1, 2)
    result.shows(
        "SLOWER  model/step",
        "a call takes 200 ms against 10 ms = 20.00 ×",
        "identical program, and yet 20.0 × slower than recorded: something outside the program",
        "in fresh processes 19.000 ×, 21.000 ×",
    )


@pytest.mark.parametrize(("flag", "code", "launched"), [(False, 2, 0), (True, 1, 14)], ids=["machine", "flag"])
def test_many_at_once(project, lab, flag, code, launched):
    """The machine is the suspect, and no process is started; where a flag differs that is what they share."""
    many = (
        "\n\n@pytest.mark.parametrize('number', range(6))\ndef test_many(gate, number):\n    gate(step, jnp.ones(8))\n"
    )
    project.write("test_model.py", "import pytest\n" + MODEL + many).record()
    lab.call_ns = 20 * CALL_NS
    lab.fresh_ns = [20 * CALL_NS] * launched
    if flag:
        lab.change_environment()
    result = project.run("--perf-max-undecided=1")
    assert (result.code, len(lab.recorded)) == (code, launched)
    result.shows(f"7 cases: 7 {'SLOWER' if flag else 'INVALID'}")


def test_it_is_the_same_where_one_does_not(accepted, lab):
    """Something in this process, or the machine for a while: the line tells it."""
    lab.fresh_ns = [20 * CALL_NS, CALL_NS]
    result = accepted.run()
    assert (result.code, len(lab.recorded)) == (0, 2)
    result.shows("identical program; 20.0 × slower than recorded in this process, and not in fresh process 2 of 2")
    result.shows("1 case: 1 SAME")


def test_it_is_invalid_where_no_process_can_be_run(accepted, lab):
    lab.breaks = lambda content: content.update(schema=0)
    result = accepted.run()
    assert result.code == 1
    result.shows("INVALID  model/step", "it could not be confirmed")


def test_a_changed_program_is_for_the_duel(accepted, lab):
    """Here and now it says SAME, and has the last word."""
    accepted.edit("test_model.py", "jnp.exp(-x)", "jnp.exp(-x) + 1")
    assert (accepted.run().code, lab.recorded) == (0, [])
    assert "baseline" in lab.duelled


def test_what_no_fingerprint_covers_is_watched_too(project, lab):
    """A callback may do anything; no duel can be run of it, and the case was undecided for ever."""
    recorded = project.write("test_model.py", TALK).run("--perf-update")
    recorded.shows(
        "the program calls Python (jax.debug.callback at test_model.py:",
        ": its time is UNDECIDED unless recorded times judge it",
    )
    lab.call_ns = 20 * CALL_NS
    result = project.run("--perf-max-undecided=1")
    assert result.code == 1
    result.shows("SLOWER  model/talk", "20.0 × slower than recorded")
