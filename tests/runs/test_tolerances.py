"""A workload's own tolerances, and claims as keywords of ``gate``: what one project states for one case."""

from __future__ import annotations

import json

import pytest

MODEL = """
import jax, jax.numpy as jnp
from jaxgate import Tolerance

def step(x):
    return jnp.concatenate([x, x])

def test_step(gate):
    verdict = gate(step, jnp.ones(64), OPTIONS)
    print([finding.detail for finding in verdict.findings if finding.name == "output_bytes" and finding.kind == "fact"])
"""
OWN = 'Tolerance(fact="output_bytes", relative=0.1, absolute=100, why="padded to the tile")'
BESIDE = "by this workload's own tolerance: padded to the tile"
CASE = """
import jax.numpy as jnp
from jaxgate import Case, Computation, Tolerance
from jaxgate.plugin import catalogue

def build():
    return Computation(subject=lambda x: jnp.concatenate([x, x]), args=(jnp.ones(64),))

@catalogue([Case(family="model", sentence="step", build=build, tolerances=(TOLERANCE,))])
def test_step(case, gate):
    verdict = gate(case)
    print([finding.detail for finding in verdict.findings if finding.name == "output_bytes" and finding.kind == "fact"])
"""


def write(project, options):
    """A test of one function with these options of ``gate``."""
    project.write("test_model.py", MODEL.replace("OPTIONS", options))


def recorded(project, **facts):
    """Record the baseline, with other facts than were measured."""
    project.record()
    (path,) = project.path.glob("baselines/cpu-*/model/step.json")
    content = json.loads(path.read_text())
    assert content["facts"]["output_bytes"] == 512
    content["facts"].update(facts)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("of", ["gate", "case"])
def test_within_its_own_tolerance_a_fact_is_the_same(project, of):
    """512 bytes against 375 are far beyond the policy; 1.1 × 375 + 100 allows 512, and the reason stands beside it."""
    write(project, f"tolerances=[{OWN}]") if of == "gate" else project.write(
        "test_model.py", CASE.replace("TOLERANCE", OWN)
    )
    recorded(project, output_bytes=375)
    result = project.run("-s")
    result.counts(passed=1)
    assert result.line("model/step").startswith("SAME")
    result.shows(f'["{BESIDE}"]')


@pytest.mark.parametrize("of", ["gate", "case"])
def test_beyond_its_own_tolerance_it_is_red(project, of):
    """One byte less in the baseline: both numbers, what its own tolerance allows, and the reason."""
    write(project, f"tolerances=[{OWN}]") if of == "gate" else project.write(
        "test_model.py", CASE.replace("TOLERANCE", OWN)
    )
    recorded(project, output_bytes=374)
    result = project.run()
    result.counts(failed=1)
    result.shows("REGRESSED  model/step", f"output_bytes 512 B against 374 B = 1.37 ×, allowed 511 B ({BESIDE})")


def test_without_a_tolerance_the_policy_holds(project):
    """The same change is red for everybody else, and nothing is said of a tolerance."""
    write(project, "")
    recorded(project, output_bytes=375)
    result = project.run()
    result.counts(failed=1)
    result.shows("output_bytes 512 B against 375 B = 1.37 ×, allowed 443 B")
    assert "own tolerance" not in result.text


def test_a_tolerance_may_be_tighter_than_the_policy(project):
    """One operation more of a few is nothing by the policy; a workload may ask for none."""
    own = 'Tolerance(fact="stablehlo_ops", why="a kernel of one operation")'
    write(project, f"tolerances=[{own}]")
    recorded(project)
    project.edit("test_model.py", "jnp.concatenate([x, x])", "jnp.concatenate([x, jnp.tanh(x)])")
    result = project.run("--perf-budget", "0")
    result.counts(failed=1)
    result.shows("stablehlo_ops 2 against 1 = 2.00 ×, allowed 1 (by this workload's own tolerance: a kernel of one")


def test_a_tolerance_says_nothing_of_another_fact(project):
    """It loosens the one that it names."""
    write(project, f"tolerances=[{OWN}]")
    recorded(project, output_bytes=375, argument_bytes=1)
    result = project.run()
    result.counts(failed=1)
    result.shows("argument_bytes 256 B against 1 B")


BROKEN = {
    "max": ("max_output_bytes=511", "claim output_bytes ≤ 511: 512 B against 511 B"),
    "min": ("min_aliased_bytes=256", "claim aliased_bytes ≥ 256: 0 B against 256 B"),
    "exact": ("exact_collectives=1", "claim collectives = 1: 0 against 1"),
    "derived": ("max_peak_bytes=767", "claim peak_bytes ≤ 767: 768 B against 767 B"),
}


@pytest.mark.parametrize(("option", "text"), BROKEN.values(), ids=BROKEN)
def test_a_broken_keyword_is_red_without_a_baseline(project, option, text):
    """Nothing is recorded yet, and nothing can be: red, also when recording."""
    write(project, option)
    result = project.run()
    result.counts(failed=1)
    result.shows("REGRESSED  model/step", text)
    project.run("--perf-update").counts(failed=1)
    assert project.baselines() == {}


def test_keywords_that_hold_are_counted(project):
    """Each is a claim beside those of every case: five, and four more."""
    write(project, "max_output_bytes=512, min_aliased_bytes=0, exact_collectives=0, max_peak_bytes=768")
    result = project.run()
    result.counts(passed=1)
    assert result.line("NO_BASELINE").endswith("9 claims hold · no baseline on this hardware")


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("max_tmp_bytes=1", "max_tmp_bytes= claims nothing: expected max_ and one of "),
        ("max_run_ns=1", "for time claims=[claim('run_ns <= 0.8 * reference')] holds it against a reference"),
        ("max_output_bytes='1 kB'", "max_output_bytes= expects a number, found '1 kB'"),
        ("exact_collectives=True", "exact_collectives= expects a number, found True"),
    ],
)
def test_a_keyword_that_claims_nothing_is_refused(project, option, text):
    """A claim that is misspelt must not pass."""
    write(project, option)
    result = project.run()
    result.counts(failed=1)
    result.shows("gate: ", text)


def test_donation_that_is_lost_on_purpose(project):
    """The claim of every case that what is donated is reused gives way to a tolerance, by as much as it says."""
    own = 'Tolerance(fact="lost_bytes", absolute={}, why="freed for the next step")'
    write(project, f"donate='x', tolerances=[{own.format(256)}]")
    quiet = ("-W", "ignore:Some donated buffers")
    result = project.run(*quiet)
    result.counts(passed=1)
    assert result.line("NO_BASELINE").endswith("6 claims hold · no baseline on this hardware")
    write(project, f"donate='x', tolerances=[{own.format(255)}]")
    result = project.run(*quiet)
    result.counts(failed=1)
    result.shows("claim lost_bytes ≤ 255: 256 B against 255 B")
