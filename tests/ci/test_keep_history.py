"""``ci/keep_history``: the history on a branch, with a repository of this machine in the place of GitHub's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest
from support.git import git
from support.histories import runs_of
from support.paths import REPOSITORY

from jaxgate.ext.history.store import HistoryStore, find_place

SCRIPT = REPOSITORY / "ci" / "keep_history"
JAXGATE = f"""#!/bin/sh
exec {sys.executable} -m jaxgate.cli.main "$@"
"""
RACE = """#!/bin/sh
# Once, another job is faster.
[ -e raced ] && exit 0
touch raced
env -u GIT_DIR -u GIT_QUARANTINE_PATH -u GIT_OBJECT_DIRECTORY -u GIT_ALTERNATE_OBJECT_DIRECTORIES {script} {results}
exit 0
"""


@pytest.fixture
def remote(tmp_path):
    """An empty repository that can be pushed to, and a jaxgate."""
    git(tmp_path, "init", "--quiet", "--bare", "remote")
    tool = tmp_path / "jaxgate"
    tool.write_text(JAXGATE)
    tool.chmod(0o755)
    return tmp_path / "remote"


def results(folder, name):
    """What a run left."""
    case = {"case": "scan/rnn", "status": "SAME", "fails": False, "time": {"status": "SAME"}, "hardware": None}
    content = {"schema": 1, "jaxgate": "0.1.0", "run": name, "moment": "2026-11-26T00:00:00+00:00", "green": True}
    file = folder / f"{name}.json"
    file.write_text(json.dumps(content | {"gate_exit": 0, "environments": [], "commit": None, "cases": [case]}))
    return file


def keep(remote, *files):
    """Call the program."""
    own = {"REMOTE": str(remote), "JAXGATE": str(remote.parent / "jaxgate"), "PAUSE": "0", "GH_TOKEN": "secret"}
    environ = os.environ | own | {"PYTHONPATH": str(REPOSITORY / "src")}
    command = [str(SCRIPT), *map(str, files)]
    return subprocess.run(command, env=environ, cwd=remote.parent, capture_output=True, text=True, check=False)


def kept(remote):
    """The runs of the branch, and how many commits it has."""
    where = Path(mkdtemp(dir=remote.parent))
    git(remote.parent, "clone", "--quiet", "--branch", "perf-history", str(remote), str(where))
    store = HistoryStore(find_place(str(where / "history.sqlite"), Path()))
    runs = [run.run for run in runs_of(store)]
    return runs, int(git(where, "rev-list", "--count", "HEAD"))


def test_runs_are_added_to_one_commit(remote):
    """The first begins the branch; of a run that is there already nothing changes."""
    folder = remote.parent
    done = keep(remote, results(folder, "one"))
    assert done.returncode == 0, done.stderr
    done = keep(remote, results(folder, "two"), results(folder, "one"))
    assert done.returncode == 0, done.stderr
    assert "1 run added, 1 known already" in done.stdout
    assert kept(remote) == (["one", "two"], 1)
    assert "secret" not in done.stdout + done.stderr


@pytest.mark.parametrize("begun", [False, True], ids=["no branch yet", "a branch"])
def test_of_two_at_once_both_are_kept(remote, begun):
    """Whoever is slower adds its run to what the other one pushed."""
    folder = remote.parent
    if begun:
        assert keep(remote, results(folder, "before")).returncode == 0
    hook = remote / "hooks" / "pre-receive"
    hook.write_text(RACE.format(script=SCRIPT, results=results(folder, "faster")))
    hook.chmod(0o755)
    done = keep(remote, results(folder, "slower"))
    assert done.returncode == 0, done.stderr
    assert "another job was faster (attempt 1)" in done.stderr
    assert kept(remote) == ([*(["before"] if begun else []), "faster", "slower"], 1)


def test_a_repository_that_does_not_answer_begins_no_new_history(remote):
    """Else the old one would be replaced by one run."""
    done = keep(remote.parent / "gone", results(remote.parent, "one"))
    assert done.returncode == 1
    assert "the branch perf-history cannot be looked for" in done.stderr


def test_results_that_cannot_be_read_keep_no_others_out(remote):
    """One leg of a job that left half a file loses that leg, not the run of all others; the exit code says so."""
    folder = remote.parent
    assert keep(remote, folder / "none.json", results(folder, "one")).returncode == 1
    assert kept(remote)[0] == ["one"]
    assert keep(remote, results(folder, "two"), folder / "none.json").returncode == 1
    assert kept(remote)[0] == ["one", "two"]


def test_nothing_to_keep_makes_no_branch(remote):
    assert keep(remote, remote.parent / "none.json").returncode == 1
    assert "perf-history" not in git(remote, "branch", "--list", "perf-history")


def test_it_needs_results(remote):
    done = keep(remote)
    assert (done.returncode, done.stderr) == (1, "keep_history: expected results.json of runs, found no argument\n")
