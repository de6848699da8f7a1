"""The fixture ``contrast`` in a run of pytest: skipped in one line, green with a table, red for what is not the same."""

import json

import pytest
from support.paths import REPOSITORY

SIDES = (REPOSITORY / "tests" / "support" / "contrasts.py").read_text()
TEST = """
from jaxgate.model import ContrastCase
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
def run(pytester):
    """A run of a contrast of JAX with itself."""

    def run(*options, changed="", needs="{}"):
        pytester.makepyfile(sides=SIDES, test_one=TEST.format(changed=changed, needs=needs))
        return pytester.runpytest_subprocess("-ra", *options)

    return run


def test_without_a_framework_it_is_skipped_in_one_line(run):
    """The line has the command; nothing else is said of the case."""
    found = run(needs="{'no_such_framework': 'jaxgate[torch]'}")
    found.assert_outcomes(skipped=1)
    found.stdout.fnmatch_lines(["SKIPPED * `contrast/itself` needs no_such_framework: pip install 'jaxgate[[]torch]'"])


def test_one_that_is_left_out_makes_a_run_of_other_gates_no_less_green(run, pytester):
    """``jaxgate gate`` would end with exit code 2 where a selected gate was not judged."""
    pytester.makepyfile(test_other="def test_step(gate):\n    gate(lambda x: x * 2.0, 1.0)\n")
    found = run("--perf-update", needs="{'no_such_framework': 'jaxgate[torch]'}")
    found.assert_outcomes(passed=1, skipped=1)
    results = json.loads((pytester.path / "perf-artifacts" / "results.json").read_text())
    assert results["not_judged"] == []


def test_sides_that_do_the_same_are_shown_with_their_times(run, pytester):
    """Two processes and a duel: a table, a row of pytest-benchmark for each side, all figures in results.json."""
    found = run()
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(
        [
            "*test_contrast*itself*::other*",
            "SAME  contrast/itself * 1 claim holds*",
            "contrast/itself: float32, * of products a step; results of 5 steps at most 0 apart",
            "*a step*rate*in one process*alone*memory*first step",
            "  one * 1 ×*1 ×*",
            "  other *",
        ]
    )
    (case,) = json.loads((pytester.path / "perf-artifacts" / "results.json").read_text())["cases"]
    one, other = case["contrast"]["sides"]
    assert one["ratio"] is None
    assert other["ratio"] > 0
    assert other["alone_ns"] > 0
    assert other["first_step_ns"] > other["alone_ns"]
    assert not (pytester.path / "baselines").exists()


def test_sides_that_differ_are_red_and_nothing_is_timed(run):
    """The line says at which stage; there is no table."""
    found = run(changed=DOUBLED)
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["  found     comparing results: loss function of other at the same logits: *"])
    found.stdout.no_fnmatch_line("*in one process*")


def test_without_a_clock_nothing_is_timed(run):
    """The results are compared, and a note says what was not done."""
    found = run("--benchmark-disable")
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(["  nothing was timed (--benchmark-disable)"])


def test_a_run_that_records_leaves_it_out(run, pytester):
    """Nothing of it is stored."""
    found = run("--perf-update")
    found.assert_outcomes(skipped=1)
    assert not (pytester.path / "baselines").exists()


def test_the_variable_of_its_processes_judges_nothing(run, pytester, monkeypatch):
    """Set by hand, no gate may look as if it had judged."""
    monkeypatch.setenv("JAXGATE_CONTRAST_SIDE", "one")
    monkeypatch.setenv("JAXGATE_CONTRAST_INTO", str(pytester.path / "side.json"))
    found = run()
    found.assert_outcomes(failed=1)
    assert (pytester.path / "side.json").exists()
