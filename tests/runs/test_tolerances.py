"""A workload's own tolerances, and claims as keywords of ``gate``: what one project states for one case."""

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


@pytest.mark.parametrize("text", [MODEL.replace("OPTIONS", f"tolerances=[{OWN}]"), CASE.replace("TOLERANCE", OWN)])
@pytest.mark.parametrize("before", [375, 374], ids=["within", "beyond"])
def test_its_own_tolerance_decides(project, text, before):
    """512 bytes are far beyond the policy; 1.1 × 375 + 100 allows them, 1.1 × 374 + 100 does not, and the reason stands beside it."""
    project.write("test_model.py", text)
    recorded(project, output_bytes=before)
    result = project.run("-s")
    if before == 375:
        result.counts(passed=1)
        assert result.line("model/step").startswith("SAME")
        result.shows(f'["{BESIDE}"]')
    else:
        result.counts(failed=1)
        result.shows("REGRESSED  model/step", f"output_bytes 512 B against 374 B = 1.37 ×, allowed 511 B ({BESIDE})")


BROKEN = {
    "max_output_bytes=511": "claim output_bytes ≤ 511: 512 B against 511 B",
    "min_aliased_bytes=256": "claim aliased_bytes ≥ 256: 0 B against 256 B",
    "exact_collectives=1": "claim collectives = 1: 0 against 1",
    "max_peak_bytes=767": "claim peak_bytes ≤ 767: 768 B against 767 B",
}


def test_a_broken_keyword_is_red_without_a_baseline(project):
    """Nothing is recorded yet, and nothing can be: red, also when recording."""
    for place, option in enumerate(BROKEN):
        project.write(f"test_model{place}.py", MODEL.replace("OPTIONS", option))
    project.run().counts(failed=len(BROKEN))
    for case, text in zip(project.results()["cases"], BROKEN.values(), strict=True):
        assert (case["status"], text in case["text"]) == ("REGRESSED", True), case["text"]
    project.run("--perf-update").counts(failed=len(BROKEN))
    assert project.baselines() == {}


def test_keywords_that_hold_are_counted(project):
    """Each is a claim beside those of every case: five, and four more."""
    write(project, "max_output_bytes=512, min_aliased_bytes=0, exact_collectives=0, max_peak_bytes=768")
    result = project.run()
    result.counts(passed=1)
    assert result.line("NO_BASELINE").endswith("9 claims hold · no baseline on this hardware")


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
