"""--perf-plan: what a run will cost, from what it took the last time, else from baselines; nothing is run for it."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.factories import PHASES, PROGRAM, baseline
from support.fakes import duel

from jaxgate.engine.run.gate_cost import longest_duel_s, predict, unchanged_s
from jaxgate.keep.baselines import save_baseline
from jaxgate.model.machine import HardwareKey
from jaxgate.model.numbers import Samples
from jaxgate.model.workload import Cost, Prediction
from jaxgate.plugin.modes.plan import recall

TESTS = """
def test_one(gate):
    open("ran", "w").close()

def test_two(gate):
    open("ran", "w").close()

def test_plain():
    open("ran", "w").close()
"""
ONE, TWO = "test_model.py::test_one", "test_model.py::test_two"
GPU = HardwareKey(platform="gpu", device_kind="H200", devices=1)


def of_call(call_ns, **changes):
    """A baseline whose call takes so long."""
    return baseline(samples=Samples(bursts_ns=(call_ns * 2,) * 3, calls_per_burst=2), **changes)


# From a baseline


def test_what_a_baseline_says_of_an_unchanged_program():
    """10 + 5 + 50 + 1 ms of phases, and bursts of 6.1 µs: added up by hand."""
    assert unchanged_s(baseline()) == pytest.approx(0.0660061)


@pytest.mark.parametrize("phase", ["trace_ns", "lower_ns", "compile_ns", "first_call_ns"])
def test_a_baseline_that_does_not_tell_all_tells_nothing(phase):
    assert unchanged_s(baseline(phases=replace(PHASES, **{phase: None}))) is None
    assert (longest_duel_s(baseline(phases=replace(PHASES, compile_ns=None)))) is None


@pytest.mark.parametrize(
    ("recorded", "seconds"),
    [
        (of_call(1_000), 0.1 + 120 * 0.015),  # bursts of 5 ms
        (of_call(8_000_000), 0.1 + 120 * 0.024),  # one call is a burst
        (of_call(10_000_000), 0.1 + 120 * 0.030),
        (of_call(11_000_000), 0.1 + 120 * 0.011),  # over 10 ms: once for each half-round
        (of_call(1_000, hardware=GPU), 0.1 + 120 * 0.060),  # bursts of 20 ms
        (of_call(1_000, program=replace(PROGRAM, digest=None, why_not="it calls Python")), 0.0),
    ],
    ids=["short", "8 ms", "10 ms", "11 ms", "accelerator", "not stored"],
)
def test_what_a_baseline_says_of_a_duel(recorded, seconds):
    """60 pairs of two sides at most, three bursts each or one long call, and two compiles of 50 ms."""
    assert longest_duel_s(recorded) == pytest.approx(seconds)


@pytest.fixture
def store(tmp_path):
    """A folder of baselines: writes them, returns the folder."""

    def save(*recorded):
        for one in recorded:
            save_baseline(tmp_path, one)
        return tmp_path

    return save


LAST = Cost(unchanged_s=2.0, duel_s=3.0)
NO_DUEL = Cost(unchanged_s=2.0, duel_s=None)
SLOW = {"phases": replace(PHASES, compile_ns=1_000_000_000), "hardware": GPU}
KNOWN_S = 0.0660061
PREDICTIONS = {
    "what is remembered comes first": (LAST, [{}], (2.0, 5.0, False, False)),
    "a duel that was never run is estimated": (NO_DUEL, [{}], (2.0, 2.0 + 0.1 + 1.8, False, True)),
    "without a baseline the duel is unknown": (NO_DUEL, [], (2.0, None, False, False)),
    "a baseline tells all": (None, [{}], (KNOWN_S, KNOWN_S + 0.1 + 1.8, True, True)),
    # which of them the run will use is not known before JAX is
    "the slowest of two kinds of hardware": (None, [{}, SLOW], (1.0160061, 1.0160061 + 2 + 120 * 0.060, True, True)),
    "another test's tells nothing": (None, [{"test": TWO}], (None, None, False, False)),
}


@pytest.mark.parametrize("what", PREDICTIONS)
def test_what_a_test_will_cost(store, what):
    remembered, stored, expected = PREDICTIONS[what]
    folder = store(*(baseline(**{"test": ONE, **changes}) for changes in stored))
    (found,) = predict([ONE], {} if remembered is None else {ONE: remembered}, folder)
    times = found.unchanged_s, found.changed_s
    assert times == pytest.approx(expected[:2])
    assert (found.unchanged_estimated, found.changed_estimated) == expected[2:]


def test_a_baseline_that_cannot_be_read_tells_nothing(store):
    for path in store(baseline(test=ONE)).rglob("*.json"):
        path.write_text("{")
    assert predict([ONE], {}, store()) == [Prediction(test=ONE)]


# The command


@pytest.fixture
def planned(project):
    """A project whose tests leave a trace if they run."""
    return project.write("test_model.py", TESTS)


def plan(project, *arguments):
    """Plan with pytest's cache switched on."""
    return project.pytester.runpytest_inprocess("--perf-plan", *arguments)


def remembered(project, costs):
    """Put costs where the last run would have left them."""
    file = project.path / ".pytest_cache/v/jaxgate/costs"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(costs))


def test_a_plan_runs_nothing(planned):
    """Exit code 0; a line for each selected gate, none for other tests, nothing called 'not judged'; no test ran."""
    remembered(planned, {ONE: {"unchanged_s": 1.5, "duel_s": 2.0}})
    result = plan(planned, "--perf-strict")
    text = result.stdout.str()
    assert result.ret == 0
    assert f"    1.5 s    3.5 s  {ONE}" in text
    assert f"  unknown  unknown  {TWO}" in text
    assert "    1.5 s    3.5 s  total, without 1 unknown" in text
    assert "test_plain" not in text
    assert "not judged" not in text
    assert not (planned.path / "ran").exists()


def test_a_plan_of_what_cannot_be_collected_is_no_plan(planned):
    """A file that does not import ends it as it ends a run; with --continue-on-collection-errors it is still red."""
    planned.write("test_broken.py", "import no_such_module\n")
    assert plan(planned).ret == 2
    assert plan(planned, "--continue-on-collection-errors").ret == 1
    assert not (planned.path / "ran").exists()


def test_a_bare_collection_stays_one(planned):
    result = plan(planned, "--collect-only", "-q")
    assert result.ret == 0
    assert ONE in result.stdout.str()
    assert "jaxgate: plan" not in result.stdout.str()


NONSENSE = {
    "no mapping": [1, 2],
    "a list": {ONE: [1, 2]},
    "text": {ONE: {"unchanged_s": "1.5"}},
    "nothing": {ONE: {}},
    "zero": {ONE: {"unchanged_s": 0, "duel_s": 1}},
    "negative": {ONE: {"unchanged_s": -1.5, "duel_s": 1}},
    "nan": {ONE: {"unchanged_s": float("nan")}},
    "yes": {ONE: {"unchanged_s": True}},
}


@pytest.mark.parametrize("what", NONSENSE)
def test_a_memory_that_makes_no_sense_is_forgotten(what):
    """Whatever stands in the cache, the test is unknown and never free."""
    assert recall(SimpleNamespace(cache=SimpleNamespace(get=lambda *_: NONSENSE[what]))) == {}


def test_without_a_cache_baselines_tell_without_jax(planned):
    """Neither collecting nor reading baselines needs it."""
    save_baseline(planned.path / "baselines", baseline(test=ONE))
    code = (
        "import sys, pytest; code = pytest.main(['--perf-plan', '-q', '-p', 'no:cacheprovider'])\n"
        "print('heavy:', sorted({name.split('.')[0] for name in sys.modules} & {'jax', 'jaxlib'}), int(code))\n"
    )
    done = planned.alone("-c", code)
    assert done.stdout.splitlines()[-1] == "heavy: [] 0", done.stdout + done.stderr
    assert f"   ~0.1 s   ~2.0 s  {ONE}" in done.stdout.splitlines()
    assert "~: worked out from a stored baseline" in done.stdout


# What is remembered

GATED = """
import jax.numpy as jnp

def step(x):
    return x * 2

def test_step(gate):
    gate(step, jnp.ones(8))

def test_bad(gate):
    gate(lambda x: x * jnp.nan, jnp.ones(8))
"""
STEP, BAD = "test_model.py::test_step", "test_model.py::test_bad"


def costs(project):
    """What the cache holds."""
    file = project.path / ".pytest_cache/v/jaxgate/costs"
    return json.loads(file.read_text()) if file.exists() else {}


@pytest.fixture
def gated(project):
    """A recorded project, run with pytest's cache."""
    project.write("test_model.py", GATED)
    project.pytester.runpytest_inprocess("--perf-update")
    return project


def test_a_judged_gate_is_remembered(gated):
    """With what it took; not the recording, not a case that is INVALID, not one that was not sampled."""
    assert costs(gated) == {}
    gated.with_memory("--benchmark-disable")
    assert costs(gated) == {}
    gated.with_memory()
    found = costs(gated)
    assert set(found) == {STEP}
    assert found[STEP]["duel_s"] is None
    remembered(gated, {STEP: found[STEP] | {"unchanged_s": 4.0}})  # the clock's own value says nothing
    text = plan(gated, "-k", "step").stdout.str()
    assert re.search(rf"^    4\.0 s +~\d+\.\d s  {re.escape(STEP)}$", text, re.MULTILINE), text


def test_a_duel_is_remembered_apart(gated):
    """Its time is no part of the rest, and is kept by runs that need none."""
    ticks = iter(range(0, 10**9, 1_000))
    gated.instruments.update(run_duel=lambda *_, **__: duel(1.0), clock=lambda: next(ticks))
    gated.edit("test_model.py", "x * 2", "x * 3")
    gated.with_memory()
    assert costs(gated)[STEP]["duel_s"] == 3e-6
    gated.edit("test_model.py", "x * 3", "x * 2")
    gated.with_memory()
    assert costs(gated)[STEP]["duel_s"] == 3e-6


def test_other_tests_stay_remembered(gated):
    """A run of some tests forgets none of the others."""
    remembered(gated, {"test_gone.py::test_it": {"unchanged_s": 3.0, "duel_s": None}})
    gated.with_memory()
    assert set(costs(gated)) == {"test_gone.py::test_it", STEP}
