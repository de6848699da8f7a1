"""``--perf-distributed``: what it takes, what it refuses, and what is not done over several processes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.factories import CASE, FINGERPRINTS, measurement, record

from jaxgate.engine import baseline_duel, reference_duel
from jaxgate.engine.evidence import EvidenceCollector
from jaxgate.judge import judge
from jaxgate.keep import ProgramStore
from jaxgate.model import ArtifactSettings, Status
from jaxgate.plugin.options.settings import read_ranks

JOB = "--perf-distributed=127.0.0.1:1234,2,0"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--perf-distributed=here"],
            "expected HOST:PORT,COUNT,RANK (10.0.0.1:1234,2,0 on the first of two processes) or auto",
        ),
        (["--perf-distributed=127.0.0.1:1234,2,2"], "found '127.0.0.1:1234,2,2'"),
        (["--perf-distributed=127.0.0.1:1234,1,0"], "found '127.0.0.1:1234,1,0'"),
        (["--perf-distributed=127.0.0.1,2,0"], "found '127.0.0.1,2,0'"),
        (["--perf-distributed=127.0.0.1:70000,2,0"], "found '127.0.0.1:70000,2,0'"),
        (["--perf-distributed=127.0.0.1:1234,two,0"], "found '127.0.0.1:1234,two,0'"),
        ([JOB, "--perf-rank-timeout=soon"], "--perf-rank-timeout: expected a number of seconds above 0, found 'soon'"),
        ([JOB, "--perf-rank-timeout=0"], "found '0'"),
        ([JOB, "--perf-rank-timeout=inf"], "found 'inf'"),
        (["--perf-rank-timeout=5"], "--perf-rank-timeout is about several processes; it needs --perf-distributed"),
        ([JOB, "--perf-against=HEAD"], "drop --perf-against"),
        ([JOB, "--perf-against-env=X=1"], "drop --perf-against-env"),
        ([JOB, "--perf-calibrate=3"], "drop --perf-calibrate"),
        ([JOB, "--perf-peak"], "drop --perf-peak"),
        ([JOB, "--perf-plan"], "drop --perf-plan"),
        ([JOB, "--perf-record-times=3"], "drop --perf-record-times"),
        ([JOB, "-n", "2"], "drop -n"),
        ([JOB, "--perf-update=trim"], "--perf-update=trim is for one process; drop --perf-distributed"),
        ([JOB, "--perf-update=review"], "--perf-update=review is for one process; drop --perf-distributed"),
    ],
    ids=lambda part: " ".join(part).replace("--perf-", "") if isinstance(part, list) else None,
)
def test_what_makes_no_sense_is_refused_before_anything_is_joined(project, options, said):
    """One error for each, and no test is run."""
    project.write("test_a.py", "def test_a(gate): gate(lambda x: x, 1.0)\n")
    if "--perf-against=HEAD" in options:
        import subprocess

        for command in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a"],
        ):
            subprocess.run(["git", *command], cwd=project.path, check=True)
    result = project.run(*options)
    assert result.code == pytest.ExitCode.USAGE_ERROR
    result.shows(said)


def config(**options):
    """A configuration with these options and no others."""
    return SimpleNamespace(getoption=lambda name, default=None: options.get(name, default), option=SimpleNamespace())


def test_variables_serve_a_launcher_that_sets_them_for_each_process():
    """The option goes before the variable."""
    environ = {"JAXGATE_DISTRIBUTED": "h:1,4,3", "JAXGATE_RANK_TIMEOUT": "7"}
    found = read_ranks(config(), environ)
    assert (found.coordinator, found.count, found.rank, found.timeout_s) == ("h:1", 4, 3, 7.0)
    assert read_ranks(config(**{"--perf-distributed": "[::1]:5,2,1"}), environ).coordinator == "[::1]:5"


def test_auto_leaves_the_cluster_to_jax():
    """Nothing is known before JAX has asked it."""
    found = read_ranks(config(**{"--perf-distributed": "auto"}), {})
    assert (found.coordinator, found.count, found.rank, found.timeout_s) == (None, None, None, 300.0)
    assert read_ranks(config(), {}) is None


def test_a_changed_program_over_several_processes_is_undecided_and_says_why():
    """In one process it would be duelled; an unchanged one is SAME by identity in both."""
    changed = measurement(fingerprints=replace(FINGERPRINTS, program="p1"), processes=2)
    why_not = baseline_duel._hopeless(changed, record())
    assert why_not == "several processes: not duelled yet"
    assert not baseline_duel._hopeless(replace(changed, processes=1), record())
    verdict = judge(CASE, (), changed, record(), strict=True, no_duel=why_not)
    assert verdict.time.status is Status.UNDECIDED
    assert why_not in verdict.time.reason
    assert reference_duel._hopeless(changed) == why_not
    assert judge(CASE, (), measurement(processes=2), record(), strict=True).time.status is Status.SAME


def test_a_red_case_over_several_processes_says_that_it_was_not_profiled(tmp_path):
    """Its bundle is there all the same."""
    settings = ArtifactSettings(folder=tmp_path / "perf-artifacts", when="failing", captures=8)
    captures = EvidenceCollector(settings, tmp_path, ProgramStore(tmp_path))
    now = measurement(facts={"traces": 2}, processes=2)
    verdict = judge(CASE, (), now, record(), strict=True)
    assert verdict.fails
    taken = captures.take(verdict, SimpleNamespace(measurement=now), record(), explain=lambda _: "text", now=now)
    assert taken.capture.notes == ("not profiled: several processes",)
    assert "not profiled: several processes" in (tmp_path / "perf-artifacts" / CASE / "report.md").read_text()
