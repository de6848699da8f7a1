"""--perf-update: exactly the selected cases, whole files, a line in the log."""

import json
import signal

import pytest
from support.corpora import nightly
from support.fakes import duel
from support.lines import line_here
from support.projects import TWO, model

from jaxgate.keep.log import read_log


def test_only_selected_cases_are_written(project):
    """A selection creates its own files and leaves every other file as it was."""
    project.write("test_model.py", TWO)
    assert project.run("-k", "first", "--perf-update").code == 0
    before = project.baselines()
    assert [path.split("/", 1)[1] for path in before] == ["model/first.json"]
    project.edit("test_model.py", "x * 2", "x * 3")
    assert project.run("-k", "second", "--perf-update").code == 0
    after = project.baselines()
    assert [path.split("/", 1)[1] for path in after] == ["model/first.json", "model/second.json"]
    assert after[next(iter(before))] == before[next(iter(before))]


def test_a_broken_claim_is_not_recorded(project):
    """Nothing that no baseline can make right is accepted; the old file stays."""
    project.write("test_model.py", TWO).record()
    before = project.baselines()
    project.edit("test_model.py", "return x * 2", "return x * jnp.nan")
    project.edit("test_model.py", "gate(second, jnp.ones(8))", "gate(second, jnp.ones(8), expected_traces=2)")
    result = project.run("--perf-update")
    result.counts(failed=2)
    result.shows("INVALID  model/first", "REGRESSED  model/second", "claim traces = 2: 1 against 2")
    assert project.baselines() == before


@pytest.mark.parametrize("moment", [pytest.param("before the rename", marks=nightly), "between two cases"])
def test_a_killed_update_leaves_whole_files(project, moment):
    """A run killed while it records leaves each baseline old or new, never half."""
    project.write("test_model.py", TWO).record()
    before = project.baselines()
    project.edit("test_model.py", "x * 2", "x * 3")
    project.edit("test_model.py", "x + 1", "x + 2")
    killed_at = 1 if moment == "before the rename" else 2
    project.write(
        "conftest.py",
        "import os, signal\nreal = os.replace\ncalls = []\n"
        "def replace(a, b, *rest, **options):\n"
        "    if str(b).endswith('.json'):\n"
        "        calls.append(b)\n"
        f"        if len(calls) == {killed_at}:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return real(a, b, *rest, **options)\n"
        "os.replace = replace\n",
    )
    done = project.alone("-m", "pytest", "-p", "no:cacheprovider", "--perf-update", "--perf-budget=0")
    assert done.returncode == -signal.SIGKILL
    after = project.baselines()
    assert sorted(after) == sorted(before)
    for content in after.values():
        json.loads(content)
    changed = [path.rsplit("/", 1)[1] for path in after if after[path] != before[path]]
    assert changed == ([] if killed_at == 1 else ["first.json"])
    (project.path / "conftest.py").unlink()
    project.run("--perf-update").counts(passed=2)


def test_borrowed_baselines_gate_and_are_not_overwritten(project):
    """Hardware of the same platform lends its baseline; recording writes this machine's own."""
    project.write("test_model.py", TWO).record()
    for case in ("model/first", "model/second"):
        project.lend(case)
    result = project.run("--perf-strict")
    result.counts(passed=2)
    assert "hardware changed" in result.line("model/first")
    project.edit("test_model.py", "return x * 2", "return x @ jnp.ones((8, 8))")
    result = project.run("-k", "first")
    result.counts(failed=1, deselected=1)
    result.shows(f"borrowed from cpu-other-1-jax-{line_here()}")
    project.run("-k", "second", "--perf-update").shows("CREATED  model/second")


@nightly
def test_a_loss_that_is_recorded_stands_in_the_log(project):
    """With its worst figure; whoever gives no reason is asked for one, and nothing is refused."""
    project.write("test_model.py", model("jnp.ones(64)", step="x * 2", other="x + 1")).record()
    project.edit("test_model.py", "return x * 2", "return jnp.concatenate([x, x]) * 2")
    result = project.run("--perf-update")
    result.counts(passed=2)
    result.shows("REASON WANTED: 1 refreshed case is worse (model/step); say why with --perf-why TEXT")
    (entry,) = [entry for entry in project.log() if "refreshed" in entry]
    assert "refreshed `model/other`, `model/step` (output_bytes 512 B against 256 B = 2.00 ×, allowed" in entry
    assert entry.strip().endswith("Why: (no reason given)")
    (read,) = [
        read for read in read_log(project.path / "baselines") if "model/step" in read.cases and len(read.cases) == 2
    ][-1:]
    assert read.cases == ("model/other", "model/step")
    project.edit("test_model.py", "concatenate([x, x])", "concatenate([x, x, x, x])")
    result = project.run("--perf-update", "--perf-why=a longer result")
    assert "REASON WANTED" not in result.text
    (entry,) = [entry for entry in project.log() if "a longer result" in entry]
    assert "1.02 kB against 512 B = 2.00 ×" in entry


def test_a_recording_without_a_loss_asks_for_nothing(project):
    """Neither a new baseline nor one that is better needs a reason."""
    project.write("test_model.py", TWO)
    assert "REASON WANTED" not in project.run("--perf-update").text
    assert "REASON WANTED" not in project.run("--perf-update").text
    assert all("(" not in entry.partition("Why:")[0] for entry in project.log())


def test_a_refresh_is_timed_beside_what_it_replaces(project, lab):
    """A slow-down that is accepted stands in the log with its figure, and is no failure."""
    project.write("test_model.py", TWO).record()
    project.edit("test_model.py", "x * 2", "x * 3")
    lab.finds["baseline"] = duel(1.2)
    result = project.run("--perf-update", "--perf-why", "three")
    result.counts(passed=2)
    assert lab.duelled == ["baseline"]
    log = "".join(entry.read_text() for entry in (project.path / "baselines/log").iterdir())
    assert (
        "refreshed `model/first` (a call takes 12 ms against 10 ms = 1.20 ×, allowed 10.3 ms), `model/second`." in log
    )
    first, second = project.results()["cases"]
    assert (first["status"], first["recorded"], first["time"]["ratio"]) == ("SLOWER", "refreshed", pytest.approx(1.2))
    assert (second["status"], second["recorded"], second["time"]["ratio"]) == ("SAME", "refreshed", None)
    lab.finds["baseline"] = duel(1.0)
    project.run().counts(passed=2)


@pytest.mark.parametrize("damage", ["unlink", "write_bytes"])
def test_a_baseline_without_its_program_is_replaced_untimed(project, lab, damage):
    """A lost program is a reason to record again, not a reason against it."""
    project.write("test_model.py", TWO).record()
    project.edit("test_model.py", "x * 2", "x * 3")
    for program in (project.path / "baselines/programs").iterdir():
        program.unlink() if damage == "unlink" else program.write_bytes(b"x")
    project.run("--perf-update").counts(passed=2)
    first = project.results()["cases"][0]
    assert (first["recorded"], first["time"]["ratio"]) == ("refreshed", None)
    assert "missing or damaged" in first["time"]["reason"]
    project.run().counts(passed=2)


def test_a_first_recording_and_one_without_a_clock_are_not_timed(project, lab):
    """There is nothing to be timed beside, or no clock."""
    project.write("test_model.py", TWO).run("--perf-update")
    assert lab.duelled == []
    project.edit("test_model.py", "x * 2", "x * 3")
    project.run("--perf-update", "--benchmark-disable").counts(passed=2)
    assert lab.duelled == []


def test_what_may_be_worse_can_be_named(project):
    """A case that is worse in something else stays red, and its baseline as it was; one that is no worse is recorded."""
    project.write("test_model.py", model("jnp.ones(64)", step="x * 2", other="x + 1")).record()
    project.edit("test_model.py", "return x * 2", "return jnp.concatenate([x, x]) * 2")
    before = project.baselines()
    facts = ("--benchmark-disable", "--perf-update=refresh", "--perf-why=longer")
    refused = project.run(*facts, "--perf-accept=trace_calls,stablehlo_ops")
    assert refused.code == 1
    refused.shows("REGRESSED  model/step", "output_bytes 512 B against 256 B", "REFRESHED  model/other")
    after = project.baselines()
    step = next(name for name in before if "step" in str(name))
    assert before[step] == after[step]
    accepted = project.run(*facts, "--perf-accept", "output_bytes, temp_bytes,xla_bytes,stablehlo_ops,trace_calls")
    assert accepted.code == 0
    accepted.shows("REFRESHED  model/step")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--perf-update", "--perf-accept=temp_byte"), "found 'temp_byte'; did you mean temp_bytes"),
        (("--perf-accept=temp_bytes",), "--perf-accept says what a recording may accept; it needs --perf-update"),
        (("--perf-update=create", "--perf-accept=time"), "it needs --perf-update"),
    ],
)
def test_what_cannot_be_accepted_is_refused(project, options, told):
    found = project.write("test_model.py", TWO).run(*options)
    assert found.code == 4
    assert told in found.text
