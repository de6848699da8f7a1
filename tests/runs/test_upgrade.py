"""``jaxgate upgrade``, end to end: facts of two environments, launches of what differs, one answer."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from support.corpora import nightly
from support.projects import SETTINGS, model

from jaxgate.settings import UPGRADE_TO

MODEL = "import os, warnings\n" + model("jnp.ones((16, 16))", step="jnp.tanh(x @ x)", other="x + 1")


@pytest.fixture
def here(project):
    """A project with two gates, whose other environment differs in variables alone: its processes are runs in this one."""
    project.records_here()
    return project.write("test_model.py", MODEL)


def upgrade(project, other, *arguments):
    """Run it without a clock: launches are tried where they cost nothing, in tests/processes/test_upgrade_runs.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(UPGRADE_TO, shlex.quote(other))
        return project.run(*arguments, "--benchmark-disable")


def answer(project):
    """The answer that was written for machines, and its groups by kind."""
    found = json.loads((project.path / "perf-artifacts" / "upgrade.json").read_text())
    groups = {}
    for group in found["groups"]:
        groups.setdefault(group["section"], []).append(group)
    return found, groups


def cases(group):
    """The names of the cases of a group."""
    return [case["case"] for case in group["cases"]]


def test_two_equal_environments_find_nothing(here):
    """The same interpreter on both sides: yes, all the same, no case is timed, and no baseline is touched."""
    result = upgrade(here, sys.executable)
    assert result.code == 0
    result.shows("yes: 2 cases: 2 the same", "nothing differs", "all executables are the same")
    found, groups = answer(here)
    assert (found["answer"], found["same"], groups) == ("yes", ["model/other", "model/step"], {})
    assert not (here.path / "baselines").exists()
    page = (here.path / "perf-artifacts" / "upgrade.md").read_text()
    assert f"May I upgrade to `{Path(sys.executable).name}`?" in page  # no folder of this machine


def test_more_memory_there_is_worse_and_the_page_has_it(here):
    """What is larger there is no upgrade: exit code 1, the group with its numbers, in the terminal and on the page."""
    here.write(
        "test_model.py",
        MODEL.replace("return x + 1", "return x + (1 if 'BIG' not in os.environ else jnp.cumsum(x @ x.T @ x, 0))"),
    )
    result = upgrade(here, "BIG=1")
    assert result.code == 1
    found, groups = answer(here)
    assert found["answer"] == "no"
    assert "matmul_flops" in {group["what"] for group in groups["worse"]}
    assert all(cases(group) == ["model/other"] for group in groups["worse"])
    assert found["same"] == ["model/step"]
    result.shows("no: 2 cases: 1 worse", "worse there, 1 case", "matmul_flops larger")
    page = (here.path / "perf-artifacts" / "upgrade.md").read_text()
    assert "❌ May I upgrade to `BIG=1`?" in page
    assert "| `model/other` | 0 FLOP |" in page


def test_without_a_clock_only_facts_are_compared(here):
    """``--benchmark-disable`` launches nothing, and says what it left out."""
    here.write("test_model.py", MODEL.replace("return x + 1", "return x - 1 if 'NEW' in os.environ else x + 1"))
    result = upgrade(here, "NEW=1")
    assert result.code == 0
    result.shows("time: no case was timed: 1 case may differ")


def test_a_removed_interface_is_named_with_the_line_that_uses_it(here):
    """What raises there cannot run: its error once for both cases, with the line of the project."""
    removed = "def tree_map(x):\n    if 'NEW' in os.environ:\n        raise AttributeError('jax has no tree_map')\n    return x\n"
    here.write("helpers.py", "import os\n" + removed)
    here.write(
        "test_model.py",
        "from helpers import tree_map\n" + MODEL.replace("    return ", "    return 0 * tree_map(x) + "),
    )
    result = upgrade(here, "NEW=1")
    assert result.code == 1
    _, groups = answer(here)
    (group,) = groups["cannot_run"]
    assert group["what"] == "tracing the subject: AttributeError: jax has no tree_map"
    assert sorted(cases(group)) == ["model/other", "model/step"]
    assert {case["line"] for case in group["cases"]} == {"helpers.py:4"}
    result.shows("cannot run there, 2 cases", "at helpers.py:4")


def test_a_file_that_cannot_be_imported_there_loses_its_cases_alone(here):
    """An import that fails there names its line for each case of the file; the other file is compared."""
    here.write(
        "test_gone.py",
        "import os\nif 'NEW' in os.environ:\n    from jax.experimental import maps\n" + model(gone="x + 1"),
    )
    result = upgrade(here, "NEW=1")
    assert result.code == 1
    found, groups = answer(here)
    (group,) = groups["cannot_run"]
    assert cases(group) == ["gone/gone"]
    assert "cannot import name 'maps'" in group["what"]
    assert group["cases"][0]["line"] == "test_gone.py:3"
    assert found["compared"] == ["model/other", "model/step"]


def test_warnings_that_are_new_there_are_grouped_with_their_lines_and_do_not_block(here):
    """The same deprecation in two cases is one group; one that is given here, too, is none."""
    body = "    warnings.warn('always old', DeprecationWarning, stacklevel=1)\n"
    body += "    if 'NEW' in os.environ:\n        warnings.warn('use jax.tree.map', DeprecationWarning, stacklevel=3)\n"
    here.write("test_model.py", MODEL.replace("(gate):\n", "(gate):\n" + body))
    result = upgrade(here, "NEW=1")
    assert result.code == 0
    _, groups = answer(here)
    (group,) = groups["warns"]
    assert group["what"] == "DeprecationWarning: use jax.tree.map"
    wanted = [
        line for line, text in enumerate((here.path / "test_model.py").read_text().split("\n"), 1) if "use jax" in text
    ]
    assert {case["line"] for case in group["cases"]} == {f"test_model.py:{line}" for line in wanted}
    result.shows("new warnings there, 2 cases")


def test_a_warning_that_the_project_makes_an_error_cannot_run(here):
    """As the suite would end there after the upgrade: the case fails, with the warning and its line."""
    body = "    if 'NEW' in os.environ:\n        warnings.warn('use jax.tree.map', DeprecationWarning, stacklevel=1)\n"
    here.write("test_model.py", MODEL.replace("test_other(gate):\n", "test_other(gate):\n" + body))
    here.write("pyproject.toml", SETTINGS + 'filterwarnings = ["error"]\n')
    result = upgrade(here, "NEW=1")
    assert result.code == 1
    _, groups = answer(here)
    assert [(group["what"], cases(group)) for group in groups["cannot_run"]] == [
        ("DeprecationWarning: use jax.tree.map", ["model/other"])
    ]
    assert upgrade(here, "NEW=1", "-o", "filterwarnings=default").code == 0
    assert "warns" in answer(here)[1]


def test_a_case_that_is_skipped_there_is_lost(here):
    """A skip that only the other environment takes hides a case: it is never a yes."""
    skip = "    import pytest\n    if 'NEW' in os.environ:\n        pytest.skip('no such jax')\n"
    here.write("test_model.py", MODEL.replace("test_other(gate):\n", "test_other(gate):\n" + skip))
    result = upgrade(here, "NEW=1")
    assert result.code == 1
    _, groups = answer(here)
    assert groups["cannot_run"][0]["what"] == "skipped there: no such jax"


@nightly
def test_an_environment_that_cannot_be_made_is_no_answer(here):
    """A requirement that cannot be had, and a suite without gates: never 0."""
    result = upgrade(here, "no-such-package-of-mine @ file:///nowhere.whl")
    assert result.code == 2
    result.shows("cannot be installed")
    here.write("test_model.py", "def test_plain(): pass\n")
    assert upgrade(here, "NEW=1").code not in (0, 1)


def test_a_process_that_dies_there_loses_one_test(here):
    """A crash of the other jax is noted with its test; the rest is recorded by another process."""
    from jaxgate.ext.upgrade.notes import add_note
    from jaxgate.processes.pytest_child import BrokenRecordingError

    real = here.instruments["record_other"]

    def crashing(side, chosen, into):
        if into.name != "facts-there" or (into / "died").exists():
            return real(side, chosen, into)
        (into / "died").touch()
        add_note(into / "notes.jsonl", "test_model.py::test_other")
        raise BrokenRecordingError("it died", -11)

    here.instruments["record_other"] = crashing
    result = upgrade(here, "NEW=1")
    assert result.code == 1
    found, groups = answer(here)
    assert groups["cannot_run"][0]["what"] == "its process ended with the signal SIGSEGV"
    assert found["compared"] == ["model/step"]


def test_an_expected_failure_that_no_longer_fails_is_no_yes(here):
    """Nothing is raised there, and pytest is red all the same: the reason is pytest's."""
    marked = "import pytest\n" + MODEL + "    assert 'NEW' in os.environ, 'not here'\n"
    here.write(
        "test_model.py",
        marked.replace("def test_other", "@pytest.mark.xfail(strict=True, reason='known')\ndef test_other"),
    )
    result = upgrade(here, "NEW=1")
    assert result.code == 1
    _, groups = answer(here)
    (group,) = groups["cannot_run"]
    assert (group["what"], cases(group)) == ("[XPASS(strict)] known", ["model/other"])
