"""A second opinion in whole runs: who is asked, when, what a wrong result looks like, and how nobody is asked."""

from dataclasses import replace

import pytest
from support.projects import model

from jaxgate.ext.opinion.ask import second_opinion
from jaxgate.ext.opinion.model import Opinion, OpinionBy
from jaxgate.ext.second_process import check

MODEL = model("jnp.ones((8, 8))", step="jnp.exp(-x)")
AGREES = Opinion(by=OpinionBy.SECOND_COMPILE, apart=1e-7)
DIFFERS = replace(
    AGREES, apart=3.0, wrong="result[0]: the compiler's result depends on its library fusions: it gives 4, 1"
)


@pytest.fixture
def asked(project, lab, monkeypatch):
    """Cases of which somebody was asked, in a project that wants it; each agrees until a test says otherwise."""
    monkeypatch.delenv("JAXGATE_OPINION")
    monkeypatch.setattr(check, "MAX_ASKED", 0)
    found = []

    def second_opinion(question, _interpreter, *, limit_s):
        found.append((question.lowered.name, limit_s))
        return project.says

    project.says = AGREES
    lab.instruments["second_opinion"] = second_opinion
    project.write("test_model.py", MODEL)
    return found


def test_a_miscompiled_result_is_not_recorded(project, lab, monkeypatch):
    """The case is INVALID, with the leaf, both values and the command that reduces it.

    What the compiler gave is planted: what a real miscompile gives depends on memory that nobody wrote.
    """
    monkeypatch.delenv("JAXGATE_OPINION")
    monkeypatch.setattr(check, "MAX_ASKED", 0)
    lab.instruments["second_opinion"] = lambda question, interpreter, *, limit_s: second_opinion(
        replace(question, result={"y": question.result["y"] + 1}), interpreter, limit_s=limit_s
    )
    project.write("test_model.py", model("jnp.ones((128, 128))", step='{"y": jnp.exp(x @ x / 128)}'))
    result = project.run("--perf-update", "-o", "perf_opinion=5")  # too little for the interpreter: half a second
    assert (result.code, project.baselines()) == (1, {})
    result.shows(
        "INVALID  model/step",
        "checking the result: result['y'][0, 0]: the compiler's result depends on its library fusions: it gives 3.718",
        ", a second compile without library fusions 2.718",
        "reduce: jaxgate repro 'model/step' --reduce",
        "SECOND OPINION on 1 new result: 1 by a second compile without library fusions",
    )


def test_the_interpreter_is_asked_about_a_small_program(project, lab, monkeypatch):
    monkeypatch.delenv("JAXGATE_OPINION")
    monkeypatch.setattr(check, "MAX_ASKED", 0)
    project.write("test_model.py", MODEL)
    result = project.run("--perf-update", "-o", "perf_opinion=600")
    assert result.code == 0
    result.shows("SECOND OPINION on 1 new result: 1 by StableHLO's reference interpreter")
    (case,) = project.results()["cases"]
    assert case["opinion"]["by"] == OpinionBy.INTERPRETER
    assert case["opinion"]["apart"] < 1e-5


def test_what_is_recorded_or_changed_is_asked_about_and_what_is_the_same_is_not(project, asked):
    """A green run of old programs asks nobody and says nothing."""
    assert project.run("--perf-update").code == 0
    assert asked == [("step", 20.0)]
    same = project.run()
    assert len(asked) == 1
    assert "SECOND OPINION" not in same.text
    project.edit("test_model.py", "jnp.exp(-x)", "jnp.exp(-x) + x")
    project.run("-o", "perf_opinion=7").shows(
        "SECOND OPINION on 1 new result: 1 by a second compile without library fusions"
    )
    assert asked[1:] == [("step", 7.0)]


def test_without_a_baseline_nobody_is_asked(project, asked):
    """Nothing is accepted then, and nothing green under CI."""
    project.run()
    assert asked == []


@pytest.mark.parametrize("recording", [True, False])
def test_a_wrong_result_is_invalid_and_never_recorded(project, asked, recording):
    """Whether it is new or changed: its baseline stays as it is, and no option accepts it."""
    before = project.record().baselines()
    project.edit("test_model.py", "jnp.exp(-x)", "jnp.exp(-x) + x")
    project.says = DIFFERS
    result = project.run(*(["--perf-update"] if recording else []))
    assert (result.code, project.baselines()) == (1, before)
    result.shows("INVALID  model/step", f"checking the result: {DIFFERS.wrong}", "reduce: jaxgate repro")
    (case,) = project.results()["cases"]
    assert (case["status"], case["opinion"]["wrong"]) == ("INVALID", DIFFERS.wrong)


def test_a_case_with_a_reference_needs_no_other(project, asked):
    """Its reference agrees, which is an opinion of the author's own."""
    project.edit(
        "test_model.py", "gate(step, jnp.ones((8, 8)))", "gate(step, jnp.ones((8, 8)), reference=lambda x: jnp.exp(-x))"
    )
    assert project.run("--perf-update").code == 0
    assert asked == []


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("gate(step, jnp.ones(8), eager=True)", "plain Python around jitted calls is not one program"),
        (
            "gate(step, jax.ShapeDtypeStruct((8,), 'float32'))",
            "compiled for shapes (jax.ShapeDtypeStruct), never called",
        ),
        (
            "gate(lambda x: jax.pure_callback(lambda y: y, x, x), jnp.ones(8), name='model/step')",
            "its program calls Python, and would do so once more",
        ),
    ],
    ids=["eager", "shapes", "callback"],
)
def test_what_nobody_can_be_asked_about_is_said_once(project, asked, call, why):
    project.edit("test_model.py", "gate(step, jnp.ones((8, 8)))", call)
    result = project.run("--perf-update")
    assert (result.code, asked) == (0, [])
    result.shows(f"SECOND OPINION on 1 new result: 1 not checked: {why}")


def test_it_can_be_switched_off(project, asked):
    """Nobody is asked, and nothing said but to machines."""
    project.edit("pyproject.toml", "[tool.pytest]\n", '[tool.pytest]\nperf_opinion = "0"\n')
    result = project.run("--perf-update")
    assert (result.code, asked) == (0, [])
    assert "SECOND OPINION" not in result.text
    (case,) = project.results()["cases"]
    assert case["opinion"]["why_not"] == "switched off (perf_opinion is 0)"
