"""The estimate as people read it: never a time where nothing is known, never a bound that is not sure."""

import json

import pytest
from support.factories import verdict

from jaxgate.ext.profile.model import Capture
from jaxgate.model.outcome import Outcome
from jaxgate.model.roofline import Roofline
from jaxgate.report.case_page import report
from jaxgate.report.results import results_json
from jaxgate.report.text import roofline_line


def estimate(compute, memory, communication, /, **unknown):
    """Times in milliseconds, and why they may be longer."""
    times = {"compute": compute * 1e6, "memory": memory * 1e6, "communication": communication * 1e6}
    return Roofline(times_ns=times, unknown=unknown)


NOW = estimate(0.4, 1.2, 0.1)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (NOW, "at least 1.2 ms, bound by memory (compute 400 µs, memory 1.2 ms, communication 100 µs)"),
        (estimate(2, 1.2, 0), "at least 2 ms, bound by compute (compute 2 ms, memory 1.2 ms, communication none)"),
        (
            estimate(0, 1.2, 0, compute="a kernel is opaque"),
            "at least 1.2 ms (compute unknown, memory 1.2 ms, communication none)",
        ),
        (
            estimate(2, 1.2, 0, compute="a kernel is opaque"),
            "at least 2 ms, bound by compute (compute 2 ms or more, memory 1.2 ms, communication none)",
        ),
        (
            estimate(0, 0, 0, compute="it is opaque", memory="it is opaque"),
            "least time unknown (compute unknown, memory unknown, communication none)",
        ),
        (estimate(0, 0, 0), "next to nothing (compute none, memory none, communication none)"),
    ],
)
def test_a_line(found, text):
    """What needs most, whether it is the bound, and each resource: unknown is not none."""
    assert roofline_line(found) == text


def page(**changes):
    """The page of a red case."""
    return report(verdict(**changes), None, None, "REGRESSED", [], logdir="perf-artifacts")


def test_the_page_has_both_sides():
    """The baseline's beside today's, and why a resource may need more."""
    before = estimate(0.4, 0.6, 0.1, compute="a loop of unknown length counts once")
    text = page(roofline=NOW, capture=Capture(folder="", rooflines={"baseline": before}))
    assert "## Least time of a call, estimated" in text
    assert "| | baseline | now |\n|---|--:|--:|\n| compute | 400 µs or more | 400 µs |\n" in text
    assert (
        "| memory | 600 µs | 1.2 ms |\n| communication | 100 µs | 100 µs |\n| bound by | not known | memory |" in text
    )
    assert "compute of baseline: a loop of unknown length counts once" in text


def test_a_page_without_one_says_nothing():
    assert "estimated" not in page()
    assert "| | now |\n" in page(roofline=NOW)


def test_the_file_for_machines_has_it():
    def case(**changes):
        outcome = Outcome(verdicts=(verdict(**changes),), tests={}, texts={}, exit_status=0)
        return json.loads(results_json(outcome))["cases"][0]["roofline"]

    assert case() is None
    assert case(roofline=estimate(2, 1.2, 0, memory="it is opaque")) == {
        "least_ns": 2e6,
        "bound_by": None,
        "compute_ns": 2e6,
        "memory_ns": 1.2e6,
        "communication_ns": 0.0,
        "unknown": {"memory": "it is opaque"},
    }
