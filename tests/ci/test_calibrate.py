"""``python -m ci.calibrate``: through fakes with a clock of their own, then once for real."""

import json
import os
import sys
from functools import partial
from types import SimpleNamespace

import pytest
from support import fakes
from support.corpora import nightly
from support.factories import PROGRAM, measurement
from support.projects import model

from ci.calibrate import __main__ as command
from ci.calibrate import duels
from ci.calibrate.duels import calibrate, real_duels
from ci.calibrate.extra_work import NotPlantableError, Work
from jaxgate.engine.instruments import Instruments
from jaxgate.judge.timing.duel import decide
from jaxgate.model.duel import RepeatOutcome
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.program import StoredProgram
from jaxgate.observe.program.export import NotReplayableError

duel = partial(fakes.duel, pairs=60)
MODEL = model("jnp.ones((64, 64))", wave="jnp.exp(-x)")
CALIBRATE = (
    "-p",
    "ci.calibrate.plugin",
    "--benchmark-disable",
    "-p",
    "cacheprovider",
)  # Project.run switches the cache off


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
        self.instruments = Instruments(run_duel=self.run_duel, repeat_duel=self.launch, prepare=self.prepare)

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

    def run(self, count):
        return calibrate(
            "model/wave",
            self.observed,
            duels=count,
            progress=self.stages.append,
            instruments=self.instruments,
            clock=lambda: self.now_s,
        )


@pytest.fixture
def machine(monkeypatch):
    """A quiet machine on which identical programs are identical."""
    found = Machine()
    monkeypatch.setattr(duels, "prepare_planter", found.prepare_planter)
    monkeypatch.setattr(duels, "measure_work", found.measure_work)
    return found


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


def test_the_suite_is_the_default(monkeypatch, tmp_path):
    """All arguments are pytest's, in their order; the folder perf is run where none of them is a path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "perf").mkdir()
    seen = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: seen.append((path, arguments)))
    command.main(["--duels", "7", "-k", "scan"])
    own = [sys.executable, "-m", "pytest", "-p", "ci.calibrate.plugin", "--benchmark-disable"]
    assert seen == [(sys.executable, [*own, "perf", "--duels", "7", "-k", "scan"])]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--duels=0", "expected a number of duels, 1 or more, found '0'"),
        ("--duels=many", "expected a number of duels, 1 or more, found 'many'"),
        ("--perf-update", "judges nothing; drop the other --perf- option"),
        ("-n2", "one process after the other; drop -n"),
    ],
)
def test_what_makes_no_sense_is_refused(project, option, said):
    project.write("test_model.py", MODEL)
    result = project.run(*CALIBRATE, option)
    assert result.code == 4
    result.shows(said)


@nightly
def test_a_real_calibration_from_end_to_end(project):
    """One real duel of each kind: tables, files, floors; what an earlier run left stays. What they say is the machine's business."""
    project.write("test_model.py", MODEL)
    project.write("perf-artifacts/.jaxgate", "{}")
    result = project.run(*CALIBRATE, "--duels=1", "--perf-strict")
    assert result.code == 0
    result.counts(passed=1)
    result.shows("jaxgate: calibration", "1 duel of identical programs in 1 pair of executables: ")
    result.shows("A duel costs ", "calibrating took ", "later runs of this checkout use them here")
    result.shows("Written to build/calibration: calibration.json, calibration.md.")
    found = json.loads((project.path / "build/calibration/calibration.json").read_text())
    (row,) = found["cases"]
    assert (found["failed"], row["case"], len(row["ratios"])) == ({}, "model/wave", 1)
    assert [plant["share"] for plant in row["plants"]] == [0.03, 0.05, 0.1, 0.2]
    assert all(bool(plant["ratios"]) != bool(plant["why_not"]) for plant in row["plants"])
    (environment,) = found["environments"].values()
    assert {"jax", "python"} <= set(environment)
    assert "model/wave" in (project.path / "build/calibration/calibration.md").read_text()
    assert floors_of(project)["cases"]["model/wave"]["floor"] == row["floor"]
    assert floors_of(project)["environment"] == environment
    assert sorted(path.name for path in project.path.iterdir() if not path.name.startswith((".", "_"))) == (
        ["build", "perf-artifacts", "pyproject.toml", "test_model.py"]
    )


def floors_of(project):
    """What is kept for later runs."""
    (path,) = (project.path / ".pytest_cache/d/jaxgate/floors").glob("*.json")
    return json.loads(path.read_text())


@pytest.fixture
def nothing_planted(lab, monkeypatch):
    """Identical programs are 5 % apart, and nothing can be planted."""
    lab.finds["baseline"] = duel(1.05)
    monkeypatch.setattr(duels, "prepare_planter", lambda *_: (_ for _ in ()).throw(NotPlantableError("not asked for")))


@pytest.mark.usefixtures("nothing_planted")
def test_a_case_that_fails_leaves_the_others(project):
    """Its test is red with one reason; the tables and the floors of the others are written, with its name beside."""
    project.write("test_model.py", MODEL)
    project.write(
        "test_other.py",
        "import jax.numpy as jnp\ndef test_nan(gate):\n    gate(lambda x: x / 0 * 0, jnp.ones(3))\n"
        "def test_bug(gate):\n    raise RuntimeError('a bug of the test')\n"
        "def test_plain(gate):\n    gate(lambda x: jnp.sin(x) + 1, jnp.ones(3), eager=True)\n"
        "def test_far(gate):\n    gate(lambda x: x + 1, jnp.ones(3), targets=['tpu:v5e:1x1'])\n",
    )
    result = project.run(*CALIBRATE, "--duels=5", "--into=elsewhere")
    assert result.code == 1
    result.counts(passed=1, failed=3, skipped=1)
    assert "expected numbers, found 3 NaN" in result.line("other/nan could not be calibrated")
    result.shows("other/plain could not be calibrated: ", "plain Python around jitted calls cannot be stored")
    found = json.loads((project.path / "elsewhere/calibration.json").read_text())
    assert [row["case"] for row in found["cases"]] == ["model/wave"]
    assert "expected numbers" in found["failed"]["other/nan"]
    assert list(floors_of(project)["cases"]) == ["model/wave"]


@pytest.mark.usefixtures("nothing_planted")
def test_results_that_cannot_be_written_are_still_shown(project):
    """A file in the place of the chosen folder, and no cache: two lines, and the tables."""
    project.write("test_model.py", MODEL)
    project.write("elsewhere", "in the way")
    result = project.run(*CALIBRATE[:-2], "--duels=5", "--into=elsewhere")
    assert result.code == 0
    result.shows("Not all could be written: ", "elsewhere: File exists", "model/wave", "Planted slow-downs")
    result.shows("The noise floors were not kept for later runs: pytest's cache is switched off.")
