"""--perf-against: today's programs against those of a git revision, recorded now from a clean worktree."""

import sys

import pytest
from support.corpora import nightly
from support.git import commit, git
from support.projects import model

from ci.attacks.gated_sources import WIDE, WIDTH

MODEL = model("jnp.ones((16, 16))", step="jnp.tanh(x @ x)")


@pytest.fixture
def versioned(project):
    """A project under git, with one commit."""
    commit(project.write("test_model.py", MODEL).path)
    return project


@pytest.fixture
def here(versioned):
    """The same, whose revision is recorded by runs in this process."""
    versioned.records_here()
    return versioned


def test_hardware_without_baselines_gets_those_of_the_revision(here):
    """The revision's baselines are ready to be committed, programs and log with them; the next run uses them."""
    head = git(here.path, "rev-parse", "HEAD")
    here.edit("test_model.py", "jnp.tanh(x @ x)", "jnp.tanh(x @ x @ x)")
    result = here.run("--perf-against", "HEAD")
    (_, content), *others = here.baselines().items()
    assert not others
    assert f'"commit": "{head}"' in content.decode()
    assert '"dirty": false' in content.decode()
    assert "it had no baselines; 1 of that revision are in baselines/" in result.text
    assert f"recorded from {head[:10]}, this hardware had none" in here.log()[0]
    assert len(git(here.path, "worktree", "list").splitlines()) == 1
    again = here.run()
    again.counts(failed=1)
    again.shows("matmul_flops 16.4 kFLOP against 8.19 kFLOP")


def test_hardware_with_baselines_keeps_its_own(here):
    """Baselines that are there are somebody's decision: a comparison touches none and adds none."""
    here.run("--perf-update")
    here.write("test_new.py", MODEL.replace("test_step", "test_new"))
    commit(here.path)
    before = {path: path.read_bytes() for path in (here.path / "baselines").rglob("*") if path.is_file()}
    result = here.run("--perf-against", "HEAD")
    assert "had no baselines" not in result.text
    assert {path: path.read_bytes() for path in (here.path / "baselines").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("claim", "status"), [("", "STALE_BASELINE"), (", max_matmul_flops=1", "REGRESSED")], ids=["stale", "red besides"]
)
def test_a_case_that_takes_other_arguments_now_is_left_out(here, claim, status):
    """Its baseline of that revision would be stale as soon as it is committed, whatever else is wrong with it."""
    commit(here.write("test_wider.py", MODEL.replace("test_step", "test_wide")).path)
    here.edit("test_wider.py", "jnp.ones((16, 16))", f"jnp.ones((32, 32)){claim}")
    result = here.run("--perf-against", "HEAD")
    assert result.line("wider/wide").startswith(status)
    result.shows("1 SAME", "it had no baselines; 1 of that revision are in")
    assert "refresh: " not in result.text  # nobody can refresh what the run recorded for itself
    assert [path.rsplit("/", 1)[1] for path in here.baselines()] == ["step.json"]


def test_baselines_that_cannot_be_written_do_not_hide_the_comparison(here):
    """A file where the folder should be: the run tells, and judges all the same."""
    here.write("baselines", "not a folder")
    result = here.run("--perf-against", "HEAD")
    result.counts(passed=1)
    result.shows("its baselines could not be written")


def test_no_change_is_same_by_identity(here):
    """An unchanged program is SAME: it is the revision's."""
    result = here.run("--perf-against=merge-base", "--perf-strict")
    result.counts(passed=1)
    assert result.line("model/step").startswith("SAME")
    result.shows("identical program", "recorded now")


def test_cases_on_one_side_only_are_listed(here):
    """A new case cannot be compared and does not fail, under CI either; one that is gone is named."""
    here.write("test_new.py", MODEL.replace("test_step", "test_new"))
    result = here.run("--perf-against", "HEAD", "--perf-strict")
    result.counts(passed=2)
    assert result.code == 0
    assert result.line("new/new").startswith("NO_BASELINE")
    here.edit("test_model.py", "def test_step", "def test_renamed")
    here.run("--perf-against", "HEAD").shows("Only in the other revision: model/step")


def test_only_the_selection_is_recorded(here):
    here.write("test_other.py", "def test_other():\n    raise SystemError\n")
    commit(here.path)
    here.run("test_model.py", "-k", "step", "--perf-against", "HEAD").counts(passed=1)


def test_a_revision_that_cannot_be_collected_is_a_usage_error(here):
    """If the other side does not even import, nothing was compared: the run says so and is not green."""
    here.edit("test_model.py", "import jax, ", "import no_such_module, jax, ")
    commit(here.path)
    here.edit("test_model.py", "import no_such_module, jax, ", "import jax, ")
    result = here.run("--perf-against", "HEAD")
    assert result.code == 4
    result.shows("the other side could not be recorded", "no_such_module")


LIBRARY = "import jax.numpy as jnp\n\ndef step(x):\n    return jnp.tanh(x @ x)\n"
USER = """
import sys
from pathlib import Path
import jax.numpy as jnp
from library_of_mine import step

def test_step(gate):
    gate(step, jnp.ones((16, 16)))
"""


@pytest.fixture
def library(project, monkeypatch):
    """A project in src layout, found through sys.path as an editable install would be."""
    project.write("src/library_of_mine.py", LIBRARY)
    project.write("test_model.py", USER)
    commit(project.path)
    monkeypatch.syspath_prepend(project.path / "src")
    yield project
    sys.modules.pop("library_of_mine", None)


def test_a_library_in_src_is_taken_from_the_revision(library):
    """Code that sys.path finds in this checkout comes from the other revision there, not from today's files."""
    library.edit("src/library_of_mine.py", "x @ x", "x @ x @ x")
    result = library.run("--perf-against", "HEAD")
    result.counts(failed=1)
    result.shows("matmul_flops 16.4 kFLOP against 8.19 kFLOP")


def test_a_library_that_cannot_be_redirected_is_refused(library):
    """If the other revision still imports today's code, nothing was compared: the run is not green."""
    fixed = f"sys.path.insert(0, {str(library.path / 'src')!r})\nfrom library_of_mine"
    library.edit("test_model.py", "from library_of_mine", fixed)
    commit(library.path)
    result = library.run("--perf-against", "HEAD")
    assert result.code == 4
    result.shows("the other revision imported library_of_mine from", "which is today's code")


@nightly
def test_an_installed_copy_is_refused(versioned, monkeypatch):
    """A package that was installed, not in editable mode, is one revision for both sides: nothing would differ."""
    site = versioned.path / "elsewhere" / "site-packages"
    versioned.write("elsewhere/site-packages/copied_of_mine/__init__.py", LIBRARY)
    versioned.write("src/copied_of_mine/__init__.py", LIBRARY)
    versioned.write(
        "test_model.py",
        "import jax.numpy as jnp\nfrom copied_of_mine import step\n\ndef test_step(gate):\n    gate(step, jnp.ones((4, 4)))\n",
    )
    commit(versioned.path)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.syspath_prepend(site)
    result = versioned.run("--perf-against", "HEAD")
    assert result.code == 4
    result.shows("an installed copy of one revision for both", "pip install -e .")


NOT_COMPARED = {
    "no case": (("def test_step", "def test_renamed"), ["nothing could be compared", "(exit code 2)"]),
    "it failed there": (
        ("    assert False, 'no data'\n", ""),
        ["NOT COMPARED model/step: it failed in that revision: ", "no data", "failed in the other revision"],
    ),
    "other arguments": (("jnp.ones((16, 16))", "jnp.ones((8, 8))"), ["\nSTALE_BASELINE  model/step"]),
}


@pytest.mark.parametrize("what", NOT_COMPARED)
def test_what_is_not_compared_is_not_green_under_ci(here, what):
    """Nothing was gated: exit code 2 where strict, with the reason."""
    change, said = NOT_COMPARED[what]
    if what == "it failed there":
        here.edit("test_model.py", "def test_step(gate):", "def test_step(gate):\n    assert False, 'no data'")
        commit(here.path)
    here.edit("test_model.py", *change)
    result = here.run("--perf-against", "HEAD", "--perf-strict")
    assert result.code == 2
    result.shows(*said)
    if what == "no case":
        assert here.run("--perf-against", "HEAD").code == 0


@pytest.mark.parametrize("typed", [["--width", "16"], ["--width=16"]], ids=["two words", "one word"])
def test_the_projects_own_options_are_handed_on(project, typed):
    """Else the other side runs at another width, nothing can be compared, and its baselines are of the wrong one."""
    project.write("conftest.py", WIDTH).write("test_model.py", WIDE)
    commit(project.path)
    project.records_here()
    project.edit("test_model.py", "jnp.tanh(x @ x)", "jnp.sin(jnp.tanh(x @ x @ x))")
    result = project.run("test_model.py", *typed, "-k", "wide", "--perf-against", "HEAD")
    assert result.code == 1
    result.shows("REGRESSED  model/wide", "matmul_flops 16.4 kFLOP against 8.19 kFLOP = 2.00 ×")
