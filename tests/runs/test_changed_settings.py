"""A flag or a setting that a change sets: the baseline's program under its own settings, in turn with today's."""

import numpy as np
import pytest
from support.fakes import duel
from support.projects import model

MODEL = model("jnp.ones((8, 8))", step="jnp.exp(-x)")


@pytest.fixture
def changed(project, lab):
    """A recorded case; a flag is set since, and a process is to be had for each side."""
    project.write("test_model.py", MODEL).record()
    lab.change_environment()
    lab.no_sides = ""
    return project


def test_nobody_has_to_ask_for_it(changed, lab):
    """Each side has the environment that is its own, and what the project had before any conftest."""
    result = changed.run()
    (asked,) = lab.apart
    assert (result.code, asked.environments.now["XLA_FLAGS"]) == (0, "--xla_new")
    assert "XLA_FLAGS" not in asked.environments.baseline
    assert asked.environments.variables["PATH"]
    result.shows("1 case: 1 SAME")


def test_a_slower_one_is_red_where_fresh_processes_agree(changed, lab):
    """It is not the machine that is the suspect, however many cases it makes slower: they share the flag."""
    lab.finds["baseline"] = duel(1.3)
    result = changed.run()
    assert (result.code, [again.environments is None for again in lab.launched]) == (1, [False, False])
    result.shows("SLOWER  model/step", "environment changed [XLA_FLAGS absent → --xla_new")


def test_many_slower_ones_are_not_the_machine(project, lab):
    many = "\n\n@pytest.mark.parametrize('k', range(6))\ndef test_many(gate, k):\n    gate(step, jnp.ones(8))\n"
    project.write("test_model.py", "import pytest\n" + MODEL + many).record()
    lab.change_environment()
    lab.no_sides, lab.finds["baseline"] = "", duel(1.3)
    result = project.run("--perf-max-undecided=1")
    assert (result.code, len(lab.launched)) == (1, 14)
    result.shows("7 cases: 7 SLOWER")


@pytest.mark.parametrize(
    ("results", "said"),
    [
        pytest.param([np.full(2, 1.00001)], "", id="within-the-tolerance"),
        pytest.param([np.full(2, 1.01)], "results differ from the baseline's; ", id="others"),
        pytest.param([np.ones(2, "float32")], "results differ from the baseline's; ", id="of-another-type"),
        pytest.param(None, "results are too large to be compared with the baseline's; ", id="too-large"),
    ],
)
def test_a_flag_that_changes_results_is_not_hidden(changed, lab, results, said):
    """As in a duel in one process: it is said, and nobody is told to accept what is quicker."""
    lab.results["now"] = results
    lab.finds["baseline"] = duel(0.7)
    result = changed.run()
    advice = "check its results before refreshing" if said else "refresh with --perf-update"
    assert result.code == 0
    assert ("BETTER:" in result.text) is not bool(said)
    result.shows("1 case: 1 FASTER", f"{advice} · 0.70 × the baseline, {said}20 of 20 pairs were more than 3.0% faster")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(["--benchmark-disable"], "the clock is switched off"), (["--perf-budget=0"], "the budget for duels is spent")],
)
def test_it_is_undecided_where_no_clock_may_run(changed, lab, arguments, why):
    result = changed.run("--perf-max-undecided=1", *arguments)
    assert (result.code, lab.apart, lab.duelled) == (0, [], [])
    result.shows("1 case: 1 UNDECIDED", "environment changed", why)


def test_it_is_undecided_where_a_side_cannot_be_had(changed, lab):
    lab.no_sides = "XLA_FLAGS names a path, of which a hash is stored"
    result = changed.run("--perf-max-undecided=1")
    assert (result.code, lab.duelled) == (0, [])
    result.shows("1 case: 1 UNDECIDED", f"{lab.no_sides}: --perf-against NAME=VALUE times both")


def test_a_changed_program_runs_under_todays(changed, lab):
    """The change is code and a flag at once: the duel says what both do together."""
    changed.edit("test_model.py", "jnp.exp(-x)", "jnp.exp(-x) + 1")
    changed.run()
    (asked,) = lab.apart
    (match,) = asked.matches
    assert match.now.content != match.baseline.content


WIDTH = """
import jax, jax.numpy as jnp

WIDE = False

def step(x):
    return jnp.exp(-x)

def test_step(gate):
    with jax.enable_x64(WIDE):
        gate(step, jnp.ones((8, 8), float))
"""


def test_a_setting_that_made_other_arguments_is_the_culprit(project):
    """Each float is 64 bits wide: the setting is named, and not only the first argument."""
    project.write("test_model.py", WIDTH).record()
    project.edit("test_model.py", "WIDE = False", "WIDE = True")
    result = project.run("--perf-strict")
    result.counts(failed=1)
    assert "x: float32[8,8] then, float64[8,8] now" in result.line("found")
    result.shows("  culprit   recorded under other settings: jax_enable_x64 False → True\n")
