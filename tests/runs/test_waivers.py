"""Waivers through the real plugin: green while they apply, red and said so when they do not, listed when not needed."""

import pytest
from support.fakes import duel
from support.git import commit

MODEL = """
import jax.numpy as jnp
from jaxgate import claim

def step(state, x):
    return state * 0.9 + x

def other(x):
    return x + 1

def test_step(gate):
    gate(step, jnp.ones(64), jnp.ones(64), donate="state")

def test_other(gate):
    gate(other, jnp.ones(8))
"""
LOST = ('jnp.ones(64), jnp.ones(64), donate="state"', "jnp.ones(64), jnp.ones(64)")
CLAIM = 'claims=[claim("output_bytes <= 8")]'
BOTH = [("donated_bytes", 0), ("aliased_bytes", 0)]
STRICT = ["--perf-strict", "--perf-max-undecided=1"]


def entry(quantity, up_to, case="model/step", expires="2026-12-31"):
    """One entry of the file."""
    return (
        f'[[waiver]]\ncase = "{case}"\nquantity = "{quantity}"\nup_to = {up_to}\n'
        f'owner = "perf-team"\nreason = "issue 12"\nexpires = {expires}\n'
    )


@pytest.fixture
def recorded(project, lab):
    """A recorded project on 21 November 2026; no clock decides."""
    return project.write("test_model.py", MODEL).record()


def waive(project, *entries):
    """Write the file of waivers."""
    project.write("baselines/waivers.toml", "\n".join(entries))


def test_a_waived_loss_is_green_and_visible(recorded):
    """Also under CI; in the line of the case and in the count."""
    recorded.edit("test_model.py", *LOST)
    assert recorded.run(*STRICT).code == 1
    waive(recorded, *(entry(*what) for what in BOTH))
    result = recorded.run(*STRICT)
    assert result.code == 0
    result.counts(passed=2)
    line = result.line("WAIVED  model/step")
    assert "waived until 2026-12-31 by perf-team: issue 12 · " in line
    assert "donated_bytes 0 B against 256 B" in line
    assert "aliased_bytes: waived until 2026-12-31" in line
    result.shows("2 cases: 1 SAME, 1 WAIVED")
    assert "WAIVER" not in result.text  # both are needed


@pytest.mark.parametrize(("jax", "code"), [(">=0.4", 0), ("<0.4", 1)])
def test_a_waiver_of_other_releases_is_none(recorded, jax, code):
    """It neither accepts the loss nor is it listed as one that nobody needs: that is for those releases to tell."""
    recorded.edit("test_model.py", *LOST)
    waive(recorded, *(f'{entry(*what)}jax = "{jax}"\n' for what in BOTH))
    assert recorded.run(*STRICT).code == code
    recorded.edit("test_model.py", *reversed(LOST))
    result = recorded.run(*STRICT)
    assert result.code == 0
    assert ("WAIVER" in result.text) == (code == 0)


def test_a_broken_claim_is_not_recorded_because_it_is_waived(recorded):
    before = recorded.baselines()
    recorded.edit("test_model.py", "gate(other, jnp.ones(8))", f"gate(other, jnp.ones(8), {CLAIM})")
    waive(recorded, entry("output_bytes ≤ 8", 32, "model/other"))
    assert recorded.run("-k", "other").code == 0
    result = recorded.run("-k", "other", "--perf-update")
    assert result.code == 1
    result.counts(failed=1, deselected=1)
    assert recorded.baselines() == before


def test_a_recording_tells_which_waivers_it_ended(recorded):
    """The new baseline holds the loss; the next run is SAME and says so again."""
    recorded.edit("test_model.py", *LOST)
    waive(recorded, *(entry(*what) for what in BOTH))
    result = recorded.run("--perf-update")
    assert result.code == 0
    assert "baseline that was recorded now holds the loss; remove it from baselines/waivers.toml" in result.line(
        "WAIVER donated_bytes of model/step"
    )
    result = recorded.run(*STRICT)
    assert result.code == 0
    assert "it is no worse than allowed; remove it" in result.line("WAIVER aliased_bytes of model/step")


def test_a_waiver_whose_case_is_gone_is_listed(recorded):
    """A run of everything tells; it does not fail for it."""
    waive(recorded, entry("temp_bytes", 5000, "model/gone"))
    result = recorded.run("--perf-strict")
    assert result.code == 0
    assert result.line("WAIVER") == (
        "WAIVER temp_bytes of model/gone: no test has this case; remove it from baselines/waivers.toml"
    )


def test_an_accepted_drift_whose_case_is_gone_is_listed(recorded):
    """As a waiver is; that of a case which is there is not."""
    account = 'since = 2026-11-01\nowner = "ml"\nreason = "a better loss"\n'
    waive(recorded, *(f'[[drift]]\ncase = "model/{name}"\n{account}' for name in ("gone", "step")))
    result = recorded.run("--perf-strict")
    assert result.code == 0
    assert [line for line in result.text.splitlines() if line.startswith("DRIFT")] == [
        "DRIFT since 2026-11-01 of model/gone: no test has this case; remove it from baselines/waivers.toml"
    ]


PARTS = {
    "one is deselected": ["-k", "other"],
    "one test": ["test_model.py::test_other", "test_model.py::test_step"],
    "one file": ["test_model.py"],
    "a folder": ["sub"],
    "a file is ignored": ["--ignore=sub/test_sub.py"],
    "a gate is skipped": ["test_skipped.py", "."],
}


@pytest.mark.parametrize("part", PARTS)
def test_a_run_of_a_part_does_not_tell_what_is_gone(recorded, part):
    """The case may belong to a test that was not looked at."""
    recorded.write("sub/test_sub.py", MODEL.replace("test_step", "test_sub").replace("test_other", "test_sub2"))
    recorded.record("sub")
    if part == "a gate is skipped":
        recorded.write("test_skipped.py", "import pytest\n@pytest.mark.skip\ndef test_it(gate):\n    pass\n")
    waive(recorded, entry("temp_bytes", 5000, "model/gone"))
    result = recorded.run(*PARTS[part])
    assert result.code == 0
    assert "WAIVER" not in result.text
    if part == "one file":
        recorded.run().shows("WAIVER temp_bytes of model/gone")


@pytest.mark.parametrize("option", ["--perf-update", "--perf-plan"])
def test_a_file_that_cannot_be_trusted_ends_the_run_before_it_begins(recorded, option):
    """Exit code 4, one line with file, entry and key; no test has run and nothing is recorded."""
    before = recorded.baselines()
    waive(recorded, entry("temp_byte", 5000))
    result = recorded.run(option)
    assert result.code == 4
    assert "waivers.toml: entry 1 (model/step, temp_byte): key `quantity`" in result.line("ERROR: ")
    assert "Traceback" not in result.text
    result.counts()
    assert "not judged" not in result.text
    assert recorded.baselines() == before


def test_no_worker_starts_under_a_file_that_cannot_be_trusted(recorded):
    """The controller reads it once, though it collects no gate itself."""
    waive(recorded, entry("temp_byte", 5000))
    result = recorded.run("-n1")
    assert result.code == 4
    assert "waivers.toml: entry 1 (model/step, temp_byte): key `quantity`" in result.line("ERROR: ")
    assert result.text.count("ERROR") == 1


def test_runs_without_gates_do_not_read_it(recorded):
    """A broken file is no business of other tests, nor of a bare collection."""
    waive(recorded, "[[waiver]]")
    recorded.write("test_plain.py", "def test_it():\n    pass\n")
    assert recorded.run("test_plain.py").code == 0
    assert recorded.run("--collect-only").code == 0


# Time


@pytest.fixture
def slower(recorded, lab):
    """The program changed and is 1.15 times as slow, in fresh processes, too."""
    lab.finds["baseline"], lab.processes = duel(1.15), [1.15]
    recorded.edit("test_model.py", "return x + 1", "return x + 2")
    return recorded


def test_a_waived_fact_does_not_hide_that_time_is_open(recorded):
    """Its time is UNDECIDED all the same, and counts against the share that may be."""
    recorded.edit("test_model.py", *LOST)
    waive(recorded, *(entry(*what) for what in BOTH))
    result = recorded.run("-k", "step", "--perf-strict", "--perf-budget=0")
    assert result.code == 2
    result.shows("1 case: 1 WAIVED", "· time UNDECIDED", "100% of the cases are UNDECIDED")


# Against a revision


def test_a_waiver_of_time_says_nothing_of_another_revision(slower, lab):
    """Its ratio is to the stored baseline; the slow-down is confirmed. None is called unneeded."""
    slower.edit("test_model.py", "return x + 2", "return x + 1")
    commit(slower.path)
    slower.edit("test_model.py", "return x + 1", "return x + 2")
    waive(slower, entry("time", 1.2, "model/other"), entry("temp_bytes", 5000))
    slower.records_here()
    result = slower.run("--perf-against", "HEAD")
    assert (result.code, len(lab.launched)) == (1, 2)
    result.shows("SLOWER  model/other")
    assert "WAIVE" not in result.text


def test_a_waived_claim_is_waived_against_another_environment_too(recorded):
    """It holds in every environment, and so does its waiver; the line shows it. Nothing is called unneeded."""
    recorded.edit("test_model.py", "gate(other, jnp.ones(8))", f"gate(other, jnp.ones(8), {CLAIM})")
    recorded.records_here()
    command = ["-k", "other", "--perf-against", "UNUSED=1", "--benchmark-disable"]
    waive(recorded, entry("output_bytes ≤ 8", 16, "model/other"))
    assert recorded.run(*command).code == 1
    waive(recorded, entry("output_bytes ≤ 8", 32, "model/other"), entry("temp_bytes", 5000, "model/other"))
    result = recorded.run(*command)
    assert result.code == 0
    assert "claim output_bytes ≤ 8: waived until 2026-12-31 by perf-team" in result.line("WAIVED  model/other")
    assert "WAIVER" not in result.text


def test_a_slow_down_beside_a_waived_fact_is_confirmed(slower, lab):
    """What was red by its fact is now a suspect by its time: fresh processes run, and it is red as SLOWER."""
    slower.edit("test_model.py", *LOST)
    waive(slower, *(entry(*what) for what in BOTH))
    result = slower.run("-k", "step", "-v", *STRICT)
    assert (result.code, len(lab.launched)) == (1, 2)
    result.shows("test_step SUSPECT", "SLOWER  model/step  on ", "donated_bytes: waived until 2026-12-31 by perf-team")
