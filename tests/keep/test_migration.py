"""Baselines that an earlier jaxgate wrote: found, and brought up to date without a loss."""

import json
from dataclasses import replace

import pytest
from support.factories import CASE, HARDWARE, OTHER_CPU, baseline, session

from jaxgate.keep import (
    BaselineStore,
    CorruptBaselineError,
    TimesStore,
    describe_old,
    migrate,
    read_all,
    save_baseline,
)
from jaxgate.keep.untrusted import RefusedFileError

OLD = "cpu-amd-epyc-1"
NEW = "cpu-amd-epyc-1-jax-0.10"


@pytest.fixture
def root(tmp_path):
    """Two baselines of hardware, one with stored times, in the folder where they lay before."""
    root = tmp_path / "baselines"
    save_baseline(root, baseline())
    save_baseline(root, baseline(case="vmap/loss"))
    TimesStore(root, "0.10").add(HARDWARE, CASE, session(1000.5))
    (root / NEW).rename(root / OLD)
    (root / "log").mkdir()
    (root / "programs").mkdir()
    return root


def files(root):
    """What lies there: relative path to content."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_old_folders_are_found(root):
    """Neither the log nor programs nor what has a line already."""
    save_baseline(root, baseline(hardware=OTHER_CPU))
    assert describe_old(root).endswith(f"baselines/{OLD}, which an earlier jaxgate wrote")
    assert describe_old(root / "nowhere") == ""


def test_everything_moves_and_is_read(root):
    """Byte for byte, stored times with it; the old folder is gone, and a second time there is nothing to do."""
    before = files(root)
    done = migrate(root)
    assert (done.moved, done.rewritten) == ({(OLD, NEW): 2}, 0)
    assert files(root) == {name.replace(OLD, NEW): content for name, content in before.items()}
    assert not (root / OLD).exists()
    assert BaselineStore(root, "0.10").load(HARDWARE, CASE).own
    assert len(TimesStore(root, "0.10").load(HARDWARE, CASE).sessions) == 1
    assert read_all(root)[1] == []
    assert describe_old(root) == ""
    done = migrate(root)
    assert (done.moved, done.rewritten) == ({}, 0)


def old_form(path):
    """Let a file be as it was written before 2026-11-23."""
    content = json.loads(path.read_text())
    names = {"throughput": "pipelined", "latency": "blocked"}
    if "sessions" in content:
        content["schema"] = 1
        timed = content["sessions"]
    else:
        content["schema"] = 4
        content["host"] = content.pop("eager")
        timed = [content["samples"]] if content["samples"] else []
    for one in timed:
        one["contract"] = names[one["contract"]]
    path.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def test_old_names_in_files_are_replaced(root):
    """Of baselines and stored times; what comes out is what would be recorded today, to the byte."""
    migrate(root)
    single = replace(baseline().samples, contract="latency", calls_per_burst=1)
    save_baseline(root, replace(baseline(case="latency/one"), eager=True, samples=single))
    save_baseline(root, replace(baseline(case="latency/none"), samples=None))
    before = files(root)
    for path in root.glob("cpu-*/**/*.json"):
        old_form(path)
    assert "which an earlier jaxgate wrote" in describe_old(root)
    with pytest.raises(
        CorruptBaselineError, match="expected schema 5, found 4, which an earlier jaxgate wrote; bring it"
    ):
        BaselineStore(root, "0.10").load(HARDWARE, CASE)
    with pytest.raises(
        CorruptBaselineError, match="expected schema 2, found 1, which an earlier jaxgate wrote; bring it"
    ):
        TimesStore(root, "0.10").load(HARDWARE, CASE)
    done = migrate(root)
    assert (done.moved, done.rewritten) == ({}, 5)
    assert files(root) == before
    assert describe_old(root) == ""


def test_folder_and_form_together(root):
    """As a project finds both that has not looked for long."""
    after = {name.replace(OLD, NEW): content for name, content in files(root).items()}
    for path in root.glob("cpu-*/**/*.json"):
        old_form(path)
    done = migrate(root)
    assert (done.moved, done.rewritten) == ({(OLD, NEW): 2}, 3)
    assert files(root) == after


@pytest.mark.parametrize("schema", [3, 6, True, "4", None])
def test_other_schemas_are_nobodys(root, schema):
    """Nothing is guessed of a file of another time."""
    path = root / OLD / "vmap/loss.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": schema}))
    before = files(root)
    with pytest.raises(CorruptBaselineError, match="expected schema 5"):
        migrate(root)
    assert files(root) == before


def test_each_goes_to_the_line_that_recorded_it(root):
    """Two developers, two lines, one folder: that is what it came apart for."""
    path = root / OLD / "vmap/loss.json"
    path.write_text(path.read_text().replace('"jax": "0.10.2"', '"jax": "0.12.0.1"'))
    assert migrate(root).moved == {(OLD, NEW): 1, (OLD, "cpu-amd-epyc-1-jax-0.12"): 1}
    assert BaselineStore(root, "0.12").load(HARDWARE, "vmap/loss").own


@pytest.mark.parametrize("damage", ["is no JSON", "names no jax", "stands there already", "has times there already"])
def test_nothing_moves_where_one_cannot(root, damage):
    """Half a move would hide baselines; what is in the way is named."""
    path = root / OLD / "vmap/loss.json"
    if damage == "is no JSON":
        path.write_text("{")
    elif damage == "names no jax":
        content = json.loads(path.read_text())
        del content["environment"]["jax"]
        path.write_text(json.dumps(content))
    else:
        target = root / NEW / ("vmap/loss.json" if "stands" in damage else "times/scan/rnn.json")
        target.parent.mkdir(parents=True)
        target.write_text("theirs")
    before = files(root)
    with pytest.raises(CorruptBaselineError) as caught:
        migrate(root)
    assert ("loss.json" if "times" not in damage else "times/scan/rnn.json") in str(caught.value)
    assert files(root) == before


def test_a_linked_folder_is_left_alone(root, tmp_path):
    """It is somebody else's."""
    (root / OLD).rename(tmp_path / "theirs")
    (root / OLD).symlink_to(tmp_path / "theirs")
    with pytest.raises(RefusedFileError, match="behind a link"):
        migrate(root)
    assert (tmp_path / "theirs/scan/rnn.json").is_file()


def test_a_renamed_test_moves_as_it_is(root):
    """A file of another name than its case (``git mv``) keeps its name."""
    path = root / OLD / "scan/rnn.json"
    path.rename(path.with_name("lstm.json"))
    migrate(root)
    assert BaselineStore(root, "0.10").load(HARDWARE, "scan/lstm").baseline == replace(
        baseline(), case="scan/lstm", test=""
    )
