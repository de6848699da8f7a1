"""The folder of a run's bundles: emptied by each run, if it is jaxgate's; the history counts on."""

import sys

import pytest
from support.git import git

from jaxgate.ext.profile.scalars import can_write_scalars, write_scalars
from jaxgate.keep.artifacts import HISTORY, IGNORED, MARKER, Artifacts, ForeignFolderError


def begun(root):
    """The artifacts of a new run."""
    artifacts = Artifacts(root)
    artifacts.begin()
    return artifacts


def test_a_new_run_removes_the_last_ones_bundles(tmp_path):
    """Files, folders and links; what a link points to stays, and the scalars of earlier runs: ``test_history.py`` has bundles.

    A run that writes nothing leaves no folder.
    """
    first = begun(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    first.write("model/step", "report.md", "old")
    first.write("history/step", "report.md", "old")
    (first.history / "events").write_text("scalars")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    (tmp_path / "a" / "link").symlink_to(kept)
    begun(tmp_path / "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [IGNORED, MARKER, HISTORY]
    assert [path.name for path in first.history.iterdir()] == ["events"]
    assert (kept / "file").read_text() == "mine"


def test_git_sees_nothing_of_it(tmp_path):
    """A project that knows nothing of jaxgate has no rule for it."""
    git(tmp_path, "init", "-q")
    begun(tmp_path / "perf").write("model/step", "report.md", "text")
    assert git(tmp_path, "status", "--porcelain") == ""


def test_a_foreign_folder_is_refused_and_left(tmp_path):
    """Anything without the mark may be somebody's work."""
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ForeignFolderError, match=r"holds files that jaxgate did not write.*--perf-artifacts"):
        begun(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_runs_are_counted(tmp_path):
    """Each run has one number, however often it is asked; a damaged count begins anew and stops nothing."""
    first = begun(tmp_path / "a")
    assert (first.number(), first.number()) == (1, 1)
    assert begun(tmp_path / "a").number() == 2
    (tmp_path / "a" / MARKER).write_text("{")
    assert begun(tmp_path / "a").number() == 1


def test_scalars_of_two_runs_are_one_curve(tmp_path):
    """As TensorBoard reads them: a tag for each case and metric, a step for each run."""
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

    for step, value in ((1, 5.0), (2, 7.5)):
        write_scalars(tmp_path, step, {"scan/rnn": {"run_ns": value}})
    events = EventAccumulator(str(tmp_path)).Reload().Tensors("scan/rnn/run_ns")
    assert [(event.step, event.tensor_proto.float_val[0]) for event in events] == [(1, 5.0), (2, 7.5)]


def test_tensorboard_is_an_extra(monkeypatch):
    assert can_write_scalars()
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    assert not can_write_scalars()


def test_two_runs_that_begin_at_once(tmp_path):
    """What the other one has removed already is no error."""
    from concurrent.futures import ThreadPoolExecutor

    begun(tmp_path / "a").write("model/step", "report.md", "old")
    for number in range(300):
        (tmp_path / "a" / f"model/{number}").mkdir()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: begun(tmp_path / "a"), range(4)))
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [IGNORED, MARKER]
