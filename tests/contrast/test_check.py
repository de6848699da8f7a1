"""A test of a contrast in a run of pytest: skipped in one line, green with a table, red for what is not the same."""

import json

import pytest
from support.corpora import nightly
from support.paths import REPOSITORY

SIDES = (REPOSITORY / "tests" / "support" / "contrasts.py").read_text()
TEST = """
from sides import contrast as made, squared, training
from workloads.contrast.check import check
from workloads.contrast.contrast import ContrastCase

def other():
    return training({changed})

def build():
    return made(other, factor=100.0)

def test_contrast(request, benchmark):
    check(ContrastCase(name="itself", needs={needs}, sizes={{"small": build, "full": build}}), request, benchmark)
"""


@pytest.fixture
def contrasts(project):
    """Runs a contrast of JAX with itself, in this process; its sides are launched in others."""

    def run(*options, changed="", needs="{}"):
        project.write("conftest.py", (REPOSITORY / "conftest.py").read_text().replace('["pytester"]', "[]"))
        project.write("sides.py", SIDES).write("test_one.py", TEST.format(changed=changed, needs=needs))
        return project.run("-ra", *options)

    return run


def test_without_a_framework_it_is_skipped_in_one_line(contrasts):
    found = contrasts(needs="{'no_such_framework': 'jaxgate[torch]'}")
    found.counts(skipped=1)
    found.shows("`itself` needs no_such_framework: pip install 'jaxgate[torch]'")


@nightly
def test_sides_that_do_the_same_are_shown_with_their_times(contrasts, project):
    """Two processes and a duel: a table, and the figures in pytest-benchmark's file."""
    found = contrasts("--benchmark-json=figures.json")
    found.counts(passed=1)
    found.shows("itself: float32", "in one process", "results of 5 steps at most 0 apart")
    (row,) = json.loads((project.path / "figures.json").read_text())["benchmarks"]
    one, other = (row["extra_info"]["sides"][name] for name in ("one", "other"))
    assert (one["ratio"], other["ratio"] > 0) == (None, True)
    assert other["first_step_ns"] > other["alone_ns"] > 0


def test_sides_that_differ_are_red_and_nothing_is_timed(contrasts):
    """The line says at which stage; there is no table."""
    found = contrasts(changed="loss=lambda logits, labels: 2 * squared(logits, labels)")
    found.counts(failed=1)
    found.shows("  results: loss function of other at the same logits: ")
    assert "in one process" not in found.text


def test_without_a_clock_nothing_is_timed(contrasts):
    """The results are compared, and a note says what was not done."""
    found = contrasts("--benchmark-disable")
    found.counts(passed=1)
    found.shows("  nothing was timed (--benchmark-disable)")
