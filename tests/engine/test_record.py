"""What a recording takes over from the baseline that it replaces."""

from dataclasses import replace

import pytest
from support.factories import ENVIRONMENT, FINGERPRINTS, PROGRAM, TEST, baseline, measurement, record

from jaxgate.engine.record import Candidate
from jaxgate.model.numbers import Phases
from jaxgate.model.program import StoredProgram

BEFORE = Phases(trace_ns=1, compile_ns=2_000_000_000, host_ns=5)
WARM = Phases(trace_ns=3, compile_ns=None, host_ns=4)


class Observed:
    """A case as it was observed."""

    def __init__(self, now=WARM, **changes):
        self.measurement = measurement(phases=now, **changes)

    def export_launched(self):
        """It is no plain Python."""
        return ()

    def export(self):
        """Its program."""
        return StoredProgram(record=PROGRAM, content=b"program")


def phases(known, **changes):
    """The phases that would be recorded."""
    provenance = baseline().provenance
    return Candidate.of(Observed(**changes), known, case="scan/rnn", test=TEST, provenance=provenance).baseline.phases


def test_a_compile_that_came_out_of_a_cache_keeps_the_time_of_the_cold_one():
    """Else a later compile of 2 s against 0.1 s would not be seen."""
    assert phases(record(phases=BEFORE)) == replace(WARM, compile_ns=2_000_000_000)


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprints": replace(FINGERPRINTS, program="1" * 32)},
        {"fingerprints": replace(FINGERPRINTS, options="xla_x=1")},
        {"environment": ENVIRONMENT | {"jaxlib": "0.12.0"}},
    ],
    ids=["program", "options", "environment"],
)
def test_another_program_has_no_known_time(changes):
    assert phases(record(phases=BEFORE), **changes) == WARM


def test_a_cold_compile_is_recorded_as_it_was():
    cold = replace(WARM, compile_ns=3_000_000_000)
    assert phases(record(phases=BEFORE), now=cold) == cold


@pytest.mark.parametrize("name", ["trace_ns", "dispatch_ns", "host_ns"])
def test_no_other_phase_is_taken_over(name):
    """They depend on the code around the program, which no fingerprint of the program covers: unknown stays unknown."""
    known = record(phases=replace(BEFORE, **{name: 7}))
    now = replace(WARM, **{name: None})
    assert phases(known, now=now) == replace(now, compile_ns=BEFORE.compile_ns)


def test_what_other_hardware_took_is_not_its_time():
    """A borrowed baseline says nothing of this machine's clock."""
    assert phases(record(phases=BEFORE, borrowed=True)) == WARM
    assert phases(None) == WARM
