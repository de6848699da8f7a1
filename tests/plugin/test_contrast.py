"""The fixture ``contrast`` in a run of pytest: skipped in one line, green with a table, red for what is not the same."""

import pytest
from support.paths import REPOSITORY

SIDES = (REPOSITORY / "tests" / "support" / "contrasts.py").read_text()
TEST = """
from jaxgate.model.workloads.contrast import ContrastCase
from jaxgate.plugin import catalogue
from sides import contrast as made, squared, training

def other():
    return training({changed})

def build():
    return made(other, factor=100.0)

CASE = ContrastCase(family="contrast", sentence="itself", needs={needs}, sizes={{"small": build, "full": build}})

@catalogue([CASE])
def test_contrast(case, contrast):
    contrast(case)
"""
DOUBLED = "loss=lambda logits, labels: 2 * squared(logits, labels)"


@pytest.fixture
def contrasts(project):
    """Runs a contrast of JAX with itself, in this process; its sides are launched in others."""

    def run(*options, changed="", needs="{}"):
        project.write("sides.py", SIDES).write("test_one.py", TEST.format(changed=changed, needs=needs))
        return project.run("-ra", *options)

    return run


def test_without_a_framework_it_is_skipped_in_one_line(contrasts):
    """The line has the command; nothing else is said of the case."""
    found = contrasts(needs="{'no_such_framework': 'jaxgate[torch]'}")
    found.counts(skipped=1)
    found.shows("`contrast/itself` needs no_such_framework: pip install 'jaxgate[torch]'")


def test_one_that_is_left_out_makes_a_run_of_other_gates_no_less_green(contrasts, project):
    """``jaxgate gate`` would end with exit code 2 where a selected gate was not judged."""
    project.write("test_other.py", "def test_step(gate):\n    gate(lambda x: x * 2.0, 1.0)\n")
    contrasts("--perf-update", needs="{'no_such_framework': 'jaxgate[torch]'}").counts(passed=1, skipped=1)
    assert project.results()["not_judged"] == []


def test_sides_that_do_the_same_are_shown_with_their_times(contrasts, project):
    """Two processes and a duel: a table, a row of pytest-benchmark for each side, all figures in results.json."""
    found = contrasts()
    found.counts(passed=1)
    found.shows(
        "::other", "SAME  contrast/itself", "1 claim holds", "in one process", "results of 5 steps at most 0 apart"
    )
    (case,) = project.results()["cases"]
    one, other = case["contrast"]["sides"]
    assert (one["ratio"], one["alone_ratio"]) == (None, 1.0)
    assert other["ratio"] > 0
    assert other["alone_ns"] > 0
    assert other["first_step_ns"] > other["alone_ns"]
    assert project.baselines() == {}


def test_sides_that_differ_are_red_and_nothing_is_timed(contrasts):
    """The line says at which stage; there is no table."""
    found = contrasts(changed=DOUBLED)
    found.counts(failed=1)
    found.shows("  found     comparing results: loss function of other at the same logits: ")
    assert "in one process" not in found.text


def test_without_a_clock_nothing_is_timed(contrasts):
    """The results are compared, and a note says what was not done."""
    found = contrasts("--benchmark-disable")
    found.counts(passed=1)
    found.shows("  nothing was timed (--benchmark-disable)")


def test_a_run_that_records_leaves_it_out(contrasts, project):
    """Nothing of it is stored."""
    contrasts("--perf-update").counts(skipped=1)
    assert project.baselines() == {}


def test_the_variable_of_its_processes_judges_nothing(contrasts, project, monkeypatch):
    """Set by hand, no gate may look as if it had judged."""
    monkeypatch.setenv("JAXGATE_CONTRAST_SIDE", "one")
    monkeypatch.setenv("JAXGATE_CONTRAST_INTO", str(project.path / "side.json"))
    contrasts().counts(failed=1)
    assert (project.path / "side.json").exists()
