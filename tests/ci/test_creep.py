"""The rates of the history's judge: a small part of what ``python -m ci.creep`` measures, and that a broken judge fails it."""

from dataclasses import replace

import pytest
from support.corpora import nightly

from ci import creep
from ci.creep import time_shifts
from jaxgate.ext.history import changes

SEEDS = (0, 1)


def rows(look=time_shifts, *, every=7):
    """What becomes of some histories at normal noise, by their kind; a quiet one is looked at once a week."""

    def sparse(points):
        return look(points) if len(points) % every == 0 else changes.Shifts()

    found = {}
    for kind in creep.KINDS:
        told = tuple(creep.watch(kind, "normal", seed, look if kind == "step" else sparse) for seed in SEEDS)
        found[kind] = creep.Row(kind=kind, noise="normal", told=told)
    return found


def test_the_promises_hold_for_some_histories():
    """A creep within 12 weeks, a step within 3 runs, nothing where nothing is."""
    assert {kind: row.holds for kind, row in rows().items()} == {"quiet": True, "creep": True, "step": True}


@nightly
def test_a_judge_that_asks_for_too_much_fails(monkeypatch):
    """Ten times the threshold: nothing is found, and the rows say so."""
    monkeypatch.setattr(changes, "SURE", 10 * changes.SURE)
    found = rows()
    assert (found["creep"].holds, found["step"].holds, found["step"].in_time) == (False, False, 0)


def test_a_judge_with_its_sign_turned_fails():
    def turned(points):
        return time_shifts(
            [replace(point, ratio=1 / point.ratio, low=1 / point.high, high=1 / point.low) for point in points]
        )

    found = rows(turned)
    assert (found["creep"].holds, found["step"].holds) == (False, False)


def test_a_judge_that_alarms_at_noise_fails(monkeypatch):
    """A third of the threshold, and any move is worth a word."""
    monkeypatch.setattr(changes, "SURE", changes.SURE / 3)
    monkeypatch.setattr(changes, "LEAST_MOVE", 0.0)
    assert not rows()["quiet"].holds


@pytest.mark.parametrize("kind", creep.KINDS)
def test_histories_are_the_same_every_time(kind):
    """By kind, noise and seed; each point is a duel with the last refresh."""
    begins, points = creep.history(kind, creep.normal, 3)
    assert (begins, points) == creep.history(kind, creep.normal, 3)
    assert points != creep.history(kind, creep.double, 3)[1]
    assert len(points) == creep.RUNS
    assert points[20].baseline is not None
    assert points[20].baseline.program == points[13].program
    assert points[13].recorded == "refreshed"
