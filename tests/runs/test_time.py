"""Time through the real plugin: a program that is slower with the same facts is duelled, repeated, and then red."""

import json
import xml.etree.ElementTree as ET

import pytest
from support.fakes import duel
from support.lines import line_here

from jaxgate.judge.timing.duel import decide
from jaxgate.model.duel import RepeatOutcome

MODEL = """
import jax.numpy as jnp
import pytest

def wave(x):
    for _ in range(4):
        x = jnp.exp(-x)
    return x

def test_wave(gate):
    gate(wave, jnp.ones((SIZE, SIZE)))
"""
LOOP = """
import jax, jax.numpy as jnp

def loop(n, x):
    return jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5), (0, x))[1]

def test_loop(gate):
    gate(loop, jnp.int32(3), jnp.ones(8))
"""
EXP, SIN = "jnp.exp(-x)", "jnp.sin(-x)"
SLOWER = decide(duel(1.3, 60))
FIRED = RepeatOutcome(SLOWER, SLOWER)
STRICT = ["--perf-strict", "--perf-max-undecided=1"]  # the share of UNDECIDED is not what these tests are about


@pytest.fixture
def slower(project, lab):
    """A case that was recorded with exp and is sin now: 1.3 times as slow here, and in fresh processes."""

    def change(*extra):
        project.write("test_model.py", MODEL.replace("SIZE", "8") + "".join(extra)).record()
        assert (lab.duelled, lab.launched) == ([], [])
        project.edit("test_model.py", EXP, SIN)

    lab.finds["baseline"] = duel(1.3)
    return change


class Junit:
    """The junit file of a run: counts, what each test holds beside its properties, and the verdicts among those."""

    def __init__(self, project):
        self.suite = ET.parse(project.path / "junit.xml").getroot().find("testsuite")
        self.children = [[c.tag for c in case if c.tag != "properties"] for case in self.suite.iter("testcase")]
        found = self.suite.iter("property")
        self.statuses = [each.get("value") for each in found if each.get("name") == "jaxgate.status"]


JUNIT = "--junitxml=junit.xml"


@pytest.mark.parametrize("also", [False, True], ids=["alone", "with another operation"])
def test_a_constant_that_makes_a_loop_turn_more_is_the_culprit(project, lab, also):
    """No fact moves; the one line of the difference is the first clause, unless another operation came with it."""
    project.write("test_model.py", LOOP.replace("n, x):", "x, n=20):").replace("jnp.int32(3), ", "")).record()
    lab.finds["baseline"], lab.processes = duel(1.3), [1.3, 1.3]
    project.edit("test_model.py", "n=20", "n=100")
    if also:
        project.edit("test_model.py", "c[1] * 0.5", "c[1] / 0.5")
    result = project.run()
    assert result.code == 1
    constant = "culprit   a constant changed: 20 → 100; all operations are as before, loops may take other turns"
    assert (constant in result.text) is not also


def test_a_slow_down_is_told_once_under_ci(slower, project, lab, monkeypatch):
    """Its text stands where failures are shown; pytest's summary, which has no limit there, has its first line."""
    monkeypatch.setenv("CI", "true")
    slower()
    lab.processes = [1.3, 1.3]
    text = project.run("--perf-max-undecided=1").text
    assert text.count("next      reproduce: pytest") == 1
    assert text.splitlines()[-2].startswith("FAILED test_model.py::test_wave - SLOWER  model/wave  on ")


def test_a_real_slow_down_is_repeated_in_a_real_process(long_duels, project):
    """From exp to tan, 300x300, four times: eight times as slow and no fact moves; suspect first, then red with its culprit."""
    project.instruments["processes"] = 1  # 5 s each; the others need no clock
    project.write("test_model.py", MODEL.replace("SIZE", "300")).record()
    project.edit("test_model.py", EXP, "jnp.tan(-x)")
    result = project.run("-v")
    assert result.code == 1
    result.counts(failed=1)
    result.shows("test_model.py::test_wave SUSPECT", "test_model.py::test_wave FAILED")
    result.shows(
        "SLOWER  model/wave",
        "pairs were more than",
        "in fresh processes",
        "stablehlo.tan 300x300xf32 0 → 4",
        "1 SLOWER",
    )


SCAN = """
import jax, jax.numpy as jnp

def body(state, x):
    state = jnp.tanh(state @ x)
    return state, state.sum()

def step(state, xs):
    return jax.lax.scan(body, state, xs)

def test_step(gate):
    gate(step, jnp.ones((200, 200)), jnp.ones((8, 200, 200)), donate="state")
"""


def test_a_larger_body_is_slower_than_a_baseline_of_other_hardware(long_duels, project):
    """Recorded on another processor, replayed here: six times the work is SLOWER by duel, and its facts REGRESSED."""
    project.write("test_model.py", SCAN).record()
    (path,) = (project.path / "baselines").glob("cpu-*/model/step.json")
    content = json.loads(path.read_text())
    content["hardware"]["device_kind"] = "Another Processor"
    path.write_text(json.dumps(content))
    path.parents[1].rename(project.path / "baselines" / f"cpu-another-processor-1-jax-{line_here()}")
    assert "hardware changed" in project.run("--perf-budget", "0").line("UNDECIDED  model/step")

    work = "    state = jnp.tanh(state @ x)\n"
    project.edit("test_model.py", work, 6 * work)
    result = project.run()
    assert result.code == 1
    result.counts(failed=1)
    result.shows("REGRESSED  model/step", "matmul_flops 768 MFLOP against 128 MFLOP = 6.00 ×")
    time = result.line("  time")
    assert "time      SLOWER: " in time
    assert "pairs were more than" in time
    assert "program and hardware changed" in time
    assert f", borrowed from cpu-another-processor-1-jax-{line_here()})" in result.line("  baseline")
    assert "hardware cpu-another-processor-1 → cpu-" in result.line("  baseline")
    assert "at test_model.py:" in result.line("  culprit")


def test_junit_has_one_red_test(project, slower):
    """A reader of the junit file sees one test, failed; no green twin of it from before the confirmation."""
    slower()
    project.run(JUNIT)
    assert {name: Junit(project).suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "1",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    assert Junit(project).children == [["failure"]]
    assert Junit(project).statuses == ["SLOWER"]
    assert "SLOWER  model/wave" in next(Junit(project).suite.iter("failure")).text


@pytest.mark.parametrize("processes", [[1.0], [1.3, 1.0]], ids=["at once", "the second time"])
def test_a_slow_down_that_does_not_come_again_passes(project, lab, slower, processes):
    """UNDECIDED, said so, and green; also where strict."""
    slower()
    lab.processes = processes
    result = project.run("-v", *STRICT, "--benchmark-json=out.json", JUNIT)
    assert result.code == 0
    result.counts(passed=1)
    assert len(lab.launched) == len(processes)
    result.shows("test_model.py::test_wave SUSPECT", "test_model.py::test_wave PASSED", "1 case: 1 UNDECIDED")
    assert "was not confirmed by fresh process" in result.line("UNDECIDED  model/wave")
    (row,) = json.loads((project.path / "out.json").read_text())["benchmarks"]
    assert row["extra_info"]["verdict"] == "UNDECIDED"
    junit = Junit(project)
    assert (junit.suite.get("tests"), junit.suite.get("failures"), junit.children) == ("1", "0", [[]])


AFTER = """
def test_after(gate):
    gate(wave, jnp.ones((8, 8)))
    THEN
"""


MANY = """
@pytest.mark.parametrize("number", range(COUNT))
def test_many(gate, number):
    gate(wave, jnp.ones((8, 8)))
"""


OTHER_FAULTS = {
    "a test": "def test_other():\n    assert 1 == 2\n",
    "a gate": "def test_other(gate):\n    gate(lambda x: x * float('nan'), 1.0)\n",
    "a gate that is never called": "def test_other(gate):\n    pass\n",
    "a fixture's setup": "import pytest\n@pytest.fixture\ndef bad():\n    assert 1 == 2\ndef test_other(bad):\n    pass\n",
    "a fixture's end": "import pytest\n@pytest.fixture\ndef bad():\n    yield\n    assert 1 == 2\n"
    "def test_other(bad):\n    pass\n",
}


@pytest.mark.parametrize("fault", OTHER_FAULTS)
def test_any_other_failure_is_not_the_machines(project, lab, slower, fault):
    """One test that fails for a reason of its own: exit code 1, and no line that blames the machine alone."""
    slower()
    lab.processes = [FIRED]
    (project.path / "test_other.py").write_text(OTHER_FAULTS[fault])
    result = project.run()
    assert result.code == 1
    result.shows("the machine is the suspect")
    assert "none for another reason" not in result.text


@pytest.mark.parametrize("then", ["assert 1 == 2", "request.addfinalizer(lambda: 1 / 0)"])
def test_an_accused_test_that_fails_by_itself_is_not_the_machines(project, lab, slower, then):
    """Its own assertion or its own end: exit code 1."""
    slower(AFTER.replace("gate)", "gate, request)").replace("THEN", "pass"))
    project.edit("test_model.py", "    pass\n", f"    {then}\n")
    lab.processes = [FIRED]
    result = project.run()
    assert result.code == 1
    assert "none for another reason" not in result.text


def test_an_error_of_the_collection_is_not_the_machines(project, lab, slower):
    """A file that cannot be imported is red, whatever else the machine did."""
    slower()
    lab.processes = [FIRED]
    (project.path / "test_other.py").write_text("import no_such_module\n")
    result = project.run("--continue-on-collection-errors")
    assert result.code == 1
    assert "none for another reason" not in result.text


@pytest.mark.parametrize(("mode", "code"), [("--perf-strict", 1), ("--no-perf-strict", 2)])
def test_an_orphan_beside_it_is_not_the_machines(project, lab, slower, mode, code):
    """Where orphans fail the run they still do, with exit code 1."""
    slower("\ndef test_gone(gate):\n    gate(wave, jnp.ones(3))\n")
    project.edit("test_model.py", "\ndef test_gone(gate):\n    gate(wave, jnp.ones(3))\n", "")
    lab.processes = [FIRED]
    result = project.run(mode, "--perf-max-undecided=1")
    assert result.code == code
    result.shows("ORPHAN")


def test_many_slow_downs_that_come_again_are_the_codes(project, lab, slower):
    """Something that they share: the controls of the largest are quiet, and every case is confirmed by itself."""
    slower(MANY.replace("COUNT", "7"))
    result = project.run()
    result.counts(failed=8)
    assert (result.code, len(lab.launched)) == (1, 16)
    result.shows("8 cases: 8 SLOWER")


def test_many_slow_downs_that_do_not_come_again_are_the_machines(project, lab, slower):
    """Of the largest none did: three are UNDECIDED, and nothing is known of the others."""
    slower(MANY.replace("COUNT", "7"))
    lab.processes = [1.0]
    result = project.run()
    assert (result.code, len(lab.launched)) == (2, 3)
    result.shows("8 cases: 3 UNDECIDED, 5 INVALID")


def test_without_the_clock_too_facts_are_compared_here(project, lab, slower):
    """A baseline of another environment is compiled here first: what only a release moved is nobody's change."""
    slower()
    (path,) = (project.path / "baselines").glob("*/*/wave.json")
    stored = json.loads(path.read_text())
    stored["environment"]["jaxlib"] = "0.0.1"
    stored["facts"]["xla_flops"] //= 2
    path.write_text(json.dumps(stored))
    result = project.run("--benchmark-disable")
    assert (result.code, len(lab.duelled)) == (0, 0)
    result.shows("1 case: 1 UNDECIDED")


def test_a_program_that_is_not_slower_passes(project, lab, slower):
    """SAME says what would have shown; no process is started."""
    slower()
    lab.finds["baseline"] = duel(1.0)
    result = project.run(JUNIT, *STRICT)
    assert (result.code, len(lab.duelled), len(lab.launched)) == (0, 1, 0)
    result.counts(passed=1)
    assert "1.00 × the baseline" in result.line("SAME  model/wave")
    assert "detectable slow-down 3.0%" in result.line("SAME  model/wave")
    assert Junit(project).children == [[]]


@pytest.mark.parametrize(
    ("finds", "reason"),
    [
        (duel(1.3, traces=1), "expected no trace or compile while timing, found 1"),
        (duel(-1.0), "the clock cannot be trusted"),
    ],
    ids=["traces", "clock"],
)
def test_a_duel_that_cannot_be_right_is_invalid(project, lab, slower, finds, reason):
    """A retrace while timing, or a clock that goes back: INVALID and red, never green and merely not judged."""
    slower()
    lab.finds["baseline"] = finds
    result = project.run()
    assert result.code == 1
    result.counts(failed=1)
    result.shows("INVALID  model/wave", reason)


def test_a_duel_that_breaks_says_so(project, lab, slower):
    """Two programs may not fit into memory together: facts are judged, time is not, and the line says why."""
    slower()
    lab.finds["baseline"] = RuntimeError("RESOURCE_EXHAUSTED: out of memory")
    result = project.run()
    result.counts(passed=1)
    assert "the duel failed: out of memory: RESOURCE_EXHAUSTED" in result.line("UNDECIDED  model/wave")


@pytest.mark.parametrize(
    "damage", [lambda file: file.write_bytes(b"cut"), lambda file: file.unlink()], ids=["damaged", "gone"]
)
def test_a_baseline_that_lost_its_program_is_not_green_under_ci(project, slower, damage):
    """The baseline says that its program was stored: without it no slow-down is ever seen again."""
    slower()
    (file,) = (project.path / "baselines" / "programs").iterdir()
    damage(file)
    result = project.run(*STRICT)
    assert result.code == 1
    result.shows("missing or damaged", file.name)


@pytest.mark.parametrize("then", ["assert 1 == 2, 'of its own'", "pytest.skip('no more')", "pytest.xfail('no more')"])
def test_a_suspect_that_does_not_end_well_does_not_end_the_session(project, slower, then):
    """What a test does after its gate neither hides its slow-down nor the other tests; nothing is an internal error."""
    slower(AFTER.replace("THEN", "pass"))
    project.edit("test_model.py", "    pass\n", f"    {then}\n")
    result = project.run()
    assert result.code == 1
    result.counts(failed=2)
    result.shows("2 cases: 2 SLOWER")
    assert "INTERNALERROR" not in result.text
    assert ("of its own" in result.text) is ("assert" in then)


def test_another_red_test_stays_red(project, lab, slower):
    slower("\ndef test_green():\n    pass\n")
    (project.path / "test_other.py").write_text("def test_other():\n    assert 1 == 2\n")
    lab.processes = [1.0]
    result = project.run()
    assert result.code == 1
    result.counts(passed=2, failed=1)


def test_stopping_early_does_not_hide_a_suspect(project, slower):
    """-x after another test failed: red, and the suspect is counted as not judged."""
    slower()
    (project.path / "test_other.py").write_text("def test_other():\n    assert 1 == 2\n")
    result = project.run("-x")
    assert result.code == 1
    result.shows("jaxgate: 1 of 1 gates was not judged")


def test_recording_again_accepts_the_slow_down(project, lab, slower):
    """--perf-update takes the new program for the baseline, after one duel; it is identical from then on."""
    slower()
    assert project.run("--perf-update").code == 0
    assert (len(lab.duelled), len(lab.launched)) == (1, 0)
    assert project.run().line("SAME").endswith("identical program")


@pytest.mark.parametrize("contract", ["throughput", "latency"])
def test_a_duel_keeps_the_contract_of_its_case(project, lab, contract):
    """Here and in the fresh processes: latency is not judged by calls that may overlap."""
    asked = []
    lab.instruments.update(
        run_duel=lambda now, old, **_: asked.append(now) or duel(1.3),
        repeat_duel=lambda again: asked.append(again) or RepeatOutcome(SLOWER, decide(duel(1.0, 60))),
    )
    project.write("test_model.py", MODEL.replace("SIZE, SIZE))", f"8, 8)), contract={contract!r}")).record()
    project.edit("test_model.py", EXP, SIN)
    assert project.run().code == 1
    assert [one.contract for one in asked] == [contract] * 3
