"""The tables and the picture of a calibration: every cell, the width of a terminal, what is missing and why."""

from __future__ import annotations

import pytest
from support.factories import HARDWARE
from support.processes import python

from jaxgate.model import CaseCalibration, Plant
from jaxgate.report import calibration_markdown, calibration_text

LONGEST = "scan/rnn-training-over-256-steps-scan-vs-loop"


def plant(share, scaled=1.0, ratios=(1.0,), slower=0, why_not=""):
    """One size of slow-down."""
    return Plant(share=share, scaled=scaled, ratios=ratios, slower=slower, why_not=why_not)


def row(case="scan/rnn", **changes):
    """A case with round figures."""
    known = {
        "hardware": HARDWARE,
        "executables": 50,
        "alarms": 2,
        "confirmed": 1,
        "undecided": 10,
        "margin": 0.032,
        "sees": 0.058,
        "floor": 0.021,
        "ratios": (1.0, 1.021) * 25,
        "plants": (
            plant(0.03, 0.0, (1.031, 1.04, 1.02, 1.03), 0),
            plant(0.05, 0.76, (1.053,) * 10, 8),
            plant(0.10, 1.0, (1.1,) * 10, 10),
            plant(0.20, 1.0, (1.203,) * 10, 10),
        ),
        "call_ns": 832_000.0,
        "cost_s": 1.5,
        "took_s": 100.0,
    }
    return CaseCalibration(case=case, **(known | changes))


def cells(text, case):
    """The cells of the rows of a case, one list for each table."""
    return [line.split()[1:] for line in text.splitlines() if line.startswith(f"{case} ")]


def test_the_tables_hold_every_figure():
    """Counts, shares and sizes as a person reads them; real extra work beside its measured size."""
    text = calibration_text([row()], bound=0.0123, failed={})
    identical, planted = cells(text, "scan/rnn")
    assert identical == ["832", "µs", "50", "2", "1", "20%", "3.2%", "5.8%", "2.1%", "1.5", "s"]
    assert planted == ["0/0%", "(3.0%)", "76/80%", "(5.3%)", "100/100%", "(10.0%)", "100/100%", "(20.3%)"]
    head = "case call duels alarms confirmed undec. margin sees floor cost"
    assert text.splitlines()[0].split() == head.split()
    assert text.splitlines()[3].split() == ["case", "+3%", "+5%", "+10%", "+20%"]
    assert "50 duels of identical programs in 50 pairs of executables: 2 false alarms at the first stage" in text
    assert "1 confirmed" in text
    assert "below 1.23%" in text


def test_the_cost_is_a_mean_over_duels():
    """One case of 50 duels at 1.5 s, one of 10 at 4.5 s: 2 s; and what calibrating took in all."""
    few = row("scan/other", ratios=(1.0,) * 10, cost_s=4.5, took_s=1234.4)
    text = calibration_text([row(), few], bound=0.1, failed={})
    assert text.splitlines()[-1] == "A duel costs 2.0 s on average, looks allowed; calibrating took 1,334 s."


def test_it_fits_a_terminal_of_120_columns():
    """With the longest name of the catalogue and the widest figures."""
    widest = tuple(plant(share, 1.0, (1 + share,) * 10, 10) for share in (0.03, 0.10, 0.20, 0.30))
    text = calibration_text([row(LONGEST, plants=widest, call_ns=832_000_000.0)], bound=0.01, failed={})
    assert "100/100% (20.0%)" in text
    assert max(map(len, text.splitlines())) <= 120


def test_extra_work_that_is_missing_says_why():
    """A dash in the table, and one line for all sizes with one reason; duels that were run before stay."""
    plants = (
        plant(0.03, 0.2, (), 0, "the call is too short"),
        plant(0.05, 0.7, (), 0, "the call is too short"),
        plant(0.10, 0.9, (1.1, 1.1), 1, "stopped after 2 of 5: device lost"),
        plant(0.20, 1.0, (1.2,), 1),
    )
    text = calibration_text([row(plants=plants)], bound=0.1, failed={})
    assert "20% / –" in text
    assert "70% / –" in text
    assert "90/50% (10.0%)" in text
    assert text.count("the call is too short") == 1
    assert "scan/rnn, extra work of 3%, 5%: the call is too short" in text
    assert "scan/rnn, extra work of 10%: stopped after 2 of 5: device lost" in text


def test_a_case_that_failed_is_listed_beside_the_others():
    """With its reason; alone, too."""
    failed = {"scan/broken": "calibrating: it was not stored"}
    for rows in ([row()], []):
        for text in (
            calibration_text(rows, bound=1.0, failed=failed),
            calibration_markdown(rows, bound=1.0, failed=failed),
        ):
            assert "scan/broken could not be calibrated: calibrating: it was not stored" in text
            assert ("832 µs" in text) is bool(rows)


def test_markdown_has_the_same_cells():
    """Two tables with their rules, and where it was measured."""
    text = calibration_markdown([row()], bound=0.01, failed={}, surroundings=["On 2026-11-20.", "cpu-1, jax 0.12"])
    lines = text.splitlines()
    assert lines[0] == "# Calibration"
    assert "cpu-1, jax 0.12" in lines
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 6
    assert [part.strip() for part in table[2].strip("|").split("|")] == (
        ["scan/rnn", "832 µs", "50", "2", "1", "20%", "3.2%", "5.8%", "2.1%", "1.5 s"]
    )
    assert [part.strip() for part in table[5].strip("|").split("|")][2] == "76/80% (5.3%)"
    assert all(set(line) <= set("|-") for line in (table[1], table[4]))


def test_the_picture_leaves_nothing_behind():
    """A PNG that grows with the cases; no pyplot, no changed setting, and no warning, even where one is an error."""
    pytest.importorskip("matplotlib")
    import matplotlib as mpl

    from jaxgate.report import draw

    before = dict(mpl.rcParams)
    one = draw([row()], where="here")
    two = draw(
        [row(), row(LONGEST, plants=tuple(plant(0.03, 0.1, (), 0, "too short") for _ in range(4)))], where="here"
    )
    assert one.startswith(b"\x89PNG")
    heights = [int.from_bytes(png[20:24], "big") for png in (one, two)]
    assert heights[1] > heights[0] > 0
    assert dict(mpl.rcParams) == before


def test_drawing_uses_no_pyplot():
    """In a process of its own: pyplot keeps figures and a backend for the whole process."""
    pytest.importorskip("matplotlib")
    code = (
        "import sys; sys.path.insert(0, 'tests/report/commands'); sys.path.insert(0, 'tests'); from test_calibration import row\n"
        "from jaxgate.report.commands.calibration_plot import draw\n"
        "assert 'matplotlib' not in sys.modules\n"
        "draw([row()], where='here'); sys.exit('matplotlib.pyplot' in sys.modules or 'jax' in sys.modules)"
    )
    python("-c", code)
