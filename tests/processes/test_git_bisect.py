"""A range of commits: git chooses among them, in a worktree of its own."""

import os
from pathlib import Path

import pytest
from bisections.plants import build
from support.git import git

from jaxgate.ext.bisect.model import Mark
from jaxgate.ext.bisect.ranges import CommitRange
from jaxgate.model.outcome import UsageError

COMMITS = 60


def numbered(number):
    """The files of a commit that says its number."""
    return {"number.txt": str(number), "tests/test_model.py": "own"}


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A repository of 60 commits after the first, and their names."""
    folder = tmp_path_factory.mktemp("history") / "project"
    return folder, build(folder, numbered, COMMITS)


@pytest.fixture
def within(history, tmp_path):
    """All of it as a range."""
    folder, commits = history
    found = made(folder, commits[0], commits[-1], tmp_path)
    yield found
    found.close()


def made(folder, good, bad, tmp_path, **changes):
    """A range of that repository."""
    return CommitRange(folder, good, bad, tmp_path / "search", files=[], environ=dict(os.environ), **changes)


def search(within, commits, first_bad, broken=(), marks=()):
    """Follow what is left to the end; gives it and what was tried."""
    marks = list(marks)
    while (left := within.left(marks)).following is not None:
        number = commits.index(left.following)
        mark = Mark.SKIPPED if number in broken else Mark.BAD if number >= first_bad else Mark.GOOD
        marks.append((left.following, mark))
    return left, marks


@pytest.mark.parametrize("first_bad", [1, 23, 38, 60])
def test_one_of_60_is_found_in_6_steps(within, history, first_bad):
    commits = history[1]
    left, tried = search(within, commits, first_bad)
    assert left.first_bad == (commits[first_bad],)
    assert len(tried) <= 6


def test_broken_commits_are_stepped_over(within, history):
    """How many steps they cost depends on where git looks beside them."""
    commits = history[1]
    left, tried = search(within, commits, 41, broken=range(27, 35))
    assert left.first_bad == (commits[41],)
    assert len(tried) <= 6 + 8


def test_where_only_skipped_ones_are_left_all_that_may_be_it_are_named(within, history):
    commits = history[1]
    left, _ = search(within, commits, 30, broken={28, 29, 30})
    assert left.following is None
    assert left.first_bad == tuple(commits[28:32])


def test_a_search_goes_on_from_its_marks(history, tmp_path):
    """In another process, whatever git's own state had become: the marks are told again."""
    folder, commits = history
    first = made(folder, commits[0], commits[-1], tmp_path)
    marks = [(commits[30], Mark.GOOD), (commits[45], Mark.BAD)]
    first.left(marks)
    again = made(folder, commits[0], commits[-1], tmp_path)
    left, tried = search(again, commits, 38, marks=marks)
    again.close()
    assert left.first_bad == (commits[38],)
    assert len(tried) <= 6


def test_the_checkout_is_not_touched(within, history):
    """Neither its files nor its state: no bisecting, no worktree is left."""
    folder, commits = history
    (folder / "number.txt").write_text("mine")
    before = git(folder, "status")
    with within.opened(commits[7], copied=False) as side:
        assert (side.project / "number.txt").read_text() == "7"
        search(within, commits, 38)
        assert git(folder, "status") == before
    within.close()
    git(folder, "checkout", "--quiet", "number.txt")
    assert len(git(folder, "worktree", "list").splitlines()) == 1
    assert not git(folder, "for-each-ref", "refs/bisect")


def test_nothing_of_a_commit_is_left_in_the_next_one(within, history):
    """Bytecode of the same second and size would be taken for the other commit's."""
    commits = history[1]
    with within.opened(commits[7], copied=False) as side:
        (side.project / "__pycache__").mkdir()
        (side.project / "number.txt").write_text("changed")
    with within.opened(commits[8], copied=False) as side:
        assert not (side.project / "__pycache__").exists()
        assert (side.project / "number.txt").read_text() == "8"


def test_todays_tests_lie_over_a_commit_where_they_are_copied(history, tmp_path):
    folder, commits = history
    git(tmp_path, "clone", "--quiet", str(folder), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    (clone / "tests/test_model.py").write_text("today")
    files = [Path("tests/test_model.py")]
    found = CommitRange(clone, commits[0], commits[-1], tmp_path / "search", files=files, environ={})
    with found.opened(commits[7], copied=True) as side:
        assert (side.project / "tests/test_model.py").read_text() == "today"
    with found.opened(commits[8], copied=False) as side:
        assert (side.project / "tests/test_model.py").read_text() == "own"
    found.close()


def test_code_comes_from_the_worktree(history, tmp_path, monkeypatch):
    """What sys.path finds in the checkout is found in the worktree instead."""
    folder, commits = history
    monkeypatch.syspath_prepend(folder)
    found = made(folder, commits[0], commits[-1], tmp_path)
    with found.opened(commits[7], copied=False) as side:
        assert str(side.project.resolve()) in side.environment["PYTHONPATH"].split(os.pathsep)
    found.close()


def test_the_good_side_must_be_an_ancestor(history, tmp_path):
    folder, commits = history
    with pytest.raises(UsageError, match=rf"expected --good to be an ancestor.*--good {commits[3][:10]}"):
        made(folder, commits[5], commits[3], tmp_path)
    with pytest.raises(UsageError, match="expected two commits"):
        made(folder, commits[5], commits[5], tmp_path)
