"""A catalogue through the real plugin: sizes, devices, expected failures as pytest tells them, rates."""

import json
import subprocess
import sys

import jax
import pytest
from support.projects import SETTINGS

CATALOGUE = """
import jax
import jax.numpy as jnp
import numpy as np
from dataclasses import dataclass
from jaxgate.model.computation import Batch, Computation; from jaxgate.model.workload import Family; from jaxgate.model.claim import KnownBreak, claim


@dataclass(frozen=True)
class Size:
    rows: int


OLD = KnownBreak(jax="{releases}", platform="cpu", since="2026-11-21", why="a test says so")


SIZES = {{"small": Size(4), "full": Size(16)}}
CASES = Family("rows")


@CASES.workload("rows-times-{{factor}}", sweep=[{{"factor": 3}}], sizes=SIZES, devices={devices})
def build(size, factor):
    x = jax.device_put(np.ones((size.rows, 8), np.float32))
    return Computation(
        subject=jax.jit(lambda x: x * factor),
        reference=jax.jit(lambda x: {reference}),
        args=(x,),
        batch=Batch(argument=0, size=size.rows, unit="rows"),
        claims=[
            claim("output_bytes <= 0.5 * reference", "it never holds", known_break=OLD),
            claim("host_callbacks == 0"),
        ],
    )
"""
TEST = """
from jaxgate.plugin import catalogue
from workloads import rows


@catalogue(rows.CASES)
def test_rows(case, gate):
    gate(case)
"""


def write(project, *, releases="<99", devices=1, reference="x + x + x"):
    """A catalogue of one case."""
    project.write("workloads/__init__.py", "")
    project.write("workloads/rows.py", CATALOGUE.format(releases=releases, devices=devices, reference=reference))
    project.write("perf/test_rows.py", TEST)


def test_an_expected_failure_is_xfailed(project):
    """Recorded, then judged: the run is green, pytest counts an xfailed test and prints the reason."""
    write(project)
    recorded = project.run("perf", "--perf-update", "--perf-why", "a test", "-ra")
    assert recorded.code == 0
    result = project.run("perf", "-ra", "--perf-strict")
    assert result.code == 0
    result.counts(xfailed=1)
    result.shows(
        "EXPECTED  rows/rows-times-3",
        "expected: output_bytes ≤ 0.5 × reference is broken, 128 B against 128 B = 1.00 ×",
        "(jax <99 on cpu, seen 2026-11-21: a test says so)",
        "XFAIL perf/test_rows.py::test_rows[rows-times-3]",
        "1 case: 1 EXPECTED",
    )


def test_another_release_is_red(project):
    write(project, releases="<0.1")
    result = project.run("perf", "-ra")
    assert result.code == 1
    result.counts(failed=1)
    result.shows("REGRESSED  rows/rows-times-3", "claim output_bytes ≤ 0.5 × reference: 128 B against 128 B = 1.00 ×")


def test_an_unexpected_pass_is_xpassed(project):
    """The reference returns more, the claim holds: green, and told."""
    write(project)
    project.edit("workloads/rows.py", "x * factor)", "(x * factor)[:, :4])")
    project.edit("workloads/rows.py", "lambda x: x + x + x", "lambda x: (x + x + x)[:, :4]")
    project.edit("workloads/rows.py", "output_bytes <= 0.5 * reference", "output_bytes <= reference")
    result = project.run("perf", "-ra")
    assert result.code == 0
    result.counts(xpassed=1)
    result.shows(
        "holds unexpectedly: output_bytes ≤ reference (jax <99", "remove its known_break", "XPASS perf/test_rows.py"
    )


def test_a_rate_is_shown_in_its_unit(project):
    """What a call gets done, per second, beside its time."""
    write(project)
    result = project.run("perf", "--benchmark-json", "out.json")
    assert "rows/s" in result.line("rows/rows-times-3")
    (row,) = json.loads((project.path / "out.json").read_text())["benchmarks"]
    told = row["extra_info"]
    assert told["unit"] == "rows"
    assert told["per_second"] == pytest.approx(4 / row["stats"]["median"], rel=0.01)


def test_the_usual_size_has_the_plain_name_and_another_one_its_own(project):
    """On CPU small is usual; the full size is recorded beside it and leaves its baseline alone."""
    write(project)
    project.run("perf", "--perf-update", "--perf-why", "a test")
    small = project.baselines()
    result = project.run("perf", "--perf-size", "full", "--perf-update", "--perf-why", "a test")
    result.shows("CREATED  rows/rows-times-3.full")
    both = project.baselines()
    assert {name.partition("/")[2] for name in both} == {"rows/rows-times-3.json", "rows/rows-times-3.full.json"}
    assert all(both[name] == content for name, content in small.items())
    result = project.run("perf", "--perf-size", "full", "--perf-strict")
    result.shows("EXPECTED  rows/rows-times-3.full")
    assert result.code == 0
    result = project.run("perf", "--perf-size", "small", "--perf-strict")
    result.shows("EXPECTED  rows/rows-times-3 ")
    assert result.code == 0


def test_the_size_can_come_from_the_environment(project, monkeypatch):
    """As every option can; a size that does not exist is refused before any test."""
    write(project)
    monkeypatch.setenv("JAXGATE_SIZE", "full")
    project.run("perf").shows("rows/rows-times-3.full")
    monkeypatch.setenv("JAXGATE_SIZE", "huge")
    result = project.run("perf")
    assert result.code == 4
    result.shows("perf_size (JAXGATE_SIZE): expected one of small, full, found 'huge'")


def test_a_case_for_more_devices_than_the_cpu_has_is_red(project):
    """On CPU any number can be had: the text says how, and nothing is skipped in silence."""
    write(project, devices=1000)
    result = project.run("perf")
    assert result.code == 1
    result.counts(failed=1)
    result.shows("`rows/rows-times-3` needs 1000 devices", "expected perf_cpu_devices = 1000 or more")


@pytest.fixture
def gpu(monkeypatch):
    """A machine with one GPU."""
    monkeypatch.setattr("jaxgate.plugin.gate.devices_here", lambda: ("gpu", 1))


@pytest.mark.usefixtures("gpu")
def test_a_case_for_more_devices_than_an_accelerator_machine_has_is_skipped_with_its_reason(project):
    """There they cannot be had; the skip is counted, and the gate is told as not judged."""
    write(project, devices=8)
    result = project.run("perf", "-ra")
    result.counts(skipped=1)
    result.shows("`rows/rows-times-3` needs 8 devices, found 1 (gpu)", "1 of 1 gates was not judged")


@pytest.mark.usefixtures("gpu")
def test_a_case_that_ran_on_another_platform_is_invalid(project):
    """An argument left on the host's CPU: the CPU's baseline must not pass for the accelerator's."""
    write(project)
    result = project.run("perf")
    result.counts(failed=1)
    result.shows("INVALID  rows/rows-times-3", "expected the case to run on gpu, which JAX uses here, found cpu")


@pytest.mark.parametrize("wrong", ["0", "many", "-1"])
def test_a_number_of_devices_that_is_none_is_refused(project, monkeypatch, wrong):
    write(project)
    monkeypatch.setenv("JAXGATE_CPU_DEVICES", wrong)
    result = project.run("perf")
    assert result.code == 4
    result.shows(f"perf_cpu_devices (JAXGATE_CPU_DEVICES): expected 1 or more, found '{wrong}'")


def test_devices_chosen_too_late_end_the_run(project, monkeypatch):
    """JAX has started in this process with fewer: no test is run on the wrong number."""
    jax.devices()  # whichever test comes first
    write(project)
    monkeypatch.setenv("JAXGATE_CPU_DEVICES", "999")
    result = project.run("perf")
    assert result.code == 4
    result.shows("expected to divide the CPU into 999 devices", "JAX has started with")


def test_a_fresh_process_gets_its_devices(project):
    write(project, devices=8)
    project.write("pyproject.toml", f'{SETTINGS}perf_cpu_devices = "8"\n')
    command = [sys.executable, "-m", "pytest", "perf", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)
    assert "1 xfailed" in done.stdout, done.stdout + done.stderr
