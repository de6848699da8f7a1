"""git is asked about a checkout that a stranger may have filled, and runs nothing of it."""

import shutil

import pytest
from support.git import commit, git

from jaxgate.keep.git import changed_lines, last_committers, run_git, uncommitted

MONITOR = "#!/bin/sh\ntouch '{mark}'\n"


@pytest.fixture
def project(tmp_path):
    """A checkout with one committed file in ``baselines``."""
    root = tmp_path / "project"
    (root / "baselines").mkdir(parents=True)
    (root / "baselines" / "case.json").write_text("{}")
    commit(root)
    return root


@pytest.fixture
def trap(tmp_path):
    """A program that leaves a mark when it runs, and the mark."""
    mark, program = tmp_path / "mark", tmp_path / "trap.sh"
    program.write_text(MONITOR.format(mark=mark))
    program.chmod(0o755)
    return program, mark


def embed(folder, *settings):
    """Make a folder look like a bare repository whose settings a pull request wrote."""
    scratch = folder.parent / "bare"
    git(folder.parent, "init", "--quiet", "--bare", str(scratch))
    for name, value in (("core.bare", "false"), ("core.worktree", ".."), *settings):
        git(scratch, "config", name, value)
    for part in scratch.iterdir():
        if part.name in ("HEAD", "config", "objects", "refs"):
            shutil.move(part, folder / part.name)
    (folder / "objects" / "kept").touch()
    shutil.rmtree(scratch)


@pytest.mark.parametrize("below", ["", "cpu/scan"])
@pytest.mark.parametrize("ask", [uncommitted, last_committers], ids=lambda ask: ask.__name__)
def test_an_embedded_repository_is_not_asked(project, trap, ask, below):
    """Its monitor would be run by ``git status``, and its answers are not those of the project."""
    program, mark = trap
    embed(project / "baselines", ("core.fsmonitor", str(program)))
    folder = project / "baselines" / below
    folder.mkdir(parents=True, exist_ok=True)
    assert not ask(folder)
    assert not mark.exists()


def test_the_trap_works(project, trap):
    """Git as people call it runs the monitor: the tests above can fail."""
    program, mark = trap
    git(project, "config", "core.fsmonitor", str(program))
    git(project, "status")
    assert mark.exists()


def test_a_monitor_and_hooks_of_the_checkout_do_not_run(project, trap, tmp_path):
    """Nor do those that the project's own settings name: a shared machine may have them from anybody."""
    program, mark = trap
    (project / ".hooks").mkdir()
    shutil.copy(program, project / ".hooks" / "post-checkout")
    git(project, "config", "core.fsmonitor", str(program))
    git(project, "config", "core.hooksPath", str(project / ".hooks"))
    assert uncommitted(project / "baselines") == ()
    assert run_git(project, "worktree", "add", "--detach", str(tmp_path / "tree"), "HEAD") is not None
    assert not mark.exists()


def test_a_checkout_is_asked_as_before(project):
    """A file beside the others is seen, from a folder below the top, too."""
    (project / "baselines" / "new.json").touch()
    assert uncommitted(project / "baselines") == ("new.json",)
    assert [path.name for path in last_committers(project / "baselines")] == ["case.json"]


def test_lines_that_a_checkout_changes(project):
    """Of Python, by file within the repository: what is new or other, and of what is gone the line before; committed or not."""
    (project / "src").mkdir()
    (project / "src/a.py").write_text("".join(f"x{number} = {number}\n" for number in range(1, 10)))
    commit(project)
    (project / "src/a.py").write_text(
        "x1 = 0\n" + "".join(f"x{number} = {number}\n" for number in (2, 3, 5, 6)) + "y = 1\nz = 2\n"
    )
    (project / "my notes.py").write_text("one\n")
    (project / "notes.md").write_text("one\n")
    git(project, "add", "my notes.py", "notes.md")
    expected = {"src/a.py": [1, 3, 6, 7], "my notes.py": [1]}
    assert changed_lines(project, "HEAD") == changed_lines(project / "src", "HEAD") == expected
