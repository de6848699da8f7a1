"""Energy in the terminal, in a red text and in ``results.json``: with its unit, its resolution and what was taken off."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.factories import TEST, verdict

from jaxgate.ext.energy.model import Energy, EnergyRatio, NoEnergy
from jaxgate.model.computation import Amount
from jaxgate.model.decision import Status
from jaxgate.model.outcome import Outcome
from jaxgate.model.verdict import Verdict
from jaxgate.report.results import results_json, verdict_properties
from jaxgate.report.summary import summary
from jaxgate.report.text import details, explain, in_short
from jaxgate.report.units import show

ENERGY = Energy(
    call_uj=31_200.0, resolution=0.03, idle_watts=61.5, calls=1200, run_ns=1_020_000_000, devices=1, counter="RAPL"
)
RATIO = EnergyRatio(now=replace(ENERGY, call_uj=40_000.0), baseline=replace(ENERGY, call_uj=32_000.0))
COARSE = NoEnergy(why="the counter is too coarse", counter="NVML")
NONE = NoEnergy(why="no counter of energy")
SAMPLES = Amount(count=64, unit="samples")


def line(**changes):
    """The line of a case in the list at the end of a run."""
    ((_, word, rest),) = summary([verdict(run_ns=784_000.0, **changes)], width=None)
    return word + rest


def case(one: Verdict):
    """A case in the file for machines."""
    return json.loads(results_json(Outcome(verdicts=(one,), tests={}, texts={}, exit_status=0)))["cases"][0]


@pytest.mark.parametrize(
    ("uj", "text"),
    [(0.5, "500 nJ"), (1.0, "1 µJ"), (3.44, "3.44 µJ"), (31_200, "31.2 mJ"), (2e6, "2 J"), (5e9, "5 kJ")],
)
def test_microjoules_are_shown_in_a_unit_that_fits(uj, text):
    assert show("call_uj", uj) == text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"amount": SAMPLES, "energy": ENERGY}, "784 µs, 81.6 k samples/s, 2.05 k samples/J"),
        ({"energy": ENERGY}, "784 µs, 31.2 mJ"),
    ],
)
def test_energy_stands_beside_the_time_of_a_call(changes, said):
    """By the samples where a case has an amount."""
    assert said in line(**changes)


@pytest.mark.parametrize("unknown", [None, NONE, COARSE])
def test_unknown_energy_leaves_the_line_as_it_was(unknown):
    assert line(amount=SAMPLES, energy=unknown) == line(amount=SAMPLES)


UNKNOWN = "unknown, the counter is too coarse (NVML)"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"energy": ENERGY}, ["energy: 31.2 mJ a call within 3 %, beyond 61.5 W idle (RAPL, 1,200 calls in 1.02 s)"]),
        ({"energy": replace(ENERGY, devices=8)}, ["energy: 31.2 mJ a call within 3 %, beyond 61.5 W idle (RAPL of 8 devices, 1,200 calls in 1.02 s)"]),
        ({"energy": COARSE}, [f"energy: {UNKNOWN}"]),
        ({"duel_energy": COARSE}, [f"energy beside the baseline's program: {UNKNOWN}"]),
        ({"energy": NONE, "duel_energy": NONE}, []),  # where there is no counter nobody expects an answer
    ],
)  # fmt: skip
def test_details_say_how_it_was_measured(changes, said):
    """Resolution, idle power, counter and the run; of several devices how many; or why a counter could not answer."""
    assert details(verdict(**changes)) == said


def test_a_ratio_stands_in_the_line_if_it_is_beyond_its_resolution():
    """1.25 × within 6.2 %: it is said, and that it fails nothing."""
    assert in_short(verdict(duel_energy=RATIO)).endswith("identical program · energy 1.25 × within 6.2 %, not gated")
    same = EnergyRatio(now=ENERGY, baseline=ENERGY)
    assert "energy" not in in_short(verdict(duel_energy=same))
    assert details(verdict(duel_energy=same))[0].startswith("energy beside the baseline's program: 1.00 × within 6.2 %")


def test_a_red_text_has_a_row_of_it():
    """Both sides, what was taken off, and that it is not why the case is red."""
    text = explain(verdict(Status.SLOWER, duel_energy=RATIO), test=TEST)
    assert (
        "  energy    1.25 × within 6.2 %; 40 mJ a call within 3 % against 32 mJ a call within 3 %, "
        "beyond 61.5 W idle, not gated\n"
    ) in text
    assert "energy" not in explain(verdict(Status.SLOWER, energy=ENERGY), test=TEST)


SHOWN = {
    "call_uj": 31_200.0, "per_joule": None, "resolution": 0.03, "idle_watts": 61.5, "calls": 1200, "run_ns": 1_020_000_000,
    "counter": "RAPL", "duel": None,
}  # fmt: skip
DUELLED = {"ratio": 1.25, "resolution": pytest.approx(1.03 / 0.97 - 1), "now_uj": 40_000.0, "baseline_uj": 32_000.0}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"energy": ENERGY}, SHOWN),
        ({"energy": ENERGY, "amount": SAMPLES, "duel_energy": RATIO}, SHOWN | {"per_joule": pytest.approx(64e6 / 31_200), "duel": DUELLED}),
        ({"energy": ENERGY, "duel_energy": COARSE}, SHOWN | {"duel": {"unknown": "the counter is too coarse"}}),
        ({"energy": NONE}, {"unknown": "no counter of energy"}),
        ({}, None),
    ],
)  # fmt: skip
def test_machines_read_all_of_it(changes, found):
    """Why it is unknown in the place of numbers, never 0; ``null`` where nobody asked, or no duel was run."""
    assert case(verdict(**changes))["energy"] == found


def test_properties_of_a_test_have_the_numbers():
    """For JUnit's file: left out where they are not known."""
    known = dict(verdict_properties(verdict(energy=ENERGY, duel_energy=RATIO)))
    assert (known["jaxgate.call_uj"], known["jaxgate.energy_ratio"]) == ("31200.0", "1.2500")
    assert not {"jaxgate.call_uj", "jaxgate.energy_ratio"} & dict(verdict_properties(verdict(energy=NONE))).keys()
