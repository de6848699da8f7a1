"""What a refresh accepted: the worst figure, within its tolerance or not."""

from dataclasses import replace

from support.factories import CASE, FINGERPRINTS, decision, measurement, record

from jaxgate.ext.history.budget import worst_accepted
from jaxgate.ext.history.text import accepted_figure
from jaxgate.judge.verdict import judge
from jaxgate.model.decision import Status

CHANGED = replace(FINGERPRINTS, program="p1")


def worst(facts=None, **changes):
    """The worst of a case with these facts."""
    verdict = judge(
        CASE,
        (),
        measurement(facts=facts, **({"fingerprints": CHANGED} if changes else {})),
        record(),
        strict=True,
        **changes,
    )
    return worst_accepted(verdict)


def test_nothing_worse_nothing_said():
    assert worst() is None
    assert worst({"temp_bytes": 10_000, "aliased_bytes": 20_000}) is None


def test_what_is_within_its_tolerance_is_named():
    """20 kB may become 25.1 kB at once; the log has it all the same, and of two the one that moved more."""
    found = worst({"temp_bytes": 24_000, "stablehlo_ops": 42})
    assert found is not None
    assert found.status is Status.SAME
    assert accepted_figure(found) == "temp_bytes 24 kB against 20 kB = 1.20 ×"
    less = worst({"largest_batch": 500})
    assert less is not None
    assert less.name == "largest_batch"


def test_from_nothing_is_the_most():
    """1 kB that was not there before it beside 5 % more of something."""
    found = worst({"constant_bytes": 800, "temp_bytes": 21_000})
    assert found is not None
    assert found.name == "constant_bytes"


def test_what_decided_comes_first():
    """A fact that is beyond its tolerance, though another within moved more."""
    found = worst({"output_bytes": 17_000, "temp_bytes": 24_000})
    assert found is not None
    assert (found.name, found.status) == ("output_bytes", Status.REGRESSED)


def test_time_counts_where_a_duel_speaks_of_it():
    """2.9 % slower, within the margin: SAME, and in the log; 2 % faster is not."""
    slower = worst(decision=decision(Status.SAME, ratio=1.029, now_ns=2058.0, reason="detectable slow-down 5%"))
    assert slower is not None
    assert accepted_figure(slower) == "a call takes 2.06 µs against 2 µs = 1.03 ×"
    assert worst(decision=decision(Status.SAME, ratio=0.98, now_ns=1960.0)) is None
