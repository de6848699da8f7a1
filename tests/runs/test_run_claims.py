"""Claims about run time through the real plugin: held, broken and repeated, undecided with a reason, remembered."""

import json

import pytest
from support.corpora import nightly
from support.fakes import CALL_NS, duel

from jaxgate.model.duel import Duel

MODEL = """
import jax
import jax.numpy as jnp
import pytest
from jaxgate import claim

def fused(x):
    return jnp.tanh(x) + 1

def naive(x):
    return 1 + jnp.tanh(x)

def test_model(gate):
    gate(fused, jnp.ones((8, 8)), reference=naive, claims=[claim("run_ns <= 0.8 * reference", "one pass")])
"""
CLAIM = 'claim("run_ns <= 0.8 * reference", "one pass")'


CACHED = ("-p", "cacheprovider")  # Project.run switches it off


@pytest.fixture
def claimed(project, lab):
    """A case that claims to take at most 0.8 times as long as its reference, and takes 1.2 times, here and elsewhere."""
    lab.finds["reference"], lab.processes = duel(1.2), [1.2]
    return project.write("test_model.py", MODEL)


@nightly
def test_three_times_the_work_is_red_in_a_real_process(long_duels, project):
    """Planted: the subject does three times its reference's work; suspect first, then red with both numbers. Nothing is faked."""
    project.instruments["processes"] = 1  # 5 s each; that there are two needs no clock
    plant = MODEL.replace("return jnp.tanh(x) + 1", "return (work(work(work(x))) - work(x)) * 0")
    plant = (
        plant.replace("return 1 + jnp.tanh(x)", "return work(x) * 0")
        .replace("0.8", "1.0")
        .replace("(8, 8)", "(200, 200)")
    )
    project.write("test_model.py", plant + "\ndef work(x):\n    return jnp.tanh(x @ x)\n")
    result = project.run("-v")
    assert result.code == 1
    result.counts(failed=1)
    result.shows("test_model.py::test_model SUSPECT", "test_model.py::test_model FAILED", "1 case: 1 REGRESSED")
    line = result.line("  found     claim run_ns ≤ reference: ")
    for piece in ("pairs were more than", "slower than that; in fresh processes ", "(one pass)"):
        assert piece in line


def test_identical_work_is_not_red_on_a_real_clock(long_duels, project):
    """Planted: one function on both sides. Within 1.1 it is never red, whatever this machine does, and within 5 it holds."""
    plant = MODEL.replace("1 + jnp.tanh(x)", "jnp.tanh(x) + 1").replace("(8, 8)", "(200, 200)")
    plain, _, test = plant.partition("def test_model")
    wide = test.replace("0.8", "5")
    project.write("test_model.py", f"{plain}def test_model{test.replace('0.8', '1.1')}\ndef test_wide{wide}")
    result = project.run()
    assert result.code == 0
    result.counts(passed=2)
    result.shows("NO_BASELINE  model/model")
    assert "6 claims hold · no baseline" in result.line("NO_BASELINE  model/wide")


MANY = """
@pytest.mark.parametrize("number", range(5))
def test_many(gate, number):
    gate(fused, jnp.ones((8, 8)), reference=naive, claims=[claim("run_ns <= 0.8 * reference"), claim("run_ns <= 0.9 * reference")])
"""


def test_many_broken_claims_at_once_accuse_the_machine(claimed, lab):
    """6 of 6 cases, however many claims each has: where a control differs INVALID, nothing else is started, exit code 2."""
    claimed.write("test_model.py", MODEL + MANY)
    lab.control = 1.3
    result = claimed.run()
    assert (result.code, len(lab.launched)) == (2, 2)
    result.shows("the machine is the suspect", "6 cases: 6 INVALID")


def test_five_cases_with_two_broken_claims_each_do_not(claimed, lab):
    """Cases are counted, not duels: ten claims of five cases are repeated."""
    claimed.write(
        "test_model.py", (MODEL + MANY).replace("range(5)", "range(4)").replace("run_ns <= 0.8", "run_ns <= 0.7", 1)
    )
    result = claimed.run()
    result.counts(failed=5)
    assert len(lab.launched) == 2 + 4 * 4


def test_a_slow_down_and_a_broken_claim_are_both_repeated(claimed, lab):
    """Against the baseline's program and against the reference: each is confirmed by its own duel."""
    lab.finds["reference"] = duel(0.7)
    claimed.record()
    claimed.edit("test_model.py", "jnp.tanh(x) + 1", "jnp.tanh(x * 1.0000001) + 1")
    lab.finds = {"reference": duel(1.2), "baseline": duel(1.3)}
    lab.duelled.clear()
    result = claimed.run()
    assert result.code == 1
    assert (lab.duelled, [again.claim is None for again in lab.launched]) == (
        ["baseline", "reference"],
        [True, True, False, False],
    )
    result.shows(
        "REGRESSED  model/model",
        "slower than that; in fresh processes 1.200 ×, 1.200 ×",
        "SLOWER: 1.300 × [1.300, 1.300], n=20",
        "1 case: 1 REGRESSED",
    )


def test_a_slow_down_stays_where_the_claim_did_not_come_again(claimed, lab):
    """The third and fourth process disagree: the case is SLOWER, its claim undecided."""
    lab.finds["reference"] = duel(0.7)
    claimed.record()
    claimed.edit("test_model.py", "jnp.tanh(x) + 1", "jnp.tanh(x * 1.0000001) + 1")
    lab.finds = {"reference": duel(1.2), "baseline": duel(1.3)}
    lab.processes = [1.3, 1.3, 0.7]
    result = claimed.run()
    assert (result.code, len(lab.launched)) == (1, 3)
    result.shows("SLOWER  model/model", "1 case: 1 SLOWER")


def test_a_case_that_is_red_without_it_is_not_repeated(claimed, lab):
    """A broken fact needs no clock; the claim is named, and said not to be confirmed."""
    claimed.edit("test_model.py", CLAIM, f'{CLAIM}, claim("output_bytes <= 0.1 * reference")')
    result = claimed.run()
    assert (result.code, lab.launched) == (1, [])
    assert "also claim run_ns ≤ 0.8 × reference (not repeated in fresh processes)" in result.line("  found ")


# What cannot be decided


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--benchmark-disable"], "the clock is switched off (--benchmark-disable)"),
        (["--perf-budget", "0"], "the budget for duels is spent (--perf-budget)"),
    ],
    ids=["no clock", "no budget"],
)
def test_no_duel_where_the_user_wants_none(claimed, lab, arguments, reason):
    """UNDECIDED with the reason in its line, also beside a baseline."""
    lab.finds["reference"] = duel(0.7)
    claimed.record()
    lab.duelled.clear()
    result = claimed.run(*arguments)
    assert (result.code, lab.duelled) == (0, [])
    assert result.line("UNDECIDED").endswith(
        f"5 claims hold · undecided: run_ns ≤ 0.8 × reference: {reason} · identical program"
    )


def test_undecided_claims_make_a_machine_unfit(claimed, lab):
    """Where strict, a run that leaves most cases open ends with exit code 2, by these claims as by any time."""
    lab.finds["reference"] = duel(0.7)
    claimed.record()
    assert claimed.run("--perf-strict", "--perf-budget", "0").code == 2


def test_the_budget_is_shared(claimed, lab):
    """A duel with the reference takes from what the duels of the next cases may take."""
    claimed.write("test_model.py", MODEL + MANY.replace("range(5)", "range(1)"))
    lab.finds["reference"] = duel(0.7)
    result = claimed.run("--perf-budget", "0.000001")
    assert lab.duelled == ["reference"]
    result.shows("the budget for duels is spent (--perf-budget)")


NOT_DUELLED = """
import numpy

def calls(x):
    return jax.pure_callback(lambda x: x, x, jnp.tanh(x)) + 1

def captures(x):
    return 1 + jnp.tanh(x) + WEIGHTS

WEIGHTS = numpy.random.default_rng(0).standard_normal((100, 200)).astype("f") * 1e-7
dumped = jax.jit(fused, compiler_options={"xla_dump_hlo_as_text": True})
chosen = jax.jit(lambda x, n=None: fused(x), static_argnums=1)
X = jnp.ones((100, 200))
"""
WHY_NOT = {
    "reference_calls_python": ("fused, X, reference=calls", "the reference: jax.export refuses it"),
    "subject_calls_python": ("calls, X, reference=naive", "the subject: jax.export refuses it"),
    "options": ("dumped, X, reference=naive", "the subject: it is compiled with xla_dump_hlo_as_text"),
    "constants": ("fused, X, reference=captures", "the reference: it captures 80,000 bytes of constants"),
    "static": ("chosen, X, 3, reference=lambda x, n: naive(x)", "subject and reference take different arrays"),
}


def test_what_cannot_be_duelled_is_undecided(claimed, lab):
    """What cannot be exported, and two that do not take the same arrays: no duel, and it says so."""
    tests = (f"def test_{name}(gate):\n    gate({what}, claims=[{CLAIM}])\n" for name, (what, _) in WHY_NOT.items())
    model = MODEL.partition("def test_model")[0]
    result = claimed.write("test_model.py", "\n".join((model, NOT_DUELLED, *tests))).run()
    assert (result.code, lab.duelled) == (0, [])
    for name, (_, reason) in WHY_NOT.items():
        line = result.line(f"NO_BASELINE  model/{name} ")
        assert f"undecided: run_ns ≤ 0.8 × reference: no duel can be run: {reason}" in line


def test_a_duel_that_breaks_says_so(claimed, lab):
    """Two programs may not fit into memory together."""
    lab.finds["reference"] = RuntimeError("RESOURCE_EXHAUSTED: out of memory")
    assert "undecided: run_ns ≤ 0.8 × reference: the duel failed: out of memory" in claimed.run().line("NO_BASELINE")


# Recording


def test_a_broken_claim_is_not_recorded(claimed, lab):
    """Refused at once: nothing is written, no process is started, and it says that it was not repeated."""
    result = claimed.run("--perf-update")
    assert (result.code, lab.launched, claimed.baselines()) == (1, [], {})
    result.shows("REGRESSED  model/model", "slower than that; not repeated in fresh processes (one pass)")


def test_an_undecided_claim_is_recorded_and_counted(claimed):
    """The facts are good; the line says what was left open."""
    result = claimed.run("--perf-update", "--perf-budget", "0")
    assert result.code == 0
    assert len(claimed.baselines()) == 1
    assert "undecided: run_ns ≤ 0.8 × reference: the budget" in result.line("CREATED")
    assert claimed.run("--perf-update", "--perf-budget", "0", "--perf-strict").code == 2


def test_the_other_side_of_a_comparison_runs_no_duel(claimed, lab, monkeypatch):
    """It is recorded to be held against: its own claims are nobody's question."""
    monkeypatch.setenv("JAXGATE_AS_MEASURED", "1")
    assert claimed.run("--perf-update").code == 0
    assert (lab.duelled, len(claimed.baselines())) == ([], 1)


# Memory


def test_a_duel_that_held_is_not_run_again(claimed, lab):
    """Unchanged programs: the line says that the figure is an earlier one, also where there is no budget and no clock."""
    lab.finds["reference"] = duel(0.7)
    assert claimed.run(*CACHED).code == 0
    lab.finds["reference"] = duel(1.2)
    for arguments in ([], ["--perf-budget", "0"], ["--benchmark-disable"]):
        result = claimed.run(*CACHED, *arguments)
        assert (result.code, lab.duelled) == (0, ["reference"])
        assert "6 claims hold (run time as measured before)" in result.line("NO_BASELINE")


def test_without_a_cache_it_is_run_each_time(claimed, lab):
    lab.finds["reference"] = duel(0.7)
    results = [claimed.run(), claimed.run()]
    assert lab.duelled == ["reference"] * 2
    assert not any("as measured before" in result.text for result in results)


def test_a_broken_claim_is_never_remembered(claimed, lab):
    """Run again, and red again; a looser claim does not find it either."""
    assert [claimed.run(*CACHED).code, claimed.run(*CACHED).code] == [1, 1]
    assert lab.duelled == ["reference"] * 2
    claimed.edit("test_model.py", "0.8", "2.0")
    assert (claimed.run(*CACHED).code, lab.duelled) == (0, ["reference"] * 3)


def test_an_undecided_claim_is_never_remembered(claimed, lab):
    lab.finds["reference"] = Duel(
        now_ns=((7_000_000,), (9_000_000,)) * 30, baseline_ns=((CALL_NS,),) * 60, calls_per_burst=1, seed=0
    )
    for _ in range(2):
        assert "too close to decide" in claimed.run(*CACHED).line("undecided:")
    assert lab.duelled == ["reference"] * 2


def test_a_tighter_claim_is_held_against_what_is_remembered(claimed, lab):
    """0.7 × does not serve a claim of 0.5: a new duel decides, and breaks it."""
    lab.finds["reference"] = duel(0.7)
    assert claimed.run(*CACHED).code == 0
    claimed.edit("test_model.py", "0.8", "0.75")
    assert (claimed.run(*CACHED).code, lab.duelled) == (0, ["reference"])
    claimed.edit("test_model.py", "0.75", "0.5")
    lab.processes = [0.7]
    assert (claimed.run(*CACHED).code, lab.duelled) == (1, ["reference"] * 2)


def test_the_duel_with_a_reference_is_part_of_what_an_unchanged_case_took(claimed, lab):
    """It does not depend on the baseline: only the duel with the baseline's program is kept apart."""
    claimed.run(*CACHED)
    assert lab.duelled == ["reference"]
    (cost,) = json.loads((claimed.path / ".pytest_cache/v/jaxgate/costs").read_text()).values()
    assert cost["duel_s"] is None
