"""Runs in which a calibration of this machine is known: what its noise floors do, and what happens to damaged ones."""

import json
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import fakes
from support.factories import PROGRAM
from support.projects import model

from jaxgate.engine.duels.duel_processes import FreshDuel, repeat_duel
from jaxgate.judge.timing.duel import CONFIRM_COUNT
from jaxgate.keep.cache import FloorStore
from jaxgate.keep.duel_handoff import read_job, write_duels
from jaxgate.model.calibration import NoiseFloor
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.program import Match, StoredProgram

duel = partial(fakes.duel, pairs=60)
CACHED = ("-p", "cacheprovider")  # Project.run switches it off


@pytest.fixture
def calibrated(project, lab):
    """A recorded project; keeps the floor of its case, and gives the file."""
    project.write("test_model.py", model("jnp.ones((64, 64))", wave="jnp.exp(-x)")).record()
    lab.finds["baseline"] = duel(1.04)

    def calibrate(floor=0.05):
        (path,) = project.path.glob("baselines/*/model/wave.json")
        stored = json.loads(path.read_text())
        store = FloorStore(project.path / ".pytest_cache/d/jaxgate/floors")
        floors = {"model/wave": NoiseFloor(floor=floor, duels=5, date="2026-11-20")}
        return store.save(HardwareKey(**stored["hardware"]), stored["environment"], floors)

    return calibrate


def judge(project, *arguments):
    """Judge another program, for which a duel is run, with pytest's cache."""
    project.edit("test_model.py", "jnp.exp(", "jnp.sin(")
    return project.run(*CACHED, "--perf-max-undecided=1", *arguments)


def test_a_later_run_uses_the_floor(project, calibrated):
    """+4 % in every pair fails without a calibration; within its floor of 5 % it is SAME, and the reason says so."""
    assert judge(project).code == 1
    project.edit("test_model.py", "jnp.sin(", "jnp.exp(")
    calibrated()
    result = judge(project)
    assert result.code == 0
    line = result.line("SAME  model/wave")
    assert "the margin is from the calibration of 20" in line
    assert "identical programs differed by up to 5.0% in 5 duels" in line


def test_a_slow_down_beyond_the_floor_is_confirmed_by_the_same_margin(project, lab, calibrated):
    """+30 %: the fresh processes are told the margin."""
    calibrated()
    lab.finds["baseline"] = duel(1.3)
    result = judge(project)
    assert result.code == 1
    result.shows("SLOWER  model/wave", "margin 5.0%", "more than 5.0% slower", "the margin is from the calibration")
    assert [again.own_margin for again in lab.launched] == [pytest.approx(0.05)] * 2


def test_a_calibration_that_does_not_hold_is_one_line(project, lab, calibrated):
    """Not applied, not a crash, not silent: the margin is that of every case, and the slow-down is red."""
    path = calibrated()
    before = path.read_text()
    path.write_text(before.replace('"jax": "', '"jax": "0.'))  # a file of another release
    assert path.read_text() != before
    result = judge(project)
    assert result.code == 1
    told = [line for line in result.text.splitlines() if "is not used" in line]
    assert len(told) == 1
    assert "another environment (jax 0." in told[0]
    assert "Calibrate again or delete it." in told[0]
    result.shows("margin 3.0%")
    assert [again.own_margin for again in lab.launched] == [None, None]


def test_an_identical_program_reads_no_floor(project, calibrated):
    """It needs no clock, and nobody is told of a file that is not needed."""
    path = calibrated()
    path.write_text("")
    result = project.run(*CACHED)
    assert result.code == 0
    assert "is not used" not in result.text


# Fresh processes


@pytest.mark.parametrize(("own", "status"), [(None, Status.SLOWER), (0.05, Status.SAME), (0.12, Status.UNDECIDED)])
def test_fresh_processes_judge_by_the_margin_of_the_case(monkeypatch, own, status):
    """Case and control, 4 % apart in 60 pairs: beyond 3 %, within 5 %, and never green with 12 %."""

    def child(command, **_):
        folder = Path(command[-1])
        assert read_job(folder).about["platform"] == "cpu"
        write_duels(folder, {"case": duel(1.04), "control": duel(1.04)})
        return SimpleNamespace(stdout="", stderr="", returncode=0)

    monkeypatch.setattr(subprocess, "run", child)
    program = StoredProgram(record=PROGRAM, content=b"x")
    outcome = repeat_duel(FreshDuel([Match(now=program, baseline=program, leaves=[])], "cpu", own_margin=own))
    assert CONFIRM_COUNT == 41
    assert outcome.problem == ""
    assert (outcome.case.status, outcome.control.status) == (status, status)
