"""``jaxgate upgrade``, end to end: facts of two environments, launches of what differs, one answer."""

import json
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.corpora import nightly
from support.projects import SETTINGS, model

from jaxgate.ext.upgrade.model import TestNote, Warned
from jaxgate.ext.upgrade.notes import add_note
from jaxgate.processes.pytest_child import BrokenRecordingError, Selection
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


THERE = "    if 'NEW' in os.environ:\n        "
WHAT_BREAKS = {
    "helpers.py": f"import os\ndef tree_map(x):\n{THERE}raise AttributeError('jax has no tree_map')\n    return x\n",
    "test_removed.py": "from helpers import tree_map\n" + model(one="tree_map(x)", two="tree_map(x) + 1"),
    "test_gone.py": "import os\nif 'NEW' in os.environ:\n    from jax.experimental import maps\n" + model(gone="x + 1"),
    "test_skipped.py": "import os, pytest\n"
    + model(skipped="x + 1").replace("(gate):\n", f"(gate):\n{THERE}pytest.skip('no such jax')\n"),
    "test_known.py": "import os, pytest\n"
    + model(known="x + 1").replace("def test", "@pytest.mark.xfail(strict=True, reason='known')\ndef test")
    + "    assert 'NEW' in os.environ, 'not here'\n",
    "test_warned.py": "import os, warnings\n"
    + model(one="x + 1", two="x + 2").replace(
        "(gate):\n",
        "(gate):\n    warnings.warn('always old', DeprecationWarning, stacklevel=1)\n"
        f"{THERE}warnings.warn('use jax.tree.map', DeprecationWarning, stacklevel=3)\n",
    ),
    "test_dying.py": model(dying="x + 1"),
    "test_quiet.py": model(quiet="x + 1"),
}


def test_what_breaks_there_is_named_with_the_line_and_its_cases_alone(project):
    """An error once for both of its cases; an import; a skip; pytest's own reason; a process that dies; new warnings.

    A file that cannot be imported once kept the rest from being recorded after a process had died.
    """
    project.records_here()
    for name, text in WHAT_BREAKS.items():
        project.write(name, text)
    real = project.instruments["record_other"]

    def crashing(side, chosen, into):
        if into.name != "facts-there" or (into / "died").exists():
            return real(side, chosen, into)
        (into / "died").touch()
        with suppress(BrokenRecordingError):  # it had collected all files before it began
            real(side, Selection(("test_gone.py",), "", ""), into)
        warned = Warned(category="UserWarning", text="while it is imported", line="")
        add_note(into / "notes.jsonl", TestNote(test="test_quiet.py", outcome="passed", warnings=(warned,)))
        add_note(into / "notes.jsonl", "test_dying.py::test_dying")
        raise BrokenRecordingError("it died", -11)

    project.instruments["record_other"] = crashing
    result = upgrade(project, "NEW=1")
    assert result.code == 1
    found, groups = answer(project)
    lost = {group["what"]: (cases(group), {case["line"] for case in group["cases"]}) for group in groups["cannot_run"]}
    (imported,) = [what for what in lost if "cannot import name 'maps'" in what]
    assert lost == {
        "tracing the subject: AttributeError: jax has no tree_map": (["removed/one", "removed/two"], {"helpers.py:4"}),
        imported: (["gone/gone"], {"test_gone.py:3"}),
        "skipped there: no such jax": (["skipped/skipped"], {""}),
        "[XPASS(strict)] known": (["known/known"], {""}),
        "its process ended with the signal SIGSEGV": (["dying/dying"], {""}),
    }
    assert found["compared"] == ["known/known", "quiet/quiet", "warned/one", "warned/two"]
    warned, _ = groups["warns"]
    assert (warned["what"], cases(warned)) == ("DeprecationWarning: use jax.tree.map", ["warned/one", "warned/two"])
    lines = [line for line, text in enumerate(WHAT_BREAKS["test_warned.py"].split("\n"), 1) if "use jax" in text]
    assert {case["line"] for case in warned["cases"]} == {f"test_warned.py:{line}" for line in lines}
    result.shows("cannot run there, 6 cases", "at helpers.py:4", "new warnings there, 3 cases")


def test_a_warning_that_the_project_makes_an_error_cannot_run(here):
    """As the suite would end there after the upgrade: the case fails, with the warning and its line."""
    body = f"{THERE}warnings.warn('use jax.tree.map', DeprecationWarning, stacklevel=1)\n"
    here.write("test_model.py", MODEL.replace("test_other(gate):\n", "test_other(gate):\n" + body))
    here.write("pyproject.toml", SETTINGS + 'filterwarnings = ["error"]\n')
    assert upgrade(here, "NEW=1").code == 1
    (group,) = answer(here)[1]["cannot_run"]
    assert (group["what"], cases(group)) == ("DeprecationWarning: use jax.tree.map", ["model/other"])


@nightly
def test_an_environment_that_cannot_be_made_is_no_answer(here):
    """A requirement that cannot be had, and a suite without gates: never 0."""
    result = upgrade(here, "no-such-package-of-mine @ file:///nowhere.whl")
    assert result.code == 2
    result.shows("cannot be installed")
    here.write("test_model.py", "def test_plain(): pass\n")
    assert upgrade(here, "NEW=1").code not in (0, 1)
