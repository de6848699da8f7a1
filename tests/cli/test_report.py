"""``jaxgate report``: a page of one result or of several, and never over a file that is somebody else's."""

import json
from pathlib import Path

import pytest
from support.factories import CASE, TEST, measurement, record

from jaxgate.cli.main import main
from jaxgate.ext.page.command import result_names
from jaxgate.judge.verdict import judge
from jaxgate.keep.results import read_results
from jaxgate.model.outcome import Outcome
from jaxgate.report.results import results_json


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """An empty folder, with one result."""
    monkeypatch.chdir(tmp_path)
    leave("perf-artifacts")


def leave(folder, **changes):
    """What a run of one case leaves."""
    verdict = judge(CASE, [], measurement(), record(), strict=False)
    content = json.loads(results_json(Outcome(verdicts=(verdict,), tests={CASE: TEST}, texts={}, commit="c" * 40)))
    content["cases"][0] |= changes
    Path(folder).mkdir()
    (Path(folder) / "results.json").write_text(json.dumps(content))


def test_the_page_lies_beside_the_results(capsys):
    """Of the last run by default; the same file by its name makes the same page."""
    assert main(["report"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "perf-artifacts/report.html"
    page = Path("perf-artifacts/report.html").read_text()
    assert CASE in page
    assert main(["report", "perf-artifacts/results.json", "--output", "one.html"]) == 0
    assert Path("one.html").read_text() == page


def test_several_results_are_named_by_their_hardware(capsys):
    """The page lies where the user stands; links to bundles lead to each result's own folder."""
    leave("gpu", hardware="gpu-h200-1", bundle="gpu/scan", fails=True, status="REGRESSED")
    assert main(["report", "perf-artifacts", "gpu"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "report.html"
    page = Path("report.html").read_text()
    assert "2 results side by side" in page
    assert "gpu-h200-1: 1 of 1 case failed" in page
    assert f'href="./gpu/{CASE}/report.md"' in page


def test_results_are_named_by_what_tells_them_apart():
    """Hardware, else commits, else folders, else files, else their order."""
    leave("a")
    run = read_results(Path("a/results.json"))
    assert result_names([Path("a/results.json"), Path("b/results.json")], [run, run]) == ["a", "b"]
    assert result_names([Path("a/x.json"), Path("a/y.json")], [run, run]) == ["a/x.json", "a/y.json"]
    assert result_names([Path("a/x.json")] * 2, [run, run]) == ["1: a/x.json", "2: a/x.json"]


def test_somebody_elses_file_stays(capsys):
    """A page of ours is written over, nothing else is."""
    Path("mine.html").write_text("<h1>mine</h1>")
    assert main(["report", "--output", "mine.html"]) == 2
    told = "expected a page of jaxgate's or no file yet, found a file that jaxgate did not write; name another file"
    assert f"jaxgate report: mine.html cannot be written: {told}" in capsys.readouterr().err
    assert Path("mine.html").read_text() == "<h1>mine</h1>"
    for link in ("nowhere.html", "perf-artifacts/report.html"):
        Path("link.html").symlink_to(link)
        assert main(["report", "--output", "link.html"]) == 2
        assert "found a link" in capsys.readouterr().err
        assert Path("link.html").readlink() == Path(link)
        Path("link.html").unlink()
    assert main(["report"]) == main(["report"]) == 0


@pytest.mark.parametrize("arguments", [["nothing"], ["perf-artifacts", "nothing"], ["--unknown"]])
def test_what_cannot_be_read_is_refused(arguments, capsys):
    assert main(["report", *arguments]) == 2
    assert capsys.readouterr().err.startswith("jaxgate report: ")
    assert not Path("perf-artifacts/report.html").exists()


def test_a_page_that_cannot_be_written_is_one_line(capsys):
    Path("file").touch()
    assert main(["report", "--output", "file/page.html"]) == 2
    assert "file/page.html cannot be written" in capsys.readouterr().err
