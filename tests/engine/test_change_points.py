"""All that a case's history shows, from its runs to the lines that a person reads."""

from support.history_points import named, point

from jaxgate.ext.history.changes import changes_of
from jaxgate.ext.history.text import change_lines

BASELINE = named("p0", 0)


def test_everything_that_a_history_shows():
    """Exact runs, one accepted loss of 8 %, memory that grew at once, and a phase that doubled."""
    before = [
        point(number, "p0", BASELINE, figures={"temp_bytes": 1e6, "traces": 1, "compile_ns": 1e9})
        for number in range(20)
    ]
    more = {"temp_bytes": 1.2e6, "traces": 1, "compile_ns": 2e9}
    refresh = point(20, "p1", BASELINE, 1.08, recorded="refreshed", figures=more)
    after = [point(number, "p1", named("p1", 20), figures=more) for number in range(21, 25)]
    changes = changes_of([*before, refresh, *after])
    assert changes.drift is not None
    assert [one.name for one in changes.facts] == ["temp_bytes"]
    assert {step.quantity for step in changes.steps} == {"time", "temp_bytes", "compile_ns"}
    assert {step.run for step in changes.steps} == {"20"}
    assert changes.creeps == ()
    where = "on 2026-03-22 (commit 1414141, not yet in 1313131), in 5 runs since"
    assert change_lines(changes) == [
        "time: 8 % a step over one accepted refresh: 8 % [6.4, 9.6] since 2026-03-02; each was within its tolerance (commit 1414141)",
        "temp_bytes 1 MB → 1.2 MB = 1.20 × in 1 step since 2026-03-02",
        f"temp_bytes 1 MB → 1.2 MB = 1.20 × {where}",
        f"time 8 % up {where}",
        f"compile_ns 1 s → 2 s = 2.00 × {where}",
    ]
    assert change_lines(changes_of([])) == []
