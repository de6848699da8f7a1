"""How a run was started: what its own processes are given, so that they are the same run."""

import os

import pytest
from support.projects import NO_OTHERS

from jaxgate.plugin.options.command_line import STARTED
from jaxgate.plugin.stash import SETTINGS

CONFTEST = """
import os
os.environ["FROM_CONFTEST"] = "1"
os.environ.pop("BEFORE_CONFTEST", None)
def pytest_addoption(parser):
    parser.addoption("--width", type=int, default=8)
    parser.addoption("--wide", action="store_true")
"""


@pytest.fixture
def started(project, monkeypatch):
    """How a run with these arguments was started, in a project whose conftest takes options and sets variables."""
    monkeypatch.setenv("BEFORE_CONFTEST", "1")
    monkeypatch.setenv("FROM_CONFTEST", "")
    project.write("conftest.py", CONFTEST).write("test_model.py", "def test_nothing(): pass")

    def start(*arguments, addopts=""):
        monkeypatch.setenv("PYTEST_ADDOPTS", addopts)
        return project.pytester.parseconfigure(*NO_OTHERS, *arguments).stash[STARTED]

    return start


def test_the_environment_is_that_of_before_the_conftests(started):
    """What they set is the code of this side: a process of the other side runs its own conftests."""
    environ = started().environ
    assert os.environ["FROM_CONFTEST"] == "1"
    assert environ["FROM_CONFTEST"] == ""
    assert environ["BEFORE_CONFTEST"] == "1"


@pytest.mark.parametrize(
    ("typed", "addopts", "expected"),
    [
        ((), "", ()),
        (("test_model.py",), "", ()),
        (("-q", "-k", "nothing", "--perf-strict", "--color=no"), "", ()),
        (("--width", "16", "test_model.py"), "", ("--width", "16")),
        (("--width=16",), "", ("--width=16",)),
        (("--wide", "-k", "nothing", "--width", "4"), "", ("--wide", "--width", "4")),
        ((), "--width 16", ("--width", "16")),
        (("--wide",), "--width=16 -q", ("--width=16", "--wide")),
        (("-o", "xfail_strict=true"), "", ("-o", "xfail_strict=true")),
        (("--override-ini=xfail_strict=true", "--wide"), "", ("--wide", "-o", "xfail_strict=true")),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_the_projects_own_options_are_kept(started, typed, addopts, expected):
    """As they were typed, in two words or one, also in PYTEST_ADDOPTS; neither pytest's, the gate's, nor paths."""
    assert started(*typed, addopts=addopts).options == expected


def test_a_value_that_is_also_a_path_is_kept_once(started, project):
    """The value of an option may be the name of a file that is collected, too."""
    project.write("4", "")
    assert started("--width", "4", "4").options == ("--width", "4")


def test_settings_hold_them(project, started):
    started()
    assert project.pytester.parseconfigure("--width", "16").stash[SETTINGS].options == ("--width", "16")


@pytest.mark.parametrize(
    ("typed", "narrows"),
    [(("-o", "perf_history=none"), False), (("-o", "python_files=x.py"), True), (("-k", "one"), True), ((), False)],
    ids=["our ini key", "another's ini key", "-k", "nothing"],
)
def test_what_leaves_tests_out(started, typed, narrows):
    """A run with an ini key of jaxgate's own still looks for orphans; another key may choose other files."""
    assert bool(started(*typed).narrowed_by) is narrows
