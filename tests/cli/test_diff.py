"""``jaxgate diff``: sides by file, by hardware and by revision, and what is refused."""

import json
from dataclasses import replace

import pytest
from support.factories import baseline, measurement, record
from support.git import commit, git

from jaxgate.cli.main import main
from jaxgate.judge.figures import figures_of
from jaxgate.judge.verdict import judge
from jaxgate.keep.baselines import save_baseline
from jaxgate.model.machine import HardwareKey
from jaxgate.model.outcome import Outcome
from jaxgate.report.results import results_json

GPU = HardwareKey(platform="gpu", device_kind="h200:8", devices=1)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def results(path, *cases, **facts):
    """What a run of these cases left."""
    now = measurement(facts=facts)
    verdicts = [
        replace(judge(case, [], now, record(), strict=False), figures=figures_of(now, record())) for case in cases
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = Outcome(verdicts=tuple(verdicts), tests={}, texts={}, commit="c" * 40, moment="2026-11-25T02:30:00+00:00")
    path.write_text(results_json(whole))


def test_two_runs(here, capsys):
    """A file and a folder; the numbers, their ratio and what each side is."""
    results(here / "before.json", "scan/a", "scan/b", "scan/gone")
    results(here / "perf-artifacts/results.json", "scan/a", "scan/b", temp_bytes=40_000)
    assert main(["diff", "before.json", "perf-artifacts"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = "first before.json run of 2026-11-25 02:30 at cccccccccc, jax 0.10.2, cpu-amd-epyc-1, green"
    assert " ".join(lines[0].split()) == head
    assert "2 cases on both sides: 2 worse" in lines
    assert "WORSE   scan/a" in lines
    assert "        temp_bytes 20 kB → 40 kB = 2.00 ×; peak_bytes 38.4 kB → 58.4 kB = 1.52 ×" in lines
    assert "only on the first side: 1 case: scan/gone" in lines
    assert (
        "run_ns: 1.00 × on the whole (2 cases, geometric mean), at most 1.00 × in scan/a; taken at two moments, not judged"
        in lines
    )


def test_markdown_json_and_a_page(here, capsys):
    results(here / "a.json", "scan/a")
    results(here / "b.json", "scan/a", temp_bytes=40_000)
    assert main(["diff", "a.json", "b.json", "--markdown"]) == 0
    assert "| ❌ | `scan/a` | `temp_bytes` | 20 kB | 40 kB | 2.00 × |" in capsys.readouterr().out
    assert main(["diff", "a.json", "b.json", "--json"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert (case["way"], case["facts"][0]["second"], case["facts"][0]["ratio"]) == ("WORSE", 40_000, 2.0)
    assert main(["diff", "a.json", "b.json", "--page", "diff.html"]) == 0
    assert capsys.readouterr().out == "diff.html\n"
    assert ">40 kB<" in (here / "diff.html").read_text()


def test_hardware_and_targets(here, capsys):
    """All folders of some hardware of the newest line; a target by its name; nothing is called worse."""
    for line in ("0.10.2", "0.12.0.1"):
        for case in ("scan/a", "scan/b"):
            save_baseline(here / "baselines", baseline(case=case, environment={"jax": line}))
    save_baseline(
        here / "baselines",
        baseline(case="scan/a", hardware=GPU, environment={"jax": "0.10.2"}, facts={"temp_bytes": 1}),
    )
    assert main(["diff", "cpu-amd-epyc", "gpu:h200:8"]) == 0
    out = capsys.readouterr().out
    assert "2 baselines of cpu-amd-epyc-1-jax-0.12; there is jax 0.10, too: cpu-amd-epyc-jax-0.10" in out
    assert "1 case on both sides: 1 moved; hardware or release line differ, so nothing is called worse or better" in out
    assert main(["diff", "cpu-amd-epyc-1-jax-0.10", "cpu-amd-epyc-jax-0.12"]) == 0
    assert "2 cases on both sides: 2 the same" in capsys.readouterr().out


def test_revisions(here, capsys):
    """What two commits have stored, whatever lies in the checkout, each case with its own hardware."""
    git(here, "init", "-q", "-b", "main")
    for hardware in (measurement().hardware, GPU):
        save_baseline(here / "baselines", baseline(case="scan/a", hardware=hardware))
    first = commit(here, "first")
    save_baseline(here / "baselines", baseline(case="scan/a", facts={"temp_bytes": 90_000}))
    commit(here, "second")
    save_baseline(here / "baselines", baseline(case="scan/a", facts={"temp_bytes": 1}))
    assert main(["diff", first, "HEAD"]) == 0
    out = capsys.readouterr().out
    assert "2 cases on both sides: 1 worse, 1 the same" in out
    assert "WORSE   scan/a on cpu-amd-epyc-1-jax-0.10" in out
    assert "temp_bytes 20 kB → 90 kB" in out


def test_a_commit_of_the_history(here, capsys, monkeypatch):
    """What a run of it measured goes before what it has stored; a commit without a run is taken for its baselines."""
    monkeypatch.setenv("JAXGATE_HISTORY", "runs.sqlite")
    save_baseline(here / "baselines", baseline(case="scan/a", facts={"temp_bytes": 90_000}))
    stored = commit(here)
    results(here / "a.json", "scan/a")
    ran = json.loads((here / "a.json").read_text()) | {"run": "r1"}
    (here / "a.json").write_text(json.dumps(ran))
    assert main(["history", "--import", "a.json"]) == 0
    assert main(["diff", "cccccccc", "HEAD"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "history of cccccccccc, 2026-11-25 02:30, cpu-amd-epyc-1-jax-0.10" in lines[1]
    assert f"1 baseline of {stored[:10]}" in lines[2]
    assert "        temp_bytes 20 kB → 90 kB = 4.50 ×; peak_bytes 38.4 kB → 108 kB = 2.82 ×" in lines


def test_a_history_that_cannot_be_read_is_said(here, capsys, monkeypatch):
    (here / "runs.sqlite").write_bytes(b"no database" * 100)
    monkeypatch.setenv("JAXGATE_HISTORY", "runs.sqlite")
    results(here / "a.json", "scan/a")
    assert main(["diff", "a.json", "cccccccc"]) == 2
    assert "the history cannot be asked for cccccccc:" in capsys.readouterr().err


def test_a_revision_that_git_cannot_hand_over(here, capsys):
    """A folder that .gitattributes keeps out of archives, and a link that leads elsewhere: one line, no traceback."""
    save_baseline(here / "baselines", baseline(case="scan/a"))
    (here / ".gitattributes").write_text("baselines export-ignore\n")
    commit(here)
    assert main(["diff", "HEAD", "HEAD"]) == 2
    assert "expected baselines in HEAD, found what git archive cannot hand over" in capsys.readouterr().err
    (here / ".gitattributes").unlink()
    (here / "baselines/cpu-amd-epyc-1-jax-0.10/scan/l.json").symlink_to("/etc/hostname")
    commit(here)
    assert main(["diff", "HEAD", "HEAD"]) == 2
    assert "or has it links?" in capsys.readouterr().err


def test_cases_without_facts_are_not_called_the_same(here, capsys, monkeypatch):
    """What could not be measured, or was only timed, has nothing that could differ: it is left out."""
    monkeypatch.setenv("JAXGATE_HISTORY", "runs.sqlite")
    results(here / "a.json", "scan/a", "scan/b")
    content = json.loads((here / "a.json").read_text()) | {"run": "r1"}
    content["cases"][1]["figures"] = None
    (here / "a.json").write_text(json.dumps(content))
    assert main(["history", "--import", "a.json"]) == 0
    results(here / "b.json", "scan/a", "scan/b")
    capsys.readouterr()
    assert main(["diff", "cccccccc", "b.json"]) == 0
    out = capsys.readouterr().out
    assert "1 case on both sides: 1 the same" in out
    assert "only on the second side: 1 case: scan/b" in out


def test_a_revision_whose_baselines_cannot_be_read(here, capsys):
    """The file is named by its revision, not by a folder that is gone."""
    git(here, "init", "-q", "-b", "main")
    path = save_baseline(here / "baselines", baseline(case="scan/a"))
    path.write_text(path.read_text().replace('"schema": 5', '"schema": 4'))
    commit(here, "old")
    assert main(["diff", "HEAD", "HEAD"]) == 2
    err = capsys.readouterr().err
    assert "cpu-amd-epyc-1-jax-0.10/scan/a.json: expected schema 5, found 4" in err
    assert "jaxgate-" not in err.removeprefix("jaxgate diff")


@pytest.mark.parametrize(
    ("sides", "says"),
    [
        (("a.json", "nothing-here"), "expected results.json or the folder that has it, a revision of git"),
        (("a.json", "--", "-x"), "found '-x'"),
        (("a.json", "half.json"), "half.json: expected the results.json of a run"),
        (("a.json", "bare.json"), "bare.json: expected figures of cases, found none"),
        (("a.json", "other.json"), "share no case: 1 on the first side, 1 on the second"),
    ],
)
def test_what_cannot_be_compared_is_refused(here, capsys, sides, says):
    """One clear line and exit code 2: nothing that could not be read looks like no difference."""
    results(here / "a.json", "scan/a")
    results(here / "other.json", "scan/b")
    (here / "half.json").write_text('{"schema": 1')
    bare = json.loads((here / "a.json").read_text())
    bare["cases"][0]["figures"] = None
    (here / "bare.json").write_text(json.dumps(bare))
    assert main(["diff", *sides]) == 2
    assert says in capsys.readouterr().err
