"""What saving does to the disk: stable text, one file, and that one old or new but never half."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.factories import CASE, HARDWARE, LINE, OTHER_CPU, baseline
from support.paths import REPOSITORY

from jaxgate.keep.baselines import BaselineStore, save_baseline
from jaxgate.keep.files import write_atomic


def snapshot(root):
    """Every file below a folder: its bytes and when it was written."""
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def store(tmp_path):
    """A store with one baseline."""
    store = BaselineStore(tmp_path / "baselines", LINE)
    save_baseline(store.root, baseline())
    return store


def test_a_file_is_made_with_its_folders_and_replaced(tmp_path):
    """Anybody may read it, and a shorter content leaves no tail of a longer one."""
    path = tmp_path / "a/b/file"
    for content in (b"old" * 1000, b"", b"new"):
        write_atomic(path, content)
        assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_the_layout_makes_small_diffs(store):
    """Keys are sorted at every level, each on a line that begins with it, text is plain UTF-8 and ends in one newline."""
    kept = baseline(environment={"zeta": "größer", "jax": "0.10.2", "alpha": "1"})
    text = save_baseline(store.root, kept).read_bytes().decode()
    whole = json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False)
    assert "".join(text.split()) == "".join(whole.split())
    assert text.endswith("}\n")
    assert [line for line in text.splitlines() if '"' in line and not re.match(r' *("|[\]}])', line)] == []
    assert [line for line in text.splitlines() if line.count('": ') > 1] == []
    assert (
        '\n "environment": {\n  "alpha": "1",\n  "jax": "0.10.2",\n  "zeta": "größer"\n },\n "facts": {\n  "aliased_bytes": 16384,\n'
        in text
    )


def test_saving_touches_no_other_file(store):
    """Neighbours keep bytes and time, the log and files that nobody knows among them; nothing is added."""
    for neighbour in (baseline(case="scan/lstm"), baseline(case="vmap/rnn"), baseline(hardware=OTHER_CPU)):
        save_baseline(store.root, neighbour)
    (store.root / "README.md").write_text("# ours\n")
    (store.root / "cpu-amd-epyc-1-jax-0.10/scan/rnn.json.orig").write_text("left by a merge")
    own = store.path(HARDWARE, CASE)
    before = snapshot(store.root)
    save_baseline(store.root, baseline(test="renamed"))
    after = snapshot(store.root)
    assert before.pop(own)[0] != after.pop(own)[0]
    assert after == before


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
@pytest.mark.parametrize("step", ["fsync", "replace", "fdopen"])
def test_a_failure_leaves_the_old_file_whole(store, monkeypatch, step, error):
    """Whatever goes wrong on the way is raised, the old file stays as it was, and no part file is left."""
    before = snapshot(store.root)

    def fail(*_arguments, **_options):
        raise error

    for changed in (baseline(test="new"), baseline(case="scan/new")):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            with pytest.raises(type(error)) as caught:
                save_baseline(store.root, changed)
        assert caught.value is error
        assert snapshot(store.root) == before


def test_nothing_is_renamed_before_it_is_on_disk(tmp_path, monkeypatch):
    """The content is flushed and synced to the part file beside the target, then renamed over it."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    events = []

    def fsync(descriptor):
        (part,) = [other for other in tmp_path.iterdir() if other != path]
        events.append(("fsync", os.fstat(descriptor).st_ino == part.stat().st_ino, part.read_bytes()))

    def replace(source, target):
        events.append(("replace", Path(source).parent, target, path.read_bytes()))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        patch.setattr(os, "replace", replace)
        write_atomic(path, b"new")
    assert events == [("fsync", True, b"new"), ("replace", tmp_path, path, b"old")]


KILLED = """
import os, signal, sys
from pathlib import Path
from support.factories import baseline
from jaxgate.keep.baselines import save_baseline
setattr(os, "{step}", lambda *arguments: os.kill(os.getpid(), signal.SIGKILL))
save_baseline(Path(sys.argv[1]), baseline(test="new"))
"""


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_killed_writer_leaves_the_old_file_whole(store, step):
    """A process that dies while it writes leaves the old file; its part file is never taken for a baseline."""
    path = store.path(HARDWARE, CASE)
    before = snapshot(store.root)[path]
    command = [sys.executable, "-c", KILLED.format(step=step), str(store.root)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert snapshot(store.root)[path] == before
    assert store.load(HARDWARE, CASE).baseline == baseline()
    assert list(store.root.rglob("*.json")) == [path]
    save_baseline(store.root, baseline(test="new"))
    assert store.load(HARDWARE, CASE).baseline == baseline(test="new")
