"""``jaxgate bisect`` as it is typed: the answer, the table, an interruption, and one line for what makes no sense."""

import argparse
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from bisections.plants import build, git
from bisections.plants import project as files_of
from support.corpora import nightly
from support.factories import steady
from support.fakes import Lab

from jaxgate.cli import main as cli
from jaxgate.ext.bisect.revisions import Revisions
from jaxgate.ext.bisect.run import bisect, find_test, support_files
from jaxgate.model.outcome import UsageError
from jaxgate.processes.pytest_child import judge_test, record_selection

NODE = "test_model.py::test_step"
TYPED = dict.fromkeys(("bad", "over", "fact", "tests"), "") | {"compare_with": "good", "also": []}
TYPED |= {"first_parent": False, "reset": False}
COMMITS = 4


@pytest.fixture
def cache(tmp_path_factory, monkeypatch):
    """A cache of the user's own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "jaxgate"


@pytest.fixture
def repository(project, cache, monkeypatch):
    """Make a repository whose commits are these files, stand in it, and search it with runs in this process."""

    def make(files):
        for path in project.path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        commits = build(project.path / "here", files, COMMITS)
        monkeypatch.chdir(project.path / "here")
        return commits

    return make


@pytest.fixture
def search(project):
    """The command, whose runs of pytest take place in this process."""
    runs = []

    def run(command, **how):
        runs.append(command)
        return project.run_here(command, **how)

    def start(case=NODE, *arguments, interrupted_at=0, **asked):
        def run_until(command, **how):
            if len(runs) == interrupted_at > 0:
                raise KeyboardInterrupt
            return run(command, **how)

        revisions = partial(
            Revisions, record=partial(record_selection, run=run_until), judge=partial(judge_test, run=run_until)
        )
        return bisect(argparse.Namespace(**TYPED | {"case": case, "rest": arguments} | asked), search=revisions)

    start.runs = runs
    return start


def small(number, **files):
    """A project that has a third layer since its third commit."""
    return files_of(number, layers=2 if number < 3 else 3, turns=2, **files)


@nightly
def test_the_first_bad_commit_is_named_with_its_verdict(repository, search, capsys, cache):
    """Hash, date and subject; the table of what was measured; which side it was compared with; the red text.

    It was interrupted at its first step: the same command goes on, and measures neither side again.
    """
    commits = repository(small)
    assert search(good=commits[0], interrupted_at=3) == 130
    assert "interrupted; the same command goes on from here" in capsys.readouterr().out
    assert search(good=commits[0]) == 0
    assert len(search.runs) == 3 + 3  # both sides and their comparison; two steps and the verdict
    out = capsys.readouterr().out
    assert f"the first bad commit of model/step: {commits[3]} of 2023-11-15T01:13:20+00:00 by A: Commit 3" in out
    assert "each commit was compared with the good side: bad is more than 2.1 MFLOP" in out
    assert "REGRESSED  model/step  on " in out
    assert "culprit   float32[128,64] x float32[64,64] 2 → 3 at model.py:7; comes from: code" in out
    assert re.search(rf"^   1  {commits[2][:10]}  +2.1 MFLOP  good  like the good side$", out, re.MULTILINE)
    assert re.search(rf"^   2  {commits[3][:10]}  +3.15 MFLOP  bad   like the bad side$", out, re.MULTILINE)
    assert len(git(Path(), "worktree", "list").splitlines()) == 1
    assert not [*cache.glob("bisect/*/worktree")]
    runs = len(search.runs)
    assert search(good=commits[0], compare_with="bad") == 0  # another question of what was recorded
    assert len(search.runs) - runs == 1 + 1  # the comparison of both sides, the verdict
    assert f"the first bad commit of model/step: {commits[3]} " in capsys.readouterr().out


@nightly
def test_todays_test_is_taken_where_the_good_side_has_none(repository, search, capsys):
    def files(number):
        found = small(number)
        return found if number >= 4 else {name: found[name] for name in ("pyproject.toml", "model.py")}

    commits = repository(files)
    assert search(good=commits[0]) == 0
    out = capsys.readouterr().out
    assert f"the first bad commit of model/step: {commits[3]} " in out
    assert "measured with the tests of today" in out


@nightly
def test_broken_commits_are_skipped(repository, search, capsys):
    """Why they could not be measured stands in the table; the answer is all that may be it, and the exit code says so."""
    commits = repository(lambda number: small(number, **({"model.py": "def half(:\n"} if number == 2 else {})))
    assert search(good=commits[0]) == 1
    out = capsys.readouterr().out
    assert "skipped  not measured: SyntaxError: invalid syntax" in out
    assert f"the first bad commit of model/step is one of 2, as 1 could not be measured:\n  {commits[2]}" in out


def test_duels_decide_where_no_fact_moved(repository, search, project, monkeypatch, capsys):
    """20 % slower since the third commit; a commit whose program is the good side's is not duelled, another one is."""
    lab = Lab(project.path, monkeypatch)
    lab.processes, duelled = [1.2], []

    def run_duel(*_sides, **_how):
        text = Path("model.py").read_text()
        duelled.append(re.search(r"commit (\d)", text)[1])
        return steady(1.2 if "(0, 24," in text else 1.0)

    project.instruments_there = {**lab.instruments, "run_duel": run_duel}
    commits = repository(lambda number: files_of(number, turns=20 if number < 3 else 24, every=2))
    assert search(good=commits[0]) == 0
    out = capsys.readouterr().out
    assert "no fact is worse; a call takes 1.20 × the good side's time" in out
    assert re.search(rf"^   1  {commits[2][:10]}  +1.00 ×  good  SAME by a duel$", out, re.MULTILINE)
    assert f"the first bad commit of model/step: {commits[3]} " in out
    assert "SLOWER  model/step  on" in out
    assert "in fresh processes 1.200 ×" in out
    assert duelled == ["4", "2", "3"]


def test_sides_that_are_alike_are_told(repository, search, capsys):
    """Nothing between them is tried; uncommitted changes are no part of it, and that is said."""
    commits = repository(lambda number: small(0, notes=str(number)))
    Path("model.py").write_text(small(4)["model.py"])
    assert search(good=commits[0]) == 1
    out = capsys.readouterr().out
    assert "there are uncommitted changes: they take no part" in out
    assert "no fact is worse or better on the bad side than on the good one; time is SAME: identical program" in out


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ([NODE], "expected a case and a good side: jaxgate bisect CASE --good REV"),
        ([NODE, "--good", "nope"], "expected a revision that git knows, found nope"),
        ([NODE, "--good", "main"], "as --good and as --bad"),
        (["--good", "main", NODE], "as --good and as --bad"),  # it may stand after the options
        ([NODE, "--good", "main", "--bad", "main~1"], "expected --good to be an ancestor of --bad"),
        ([NODE, "--good", "main~1", "--fact", "temp"], "did you mean temp_bytes"),
        ([NODE, "--good", "main~1", "--with", "no.py"], "expected a file or folder to copy, found none: --with no.py"),
        (
            ["test_none.py::test_step", "--good", "main~1"],
            "expected one test that is there, found test_none.py::test_step",
        ),
        (
            [NODE, "--good", "1.0", "--over", "no-such-package"],
            "expected a package that is installed here, found --over",
        ),
        ([NODE, "--good", "1.0", "--over", "jax", "--tests=own"], "--tests, --with and --first-parent are for commits"),
    ],
)
def test_what_makes_no_sense_is_one_line(repository, capsys, typed, message):
    repository(small)
    assert cli.main(["bisect", *typed]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1
    assert said.count("jaxgate bisect:") == 1


def test_without_git_there_is_one_line(project, cache, monkeypatch, capsys):
    project.write("test_model.py", small(0)["test_model.py"])
    monkeypatch.chdir(project.path)
    assert cli.main(["bisect", NODE, "--good", "HEAD~1"]) == 2
    assert "is not a git checkout" in capsys.readouterr().err


def test_a_damaged_state_is_one_line(repository, search, cache, capsys):
    commits = repository(small)
    assert search(good=commits[0], interrupted_at=1) == 130
    (state,) = cache.glob("bisect/*/questions/first-good.json")
    state.write_text("{")
    capsys.readouterr()
    assert search(good=commits[0]) == 2
    assert "is not JSON" in (said := capsys.readouterr().err)
    assert "jaxgate bisect --reset" in said
    assert cli.main(["bisect", "--reset"]) == 0
    assert not (cache / "bisect").exists()
    assert "removed" in capsys.readouterr().out


TESTS = ["test_model.py::test_step", "a/test_scan.py::test_scan[rnn-of-3]", "b/test_scan.py::test_scan[rnn-of-3]"]
CATALOGUED = "scan/rnn-of-3"


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Find a test in a project with these."""
    monkeypatch.setattr("jaxgate.ext.bisect.run.collect_tests", lambda *_: TESTS)
    for test in TESTS:
        (tmp_path / test.partition("::")[0]).parent.mkdir(exist_ok=True)
        (tmp_path / test.partition("::")[0]).touch()
    return lambda named, *paths: find_test(
        named, paths, project=tmp_path, baselines=tmp_path / "baselines", environ={}, here=tmp_path / "a"
    )


def test_a_test_is_found_by_the_name_of_its_case(found):
    """Also one of a catalogue, by its parameters; several are told apart by their folders, or refused."""
    assert found("model/step").test == TESTS[0]
    assert found(f"b.{CATALOGUED}").test == TESTS[2]
    with pytest.raises(UsageError, match=r"several tests may have the case .*; name one in its place"):
        found(CATALOGUED)
    for typed in ("model/stop", "step"):
        with pytest.raises(UsageError, match=rf"no test for '{typed}'; did you mean model/step.*\? A test that names"):
            found(typed)
    with pytest.raises(UsageError, match=r"no test for 'quux'; looked at \d tests\. A test that names"):
        found("quux")


def test_a_test_is_named_beside_its_case(found):
    """From where the user stands; it may name its cases itself."""
    named = found("mine/own", "test_scan.py::test_scan")
    assert (named.case, named.test) == ("mine/own", "a/test_scan.py::test_scan")
    assert found("../test_model.py::test_step").case == ""


def test_what_a_test_needs_is_copied_with_it(tmp_path):
    """Conftests and packages on the way to it, and what was named."""
    for name in ("conftest.py", "a/conftest.py", "a/__init__.py", "a/test_x.py", "b/conftest.py", "help/one.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = support_files(Path("a/test_x.py"), tmp_path, [Path("help")])
    assert [file.as_posix() for file in found] == [
        "a/test_x.py", "a/conftest.py", "a/__init__.py", "conftest.py", "help/one.py",
    ]  # fmt: skip
