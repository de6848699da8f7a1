"""--perf-update=trim: remove what no test and no baseline needs, and nothing where that cannot be known."""

import pytest
from support.projects import TWO


@pytest.fixture
def stored(project):
    """Two recorded cases with a program each."""
    return project.write("test_model.py", TWO).record()


def files(project):
    """What is stored, without the log."""
    root = project.path / "baselines"
    return {
        path.relative_to(root).as_posix().partition("/")[2]
        for path in root.rglob("*")
        if path.is_file() and path.parent.name != "log"
    }


def drop_second(project):
    """The second test is gone."""
    text = (project.path / "test_model.py").read_text()
    project.write("test_model.py", text[: text.index("def test_second")])


def test_an_orphan_goes_with_its_program_and_times(stored):
    """Each file is listed with its size; the log has an entry; the case that has a test keeps all of its own."""
    (own,) = (stored.path / "baselines").glob("cpu-*")
    times = own / "times/model/second.json"
    times.parent.mkdir(parents=True)
    times.write_text("{}")
    before = files(stored)
    drop_second(stored)
    result = stored.run("--perf-update=trim", "--perf-why", "it is gone")
    assert result.code == 0
    gone = before - files(stored)
    assert {name.rsplit("/", 1)[-1] for name in gone if name.endswith(".json")} == {"second.json"}
    assert len(gone) == 3
    assert not (own / "times").exists()  # nor empty folders
    size = f"REMOVED  baseline       2 B  baselines/{own.name}/times/model/second.json"
    result.shows("trim, no test was run", size, "REMOVED  program ", "3 files, ", "commit it: git add baselines")
    (entry,) = [text for text in stored.log() if "trimmed" in text]
    assert f"trimmed baselines `{own.name}/model/second`" in entry
    assert "and 1 program that no baseline names. Why: it is gone" in entry
    assert stored.run("--perf-strict").code == 0
    assert stored.run("--perf-update=trim").line("nothing to trim")


def test_no_test_runs_and_no_device_is_taken(stored):
    """A platform that does not exist is not missed: collecting is all that happens."""
    drop_second(stored)
    text = (stored.path / "test_model.py").read_text()
    (stored.path / "test_model.py").write_text(text.replace("    gate(", "    raise SystemExit(3)\n    gate("))
    done = stored.alone("-m", "pytest", "-p", "no:cacheprovider", "--perf-update=trim", JAX_PLATFORMS="none_such")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 files, " in done.stdout


@pytest.mark.parametrize("arguments", [["-k", "none_of_them"], ["--deselect", "test_model.py::test_second"]])
def test_a_selection_makes_no_orphan(stored, arguments):
    """What is deselected was collected; nor need anything be selected."""
    before = files(stored)
    result = stored.run(*arguments, "--perf-update=trim")
    assert result.code == 0
    result.shows("nothing to trim")
    assert files(stored) == before


def test_only_what_was_collected_whole_is_judged(stored):
    """A single test, another folder, or a file that is left out says nothing of the rest; programs are seen to."""
    stray = stored.path / "baselines/programs/f00d.export.gz"
    stray.write_bytes(b"x")
    drop_second(stored)
    before = stored.baselines()
    result = stored.run("test_model.py::test_first", "--perf-update=trim")
    assert result.line("REMOVED").endswith("baselines/programs/f00d.export.gz")
    stored.write("other/test_other.py", TWO)
    stored.run("other", "--perf-update=trim").shows("nothing to trim")
    stored.run("--ignore=test_model.py", "--perf-update=trim").shows("nothing to trim")
    assert stored.baselines() == before


def test_a_program_of_any_hardware_stays(stored):
    """The last baseline that names it may be of hardware that is not here."""
    own = stored.baseline("model/second")
    text = own.read_text()
    stored.edit_baseline("model/second", test="elsewhere.py::test_it")  # not collected, and outside what was
    (stored.path / "elsewhere.py").write_text("")
    other = stored.lend("model/second")
    own.write_text(text)
    programs = set((stored.path / "baselines/programs").iterdir())
    drop_second(stored)
    stored.run("--perf-update=trim").shows("1 file, ")
    assert set((stored.path / "baselines/programs").iterdir()) == programs
    assert other.exists()
    assert not own.exists()


def refused(project, result, *pieces):
    """Exit code 1, one clear error, and every file as it was."""
    assert result.code == 1
    result.shows("nothing was removed: ", *pieces)
    assert "REMOVED" not in result.text
    assert not any("trimmed" in text for text in project.log())


@pytest.mark.parametrize("arguments", [[], ["--continue-on-collection-errors"]])
def test_nothing_is_removed_after_an_error_while_collecting(stored, arguments):
    stored.write("test_model.py", TWO + "\nraise RuntimeError('broken')\n")
    before = files(stored)
    refused(stored, stored.run("--perf-update=trim", *arguments), "a collection without errors, found 1 error")
    assert files(stored) == before


def test_nothing_is_removed_where_no_gate_was_collected(stored):
    """A suite that has no test any more is more likely the wrong folder."""
    stored.write("test_model.py", "def test_plain():\n    pass\n")
    before = files(stored)
    refused(stored, stored.run("--perf-update=trim"), "expected tests that gate, collected none")
    assert files(stored) == before


def test_no_baselines_are_the_wrong_folder(stored):
    refused(stored, stored.run("--perf-update=trim", "--perf-baselines=basslines"), "under basslines, found none")


def test_a_bare_collection_stays_one(stored):
    drop_second(stored)
    before = files(stored)
    assert stored.run("--collect-only", "--perf-update=trim").code == 0
    assert files(stored) == before


DESELECTS = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    left = [item for item in items if "second" in item.nodeid]
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)
"""
"""As projects leave out tests that are marked slow, before any plugin looks."""


def test_a_test_that_the_project_deselects_is_not_gone(stored):
    stored.write("conftest.py", DESELECTS)
    before = files(stored)
    result = stored.run()
    assert result.code == 0
    assert "ORPHAN" not in result.text
    stored.run("--perf-update=trim").line("nothing to trim")
    assert files(stored) == before
