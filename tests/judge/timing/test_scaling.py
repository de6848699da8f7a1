"""Rates of a series side by side: strong and weak scaling, by hand."""

import json
from dataclasses import replace

import pytest
from support import factories
from support.factories import HARDWARE

from jaxgate.judge.timing.rates import scaling
from jaxgate.model.computation import Amount
from jaxgate.model.outcome import Outcome
from jaxgate.report.pull_request import pull_request_page
from jaxgate.report.results import results_json
from jaxgate.report.text import scaling_lines, scaling_table

GPU = replace(HARDWARE, platform="gpu", device_kind="NVIDIA H200")


def verdict(devices, count, milliseconds, series="data-parallel, weak", at=GPU, unit="samples"):
    """A case of a series."""
    return factories.verdict(
        case=f"scaling/on-{devices}",
        hardware=replace(at, devices=devices),
        run_ns=milliseconds and milliseconds * 1e6,
        amount=Amount(count=count, unit=unit, series=series),
    )


WEAK = [verdict(8, 8000, 12.5), verdict(1, 1000, 10), verdict(2, 2000, 10)]
STRONG = [verdict(n, 1000, ms, "data-parallel, strong") for n, ms in ((1, 10), (4, 5))]


def efficiencies(found):
    """Of each series, by the number of devices."""
    return {each.series: {point.devices: point.efficiency for point in each.points} for each in found}


def test_weak_and_strong_are_one_quotient():
    """As much for each device in the same time is 1; the same work in half the time on four is 0.5."""
    assert efficiencies(scaling([*WEAK, *STRONG])) == {
        "data-parallel, strong": {1: pytest.approx(1), 4: pytest.approx(0.5)},
        "data-parallel, weak": {1: pytest.approx(1), 2: pytest.approx(1), 8: pytest.approx(0.8)},
    }


def test_the_fewest_devices_are_the_measure():
    assert efficiencies(scaling([verdict(8, 8000, 12.5), verdict(2, 2000, 10)])) == {
        "data-parallel, weak": {2: pytest.approx(1), 8: pytest.approx(0.8)}
    }


@pytest.mark.parametrize(
    "verdicts",
    [
        [],
        [verdict(1, 1000, 10)],
        [verdict(1, 1000, 10), verdict(2, 2000, None)],
        [verdict(1, 1000, 10, series=""), verdict(2, 2000, 10, series="")],
        [verdict(n, 1000 * n, 10, at=HARDWARE) for n in (1, 8)],
        [verdict(1, 1000, 10), verdict(2, 2000, 10, at=replace(GPU, device_kind="NVIDIA L4"))],
        [replace(each, hardware=None) for each in WEAK],
    ],
    ids=["nothing", "one", "not timed", "no series", "virtual devices", "other chips", "unknown hardware"],
)
def test_what_cannot_be_compared_is_not(verdicts):
    assert scaling(verdicts) == ()


def test_people_see_it():
    """In the terminal a line for each series, aligned; in the summary a table."""
    found = scaling([*WEAK, *STRONG])
    assert scaling_lines(found) == [
        "data-parallel, strong  1: 100 k samples/s, 4: 200 k samples/s (50 %)",
        "data-parallel, weak    1: 100 k samples/s, 2: 200 k samples/s (100 %), 8: 640 k samples/s (80 %)",
    ]
    assert scaling_table(found)[:4] == [
        "| scaling | devices | rate | efficiency |",
        "|---|--:|--:|--:|",
        "| `data-parallel, strong` | 1 | 100 k samples/s | 100 % |",
        "| `data-parallel, strong` | 4 | 200 k samples/s | 50 % |",
    ]
    assert scaling_lines(()) == scaling_table(()) == []


def test_machines_and_the_summary_have_it():
    """The page has the table and the data every point."""
    outcome = Outcome(verdicts=tuple(STRONG), tests={}, texts={}, scaling=scaling(STRONG))
    assert "| `data-parallel, strong` | 4 | 200 k samples/s | 50 % |" in pull_request_page(outcome)
    (series,) = json.loads(results_json(outcome))["scaling"]
    assert (series["series"], series["unit"], [point["devices"] for point in series["points"]]) == (
        "data-parallel, strong",
        "samples",
        [1, 4],
    )
    assert series["points"][1]["efficiency"] == pytest.approx(0.5)
