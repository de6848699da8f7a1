"""Drift, creep and steps in words: each line as a person reads it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.history_points import day, named, point, refreshes

from jaxgate.ext.history.budget import judge_drift
from jaxgate.ext.history.drift import Accepted, Creep, Drift, FactDrift, Step
from jaxgate.ext.history.text import creep_line, drift_line, fact_drift_line, step_line
from jaxgate.model.verdict import Verdict
from jaxgate.report.text import describe_finding

ACCEPTED = tuple(
    Accepted(ratio=1.008, error=0.002, date=day(number), commit=f"{commit}" + "0" * 33, within=True)
    for number, commit in enumerate(["1a2b3c4", *["0" * 7] * 10, "9f8e7d6"])
)
DRIFT = Drift(ratio=1.1, low=1.08, high=1.123, since="2026-03-02", accepted=ACCEPTED)
STEP = Step(
    quantity="time",
    ratio=1.051,
    before=None,
    after=None,
    run="7",
    moment="2026-06-01T12:00:00+00:00",
    commit="1a2b3c4d5e",
    last_before="0f9e8d7c6b",
    runs=3,
)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {},
            "0.8 % a step over the last 12 accepted refreshes: 10 % [8, 12] since 2026-03-02; each was within its tolerance "
            "(commits 1a2b3c4 … 9f8e7d6)",
        ),
        (
            {"accepted": (replace(ACCEPTED[0], within=False), replace(ACCEPTED[1], commit=None))},
            "0.8 % a step over the last 2 accepted refreshes: 10 % [8, 12] since 2026-03-02; 1 of 2 beyond the gate's margin "
            "(commit 1a2b3c4)",
        ),
        (
            {"accepted": ACCEPTED[:1], "until_baseline": True},
            "0.8 % a step over one accepted refresh: 10 % [8, 12] since 2026-03-02; each was within its tolerance "
            "(commit 1a2b3c4); today's own time is not known, this is its baseline's",
        ),
        (
            {"accepted": (), "ratio": 0.97, "low": 0.955, "high": 0.9999, "gap": "no duel holds b against a"},
            "-3 % [-4.5, 0] since 2026-03-02, against the first baseline; no duel holds b against a",
        ),
    ],
)
def test_a_drift_is_one_line(changes, line):
    """Mean step, number of refreshes, total with its interval, since when, commits; what is not known is said."""
    assert drift_line(replace(DRIFT, **changes)) == line


def test_a_fact_is_one_line():
    """First, now, ratio, moves; the environment only where it differs; no ratio from 0."""
    drift = FactDrift(name="temp_bytes", first=1_050_000, now=1_310_000, since="2026-03-02", steps=4)
    assert fact_drift_line(drift) == "temp_bytes 1.05 MB → 1.31 MB = 1.25 × in 4 steps since 2026-03-02"
    other = replace(drift, name="collectives", first=0, now=2, steps=1, environment=("jax 0.12.0 → 0.12.1",))
    assert fact_drift_line(other) == "collectives 0 → 2 in 1 step since 2026-03-02 (jax 0.12.0 → 0.12.1)"


def test_a_step_is_one_line():
    """Time by its ratio, values by both; commits where they are known."""
    assert step_line(STEP) == "time 5.1 % up on 2026-06-01 (commit 1a2b3c4, not yet in 0f9e8d7), in 3 runs since"
    assert step_line(replace(STEP, ratio=0.9, commit=None, last_before=None, runs=1)) == (
        "time 10 % down on 2026-06-01, in 1 run since"
    )
    dirty = replace(STEP, last_before=STEP.commit)
    assert "(commit 1a2b3c4, or not committed then)" in step_line(dirty)
    exact = replace(STEP, quantity="temp_bytes", before=1000.0, after=2000.0, ratio=2.0)
    assert step_line(exact).startswith("temp_bytes 1 kB → 2 kB = 2.00 × on 2026-06-01 (")


def test_creep_is_one_line():
    """Its size with the interval, from when, and that no step explains it."""
    creep = Creep(
        quantity="time",
        ratio=1.032,
        low=1.02,
        high=1.044,
        since="2026-03-02T12:00:00+00:00",
        runs=40,
        commits=("1a2b3c4d", "9f8e7d6c"),
    )
    assert creep_line(creep) == (
        "time creeps: 3.2 % [2, 4.4] in 40 runs since 2026-03-02, no single step (commits 1a2b3c4 … 9f8e7d6)"
    )


def words(*points, budget=0.1):
    """The only finding of a history, in words."""
    (finding,) = judge_drift(points, budget)
    return describe_finding(finding)


def test_findings_name_the_budget_and_what_to_do():
    assert words(*refreshes(1.1, 1.1)) == (
        "drift: 10 % a step over the last 2 accepted refreshes: 21 % [18, 24] since 2026-03-02; each was within its tolerance "
        "(commits 0101010 … 0202020), budget 10 %; accept it with a [[drift]] entry in waivers.toml"
    )
    first, second = (
        point(n, "p0", named("p0", 0), figures={"temp_bytes": v}) for n, v in ((1, 1_000_000), (2, 2_000_000))
    )
    assert words(first, second) == (
        "drift: temp_bytes 1 MB → 2 MB = 2.00 × in 1 step since 2026-03-03, allowed 1.1 MB in all; accept it with a [[drift]] "
        "entry in waivers.toml"
    )
    gap = words(first, point(3, "p1", named("p1", 2)))
    assert gap.count("no duel holds the baseline of") == 1
    assert "0 % [0, 0] since 2026-03-04, against the first baseline; no duel holds the baseline of" in gap
    beyond = words(first, point(3, "p2", named("p1", 2), 1.3))
    assert "30 % [" in beyond
    assert beyond.count("no duel holds the baseline of") == 1, (
        "what came before is unknown, also where the rest is too much"
    )
    assert words(first) == "drift: no earlier run is in the history: nothing to add up yet"


def test_a_red_drift_is_no_baselines_to_mend():
    """The commands of a red case do not offer to record it: the next run would be red again."""
    from support.factories import CASE as NAME
    from support.factories import measurement, record

    from jaxgate.judge.order import conclude
    from jaxgate.judge.verdict import judge
    from jaxgate.report.summary import why_not_acceptable
    from jaxgate.report.text import explain

    calm: Verdict = judge(NAME, (), measurement(), record(), strict=True)
    red = conclude(calm, [*calm.findings, *judge_drift(refreshes(1.1, 1.1), 0.1)], strict=True)
    text = explain(red, test="perf/test_scan.py")
    assert (red.status, red.fails) == ("REGRESSED", True)
    assert "  found     drift: 10 % a step over the last 2 accepted refreshes" in text
    assert "--perf-update" not in text
    assert why_not_acceptable(red).startswith("drift: 10 % a step")
