"""What a reproduction file says of results and of the compiled text."""

import numpy as np
import pytest

from jaxgate.ext.repro.standalone import Side, compare


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        ([1.0, 2.0], [1.0, 2.0], "results: 0 of the largest value apart at most, in 1 of 1"),
        ([1.0, 2.0], [1.0, 2.5], "results: 0.25 of the largest value apart at most, in 1 of 1"),
        ([1.0, 2.0], [1.0, np.nan], "results: 1 numbers are finite on one side only; 0 of 1 results can be compared"),
        ([np.nan], [np.nan], "results: 0 numbers are finite on one side only; 0 of 1 results can be compared"),
    ],
)
def test_a_number_that_is_lost_is_no_agreement(theirs, ours, said):
    assert compare([np.array(theirs)], [np.array(ours)]) == said


@pytest.mark.parametrize(
    ("operation", "count"),
    [
        ("all-to-all(", 1), ("ragged-all-to-all(", 1), ("all-reduce-start(", 1), ("all-reduce-done(", 0),
        ("collective-permute(", 1), ("reduce-scatter(", 1), ("add(", 0),
    ],
)  # fmt: skip
def test_every_collective_counts_once(operation, count):
    class Compiled:
        def memory_analysis(self):
            return type(
                "Memory",
                (),
                dict.fromkeys([f"{kind}_size_in_bytes" for kind in ("temp", "argument", "output", "alias")], 0),
            )

        def cost_analysis(self):
            return None

        def as_text(self):
            return f"%r = f32[8] {operation}%a)"

    side = Side.__new__(Side)
    side.run, side.size = Compiled(), 1
    assert side.facts()["collectives"] == count
