"""Calibrating through fakes with a clock of their own, then once for real; what later runs make of its floors."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import fakes
from support.factories import PROGRAM, measurement
from support.projects import model

from jaxgate.engine.calibration import calibrate, real_duels
from jaxgate.engine.duels.duel_processes import FreshDuel, repeat_duel
from jaxgate.engine.instruments import Instruments
from jaxgate.judge import CONFIRM_COUNT, decide
from jaxgate.keep import read_job, write_duels
from jaxgate.model import InvalidCaseError, Match, RepeatOutcome, Status, StoredProgram
from jaxgate.observe.duel import NotPlantableError, Work
from jaxgate.observe.program import NotReplayableError

duel = partial(fakes.duel, pairs=60)
MODEL = model("jnp.ones((64, 64))", wave="jnp.exp(-x)")
CACHED = ("-p", "cacheprovider")  # Project.run switches it off


SAME, SLOWER = decide(duel(1.0)), decide(duel(1.3))


class Machine:
    """A machine whose compilers, duels and fresh processes are the test's."""

    def __init__(self):
        self.now_s = 0.0
        self.compile_s, self.duel_s = 0.25, 2.0
        self.identical = [duel(1.0)]
        self.planted = {steps: duel(1 + steps / 1000) for steps in (30, 50, 100, 200)}
        self.work = Work(at_rest=0.0, per_step=0.001)
        self.log, self.sides, self.launches, self.stages = [], [], [], []
        self.outcomes = [RepeatOutcome(SAME, SAME)]
        self.observed = SimpleNamespace(
            measurement=measurement(),
            export=lambda: StoredProgram(record=PROGRAM, content=b"program"),
            leaves=lambda: [1.0],
            contract="latency",
        )
        self.instruments = Instruments(
            run_duel=self.run_duel,
            repeat_duel=self.launch,
            prepare=self.prepare,
            prepare_planter=self.prepare_planter,
            measure_work=self.measure_work,
        )

    def prepare(self, program, leaves, contract):
        assert (program.content, leaves, contract) == (b"program", [1.0], "latency")
        self.now_s += self.compile_s
        self.log.append("compile")
        return f"executable {self.log.count('compile')}"

    def prepare_planter(self, program, leaves, contract):
        assert contract == "latency"
        self.log.append("planter")
        return SimpleNamespace(with_steps=lambda steps: ("planted", steps))

    def measure_work(self, plain, planter, *, platform):
        self.log.append("tune")
        if isinstance(self.work, Exception):
            raise self.work
        return self.work

    def run_duel(self, now, baseline, *, settled, max_pairs, platform):
        assert (max_pairs, platform, settled(None)) == (60, "cpu", False)
        self.now_s += self.duel_s
        self.sides.append((now, baseline))
        if isinstance(now, tuple):
            found = self.planted[now[1]]
            self.log.append(now[1])
        else:
            found = self.identical[min(self.log.count("duel"), len(self.identical) - 1)]
            self.log.append("duel")
        if isinstance(found, Exception):
            raise found
        return found

    def launch(self, rematch):
        self.launches.append(rematch)
        return self.outcomes[(len(self.launches) - 1) % len(self.outcomes)]

    def run(self, duels):
        return calibrate(
            "model/wave",
            self.observed,
            duels=duels,
            progress=self.stages.append,
            instruments=self.instruments,
            clock=lambda: self.now_s,
        )


@pytest.fixture
def machine():
    """A quiet machine on which identical programs are identical."""
    return Machine()


@pytest.mark.parametrize(("duels", "real"), [(1, 1), (3, 3), (5, 5), (20, 5), (26, 5), (51, 10), (300, 60)])
def test_extra_work_takes_fewer_duels(duels, real):
    """A fifth, five at least, and never more than of identical programs."""
    assert real_duels(duels) == real


def test_every_duel_has_executables_of_its_own(machine):
    """Two compilations for each duel, and the two sides are never one executable: their bias is in the rates."""
    row = machine.run(4)
    identical = [sides for sides in machine.sides if not isinstance(sides[0], tuple)]
    assert len({side for sides in identical for side in sides}) == 8
    assert (row.executables, row.duels) == (4, 4)


def test_slow_compilers_serve_several_duels(machine):
    """Compiling takes 2 x 3 s, a duel 2 s: anew only when the duels have taken as long as compiling did."""
    machine.compile_s = 3.0
    row = machine.run(8)
    identical = [sides for sides in machine.sides if not isinstance(sides[0], tuple)]
    assert [len(set(identical[:number])) for number in range(1, 9)] == [1, 1, 1, 2, 2, 2, 3, 3]
    assert (row.executables, row.duels) == (3, 8)


def test_the_bias_of_an_executable_reaches_the_floor(machine):
    """One pair of executables of four is 3 % apart: no alarm, and a floor of 3 %."""
    machine.identical = [duel(1.0), duel(1.0), duel(1.03), duel(1.0)]
    row = machine.run(4)
    assert (row.alarms, row.floor) == (0, pytest.approx(0.03))


def test_extra_work_is_spread_among_the_others(machine):
    """Twenty duels, five rounds of all four sizes: one after every fourth, tuned once, with executables of its own."""
    row = machine.run(20)
    rounds = [30, 50, 100, 200]
    steps = [entry for entry in machine.log if entry not in ("compile", "planter", "tune")]
    assert steps == ([*["duel"] * 4, *rounds] * 5)
    assert (machine.log.count("tune"), machine.log.count("planter")) == (1, 5)
    planted = [baseline for now, baseline in machine.sides if isinstance(now, tuple)]
    assert len(set(planted)) == 5
    assert [plant.ratios for plant in row.plants] == [
        pytest.approx((1 + share,) * 5) for share in (0.03, 0.05, 0.10, 0.20)
    ]
    assert [plant.slower for plant in row.plants] == [0, 5, 5, 5]
    assert {plant.why_not for plant in row.plants} == {""}


def test_it_says_what_it_took(machine):
    """By its own clock: compiling, duels and all; a duel costs its first 20 pairs of 60."""
    row = machine.run(2)
    assert row.cost_s == pytest.approx(2.0 / 3)
    assert row.took_s == pytest.approx(2 * (2 * 0.25 + 2.0) + 2 * (0.25 + 4 * 2.0))


@pytest.mark.parametrize(
    ("outcomes", "confirmed"),
    [
        ([RepeatOutcome(SAME, SAME)], 0),
        ([RepeatOutcome(SLOWER, SAME), RepeatOutcome(SAME, SAME)], 0),
        ([RepeatOutcome(SLOWER, SAME)], 1),
        ([RepeatOutcome(None, None, "crashed")], 1),
    ],
    ids=["at once", "the second", "both", "a crash counts"],
)
def test_a_false_alarm_is_repeated_in_fresh_processes(machine, outcomes, confirmed):
    """Without a margin of an older calibration: the rates are those of the plain procedure."""
    machine.identical, machine.outcomes = [duel(1.0), duel(1.06), duel(1.0)], outcomes
    row = machine.run(3)
    assert (row.alarms, row.confirmed) == (1, confirmed)
    assert {(rematch.own_margin, rematch.contract) for rematch in machine.launches} == {(None, "latency")}
    assert "repeating the false alarm of duel 2 in fresh processes" in machine.stages


def test_a_size_that_cannot_be_planted_says_why(machine):
    """The others are planted."""
    machine.work, machine.planted = Work(at_rest=0.0, per_step=0.05), {1: duel(1.05), 2: duel(1.1), 4: duel(1.2)}
    row = machine.run(2)
    assert [len(plant.ratios) for plant in row.plants] == [0, 2, 2, 2]
    assert "one step of extra work takes 5.0% of it" in row.plants[0].why_not


FAILURES = {
    "nothing to wait for": (NotPlantableError("it has no output"), "it has no output"),
    "it does not compile": (NotReplayableError("it is too old"), "it is too old"),
    "the device is lost": (RuntimeError("device lost"), "RuntimeError: device lost"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_extra_work_that_fails_keeps_the_rest(machine, what):
    """Duels of identical programs stay, scaled times with them; every size says why there is no more."""
    machine.work, words = FAILURES[what]
    row = machine.run(3)
    assert (row.duels, [len(plant.ratios) for plant in row.plants]) == (3, [0] * 4)
    (why_not,) = {plant.why_not for plant in row.plants}
    assert why_not.startswith(words)
    assert [plant.scaled for plant in row.plants] == [0, 1, 1, 1]
    assert machine.log.count("tune") == 1


def test_extra_work_that_fails_later_says_after_how_many(machine):
    """What was measured before stays."""
    machine.planted[100] = duel(1.1, traces=1)
    row = machine.run(5)
    assert [len(plant.ratios) for plant in row.plants] == [1, 1, 0, 0]
    assert row.plants[0].why_not.startswith("stopped after 1 of 5: expected no trace or compile while timing")
    assert row.plants[2].why_not.startswith("expected no trace or compile while timing")


def test_a_broken_duel_of_identical_programs_is_an_invalid_case(machine):
    """Not a rate of the duels that happened to work."""
    machine.identical = [duel(1.0), duel(1.0, traces=2)]
    with pytest.raises(InvalidCaseError, match="calibrating: expected no trace or compile while timing, found 2"):
        machine.run(3)


# Through pytest


def floors_of(project):
    """The file of noise floors of a project, and what is in it."""
    (path,) = (project.path / ".pytest_cache/d/jaxgate/floors").glob("*.json")
    return path, json.loads(path.read_text())


def test_a_real_calibration_from_end_to_end(project):
    """One real duel of each kind: tables, files, picture, floors. What they say is the machine's business."""
    pytest.importorskip("matplotlib")
    project.write("test_model.py", MODEL)
    result = project.run(*CACHED, "--perf-calibrate=1", "--benchmark-disable", "--perf-strict")
    assert result.code == 0
    result.counts(passed=1)
    result.shows("jaxgate: calibration", "1 duel of identical programs in 1 pair of executables: ")
    result.shows("A duel costs ", "calibrating took ", "later runs of this checkout use them here")
    result.shows("Written to perf-artifacts/calibration: calibration.json, calibration.md, calibration.png.")
    folder = project.path / "perf-artifacts/calibration"
    found = json.loads((folder / "calibration.json").read_text())
    (row,) = found["cases"]
    assert (found["schema"], found["failed"], row["case"], len(row["ratios"])) == (1, {}, "model/wave", 1)
    assert [plant["share"] for plant in row["plants"]] == [0.03, 0.05, 0.1, 0.2]
    assert all(bool(plant["ratios"]) != bool(plant["why_not"]) for plant in row["plants"])
    (environment,) = found["environments"].values()
    assert {"jax", "python"} <= set(environment)
    assert "model/wave" in (folder / "calibration.md").read_text()
    assert (folder / "calibration.png").read_bytes().startswith(b"\x89PNG")
    _, floors = floors_of(project)
    assert floors["cases"]["model/wave"]["floor"] == row["floor"]
    assert floors["environment"] == environment
    assert not (project.path / "baselines").exists()


@pytest.fixture
def calibrated(project, lab):
    """A recorded project; calibrates it, as identical programs are 5 % apart here, or as far as is said."""
    project.write("test_model.py", MODEL).record()

    def calibrate(ratio=1.05, *arguments):
        lab.calibrate(ratio)
        result = project.run(*CACHED, "--perf-calibrate=5", "--benchmark-disable", *arguments)
        lab.finds["baseline"] = duel(1.04)
        lab.launched.clear()
        return result

    lab.finds["baseline"] = duel(1.04)
    return calibrate


def judge(project, *arguments):
    """Judge another program, for which a duel is run, with pytest's cache."""
    project.edit("test_model.py", "jnp.exp(", "jnp.sin(")
    return project.run(*CACHED, "--perf-max-undecided=1", *arguments)


def test_a_later_run_uses_the_floor(project, calibrated):
    """+4 % in every pair fails without a calibration; within its floor of 5 % it is SAME, and the reason says so."""
    assert judge(project).code == 1
    project.edit("test_model.py", "jnp.sin(", "jnp.exp(")
    assert calibrated().code == 0
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


def test_a_very_noisy_floor_is_not_green(project, lab, calibrated):
    """Identical programs were 12 % apart: a duel of equals is UNDECIDED, and a strict run ends with exit code 2."""
    calibrated(1.12)
    lab.finds["baseline"] = duel(1.0)
    result = judge(project, "--perf-strict", "--perf-max-undecided=0.5")
    assert result.code == 2
    result.shows("1 case: 1 UNDECIDED", "margin is from the calibration")


def spoil(text):
    """A file that lost its end."""
    return text[:-30]


def move(text):
    """A file of another release."""
    return text.replace('"jax": "', '"jax": "0.')


def foreign(text):
    """A file of another machine under the name of this."""
    return text.replace('"devices": 1', '"devices": 8')


@pytest.mark.parametrize(
    ("damage", "words"),
    [(spoil, "Invalid JSON"), (move, "another environment (jax 0."), (foreign, "expected hardware `cpu-")],
)
def test_a_calibration_that_does_not_hold_is_one_line(project, lab, calibrated, damage, words):
    """Not applied, not a crash, not silent: the margin is that of every case, and the slow-down is red."""
    calibrated()
    path, _ = floors_of(project)
    before = path.read_text()
    path.write_text(damage(before))
    assert path.read_text() != before
    result = judge(project)
    assert result.code == 1
    told = [line for line in result.text.splitlines() if "is not used" in line]
    assert len(told) == 1
    assert words in told[0]
    assert "Calibrate again or delete it." in told[0]
    result.shows("margin 3.0%")
    assert [again.own_margin for again in lab.launched] == [None, None]


def test_an_identical_program_reads_no_floor(project, calibrated):
    """It needs no clock, and nobody is told of a file that is not needed."""
    calibrated()
    path, _ = floors_of(project)
    path.write_text("")
    result = project.run(*CACHED)
    assert result.code == 0
    assert "is not used" not in result.text


def test_a_case_that_fails_leaves_the_others(project, calibrated):
    """Its test is red with one reason; the tables and the floors of the others are written, with its name beside."""
    project.write(
        "test_other.py",
        "import jax.numpy as jnp\ndef test_nan(gate):\n    gate(lambda x: x / 0 * 0, jnp.ones(3))\n"
        "def test_bug(gate):\n    raise RuntimeError('a bug of the test')\n",
    )
    result = calibrated()
    assert result.code == 1
    result.counts(passed=1, failed=2)
    line = result.line("other/nan could not be calibrated")
    assert "expected numbers, found 3 NaN" in line
    assert "model/wave" in result.line("model/wave ")
    found = json.loads((project.path / "perf-artifacts/calibration/calibration.json").read_text())
    assert [row["case"] for row in found["cases"]] == ["model/wave"]
    assert "expected numbers" in found["failed"]["other/nan"]
    assert list(floors_of(project)[1]["cases"]) == ["model/wave"]


def test_without_matplotlib_there_is_a_line_and_no_old_picture(project, calibrated, monkeypatch):
    """What to install; an older picture does not stay beside new figures."""
    picture = project.path / "perf-artifacts/calibration/calibration.png"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"old")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = calibrated()
    assert result.code == 0
    result.shows("No plot: matplotlib is not installed; pip install 'jaxgate[plot]' brings it.")
    result.shows("Written to perf-artifacts/calibration: calibration.json, calibration.md.")
    assert not picture.exists()


def test_results_that_cannot_be_written_are_still_shown(project, lab, calibrated):
    """A file in the place of the chosen folder, and no cache: two lines, and the tables."""
    (project.path / "elsewhere").write_text("in the way")
    lab.calibrate(1.05)
    result = project.run("--perf-calibrate=5", "--benchmark-disable", "--perf-artifacts=elsewhere")
    assert result.code == 0
    result.shows("The results could not be written to elsewhere/calibration: ", "model/wave", "Planted slow-downs")
    result.shows("The noise floors were not kept for later runs: pytest's cache is switched off.")


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
