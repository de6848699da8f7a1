"""``jaxgate gate --perf-target … --perf-target …``: a run for each target, one page and one exit code for all."""

import json
from functools import partial
from pathlib import Path

import pytest
from support.factories import CASE, TEST, measurement, record

from jaxgate.cli.comment import comment
from jaxgate.cli.gate import gate
from jaxgate.judge.verdict import judge
from jaxgate.keep.artifacts import Artifacts
from jaxgate.model.outcome import Outcome
from jaxgate.report.results import results_json

V5E, H200 = "tpu:v5e:2x4", "gpu:h200:8"
BOTH = [f"--perf-target={V5E}", f"--perf-target={H200}"]


def a_case(name="model/step", status="SAME", **about):
    """A case as ``results.json`` has it."""
    finding = {"name": "temp_bytes", "status": status, "now": 3e9, "against": 2e9, "detail": ""}
    return {
        "case": name,
        "status": status,
        "fails": status == "REGRESSED",
        "time": {"ratio": None},
        "findings": [] if status == "SAME" else [finding],
    } | about


def a_run(code=0, *cases, **about):
    """What a run leaves."""
    return {
        "gate_exit": code,
        "commit": "c0ffee",
        "cases": list(cases) or [a_case()],
        "unfit": [],
        "undecided_changed": [],
        "problems": [],
        "not_judged": [],
        **about,
    }


@pytest.fixture
def played(monkeypatch, tmp_path):
    """The gate, the arguments of each run of pytest by its target, and what each is to leave."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "baselines/cpu-a-1-jax-0.10/model").mkdir(parents=True)
    for slug in ("cpu-a-1", "tpu-v5e-2x4-1", "gpu-h200-8-1"):
        file = tmp_path / f"baselines/{slug}-jax-0.10/model/step.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    asked, left = {}, {}

    def run(command, environ, limit_s):
        named = [part.partition("=")[2] for part in command if part.startswith("--perf-target=")]
        name = named[0] if named else "here"
        asked[name] = list(command[3:])
        assert "JAXGATE_TARGET" not in environ
        assert "GITHUB_STEP_SUMMARY" not in environ
        (folder,) = [part.partition("=")[2] for part in command if part.startswith("--perf-artifacts=")]
        mine = Artifacts(Path(folder))
        mine.begin()
        mine.write_page("summary.md", f"page of {name}")
        if left.get(name, a_run()) is not None:
            Path(environ["JAXGATE_RESULTS_INTO"]).write_text(json.dumps(left.get(name, a_run())))
        return left.get(name, a_run())["gate_exit"] if left.get(name, a_run()) else 1

    environ = {"JAX_PLATFORMS": "cpu", "JAXGATE_TARGET": "tpu:v4:2x2x1", "GITHUB_STEP_SUMMARY": str(tmp_path / "page")}
    return partial(gate, environ=environ, run=run), asked, left


def test_each_target_has_a_run_and_a_folder_of_its_own(played, capsys, tmp_path):
    """All other arguments go to all; what is attached is one of them by the word ``here``."""
    run, asked, _ = played
    assert run(["--perf-target", V5E, "-k", "scan", f"--perf-target={H200}", "--perf-target=here"]) == 0
    assert list(asked) == [V5E, H200, "here"]
    for name, folder in ((V5E, "tpu-v5e-2x4"), (H200, "gpu-h200-8"), ("here", "here")):
        assert f"--perf-artifacts={Path('perf-artifacts') / folder}" in asked[name]
        assert asked[name][asked[name].index("-k") + 1] == "scan"
        assert V5E not in asked[name]
    out = capsys.readouterr().out
    assert f"jaxgate gate: {V5E}: 1 case passed (exit code 0)" in out
    assert out.endswith("jaxgate gate: 3 runs passed (exit code 0)\n")


def test_one_page_shows_what_moved_and_where(played, tmp_path, capsys):
    """A row for each case that moved on any of them; a case that one does not have is a dash; the comment has it."""
    run, _, left = played
    left[V5E] = a_run(1, a_case("model/step", "REGRESSED"), a_case("model/quiet"))
    left[H200] = a_run(0, a_case("model/step", "IMPROVED"), a_case("model/more", "WAIVED"))
    assert run(BOTH) == 1
    page = (tmp_path / "perf-artifacts/summary.md").read_text()
    assert "## ❌ jaxgate: 1 of 2 runs passed" in page
    assert "| `model/step` | ❌ REGRESSED `temp_bytes` 2 GB → 3 GB | ✅ IMPROVED `temp_bytes` 2 GB → 3 GB |" in page
    assert "| `model/more` | – | ⚠️ WAIVED `temp_bytes` 2 GB → 3 GB |" in page
    assert "model/quiet" not in page
    assert (tmp_path / "page").read_text() == page
    capsys.readouterr()
    comment(tmp_path / "perf-artifacts", "c0ffee")
    assert "jaxgate: 1 of 2 runs passed" in capsys.readouterr().out


def test_a_program_that_no_longer_fits_says_what_it_needs(played, tmp_path):
    """In the compiler's figures, as in the line of the case."""
    run, _, left = played
    detail = "asked for 270.0 GB, the device has 141.0 GB of memory"
    finding = {"name": "", "status": "RESOURCE_EXHAUSTED", "now": None, "against": None, "detail": detail}
    left[H200] = a_run(1, a_case(status="RESOURCE_EXHAUSTED", fails=True, findings=[finding]))
    assert run(BOTH) == 1
    page = (tmp_path / "perf-artifacts/summary.md").read_text()
    assert f"| `model/step` | ✅ SAME | ❌ RESOURCE&#95;EXHAUSTED {detail} |" in page.replace(
        "RESOURCE_", "RESOURCE&#95;"
    )


@pytest.mark.parametrize(("codes", "code"), [((0, 3), 3), ((3, 2), 2), ((2, 1), 1), ((1, 3), 1)])
def test_a_regression_that_was_seen_stands(played, codes, code):
    """Whatever else went wrong on other hardware; nothing that is not known is fine."""
    run, _, left = played
    failing = {0: [], 1: [a_case(status="REGRESSED")], 2: [a_case()], 3: [a_case(status="NO_BASELINE", fails=True)]}
    for name, one in zip((V5E, H200), codes, strict=True):
        left[name] = a_run(one, *failing[one], unfit=["too little"] if one == 2 else [])
    assert run(BOTH) == code


def test_a_run_that_leaves_nothing_is_not_green(played, tmp_path, capsys):
    run, _, left = played
    left[H200] = None
    assert run(BOTH) == 2
    assert f"not fine: {H200} (exit code 2)" in capsys.readouterr().out
    assert "❌ `gpu:h200:8`: pytest ended with exit code 1 and judged nothing" in (
        tmp_path / "perf-artifacts/summary.md"
    ).read_text().replace("&#58;", ":")


@pytest.mark.parametrize(
    ("targets", "found"), [((V5E, V5E), "found tpu:v5e:2x4 twice"), ((V5E, "tpu:v99:2x4"), "expected a target such as")]
)
def test_what_is_no_set_of_targets_is_refused_before_anything_runs(played, capsys, targets, found):
    run, asked, _ = played
    assert run([f"--perf-target={name}" for name in targets]) == 2
    assert found in capsys.readouterr().err
    assert asked == {}


def test_until_all_runs_are_over_the_page_is_red_and_no_old_one_stands_for_a_broken_run(played, tmp_path):
    """A pipeline that is ended in between must not find the last one's page; nor is the folder somebody else's then."""
    run, _, left = played
    assert run(BOTH) == 0
    (judge,) = [run.keywords["run"]]
    seen = []

    def watched(command, environ, limit_s):
        seen.append((tmp_path / "perf-artifacts/summary.md").read_text())
        return judge(command, environ, limit_s)

    left[H200] = None
    assert gate(BOTH, environ=run.keywords["environ"], run=watched) == 2
    assert all(page.startswith("## ❌ jaxgate: no result") for page in seen)
    page = (tmp_path / "perf-artifacts/summary.md").read_text()
    assert f"page of {V5E}" in page
    assert f"page of {H200}" not in page
    Artifacts(tmp_path / "perf-artifacts").begin()
    assert not (tmp_path / "perf-artifacts/tpu-v5e-2x4").exists()


def a_whole_run():
    """What a run of one case really leaves."""
    verdict = judge(CASE, [], measurement(), record(), strict=False)
    return json.loads(results_json(Outcome(verdicts=(verdict,), tests={CASE: TEST}, texts={}, commit="c" * 40)))


def test_one_page_to_look_at_has_all_runs_that_left_something(played, tmp_path, capsys):
    """Named by their targets; one that left nothing, and one that cannot be read, are told of and change no exit code."""
    run, _, left = played
    left[V5E] = a_whole_run()
    left["here"] = a_whole_run() | {"cases": [a_case()]}
    assert run([f"--perf-target={V5E}", f"--perf-target={H200}", "--perf-target=here"]) == 0
    told = capsys.readouterr()
    assert "perf-artifacts/report.html is without gpu:h200:8: expected the results.json of a run" in told.err
    assert "perf-artifacts/report.html is without here" in told.err
    assert "all runs side by side: perf-artifacts/report.html" in told.out
    left["here"] = left[V5E]
    assert run([f"--perf-target={V5E}", "--perf-target=here"]) == 0
    page = (tmp_path / "perf-artifacts/report.html").read_text()
    assert "2 results side by side" in page
    assert f">{V5E}: " in page
    assert ">here: " in page


def test_a_page_that_cannot_be_made_is_one_line(played, monkeypatch, capsys):
    """Whatever is wrong with it: the verdicts stand."""
    run, _, left = played
    left[V5E] = left[H200] = a_whole_run()

    def broken(*_, **__):
        raise KeyError("calls")

    monkeypatch.setattr("jaxgate.ext.targets.runs.results_page", broken)
    assert run(BOTH) == 0
    assert "perf-artifacts/report.html could not be made: KeyError: 'calls'" in capsys.readouterr().err
