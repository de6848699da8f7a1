"""A plan as a person reads it: aligned, estimates marked, nothing unknown counted as nothing."""

import pytest

from jaxgate.model.workload import Prediction
from jaxgate.report.plan import plan_table

KNOWN = Prediction(test="t.py::known", unchanged_s=1.25, changed_s=2.5)
FIRST = Prediction(test="t.py::no_duel_yet", unchanged_s=0.75, changed_s=3.0, changed_estimated=True)
STORED = Prediction(
    test="t.py::stored", unchanged_s=10.0, changed_s=140.0, unchanged_estimated=True, changed_estimated=True
)
HALF = Prediction(test="t.py::half", unchanged_s=0.01)
UNKNOWN = Prediction(test="t.py::new")


def test_the_whole_table():
    """One row for each test, the totals with what they leave out, and what the marks mean."""
    assert plan_table([KNOWN, FIRST, STORED, HALF, UNKNOWN]).splitlines() == [
        "unchanged   changed  test",
        "    1.2 s     2.5 s  t.py::known",
        "    0.8 s    ~3.0 s  t.py::no_duel_yet",
        "  ~10.0 s  ~2.3 min  t.py::stored",
        "   <0.1 s   unknown  t.py::half",
        "  unknown   unknown  t.py::new",
        "  ~12.0 s  ~2.4 min  total, without 1 unknown unchanged and 2 unknown changed",
        "changed: with a duel of each program; a slow-down adds fresh processes to that.",
        "~: worked out from a stored baseline, which does not know what a reference costs; a duel at its longest.",
        "unknown: not run here yet, and no stored baseline says.",
    ]


def test_what_is_known_needs_no_marks():
    """No estimate, nothing unknown: no legend of either; of one column that lacks something that one is named."""
    assert "total, without 1 unknown changed" in plan_table([KNOWN, HALF])
    assert plan_table([KNOWN, KNOWN]).splitlines()[-2:] == [
        "    2.5 s    5.0 s  total",
        "changed: with a duel of each program; a slow-down adds fresh processes to that.",
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_a_total_of_nothing_known_is_unknown(count):
    table = plan_table([UNKNOWN] * count)
    assert f"  unknown  unknown  total, without {count} unknown" in table
    assert "0.0 s" not in table
