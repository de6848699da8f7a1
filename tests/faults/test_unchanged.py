"""Programs that only look different: none may alarm."""

from dataclasses import replace

import pytest
from support.corpora import one_of

from tests.faults.model import Control
from tests.faults.programs import FAULTS, controls
from tests.faults.programs.rewrites import REWRITES

CONTROLS = tuple(controls(quick=True))


@pytest.mark.parametrize("control", one_of(CONTROLS, 6))
def test_an_unchanged_program_does_not_alarm(bench, control):
    """Renamed, reordered, reformatted and differently spelled programs are left alone."""
    outcome = bench.leave(control)
    assert outcome.caught, outcome


def test_every_change_is_tried():
    """On at least 200 programs together, and none is listed without ever applying."""
    assert len(CONTROLS) >= 200
    assert {control.name for control in CONTROLS} == set(REWRITES)


def test_a_real_change_would_alarm(bench):
    """The check of unchanged programs sees a change: a fault run through it is an alarm with its fact."""
    fault = next(fault for fault in FAULTS if fault.name == "all logits are returned beside the classes")
    outcome = bench.leave(Control(name="changed", case=fault.case, source=fault.planted()))
    assert not outcome.caught
    assert outcome.moved == ("output_bytes",)
    assert "REGRESSED output_bytes" in outcome.why


def test_a_program_left_as_it_is_counts_for_nothing(bench):
    """A change that does not change the text is an error: it would only pad the score."""
    control = Control(name="nothing", case="low_rank", source="")
    with pytest.raises(ValueError, match=r"nothing leaves low_rank\.py as it is"):
        bench.leave(replace(control, source=control.path.read_text()))
