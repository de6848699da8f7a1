"""When a search of ``jaxgate bisect`` is another one: whatever its measurements depend on has changed."""

import pytest
from support.git import commit

from jaxgate.ext.bisect.run import measured_by, working_state


@pytest.fixture
def project(tmp_path):
    """A project outside of git."""
    (tmp_path / "model.py").write_text("A = 1\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    return tmp_path


def test_an_edited_module_is_another_state_without_git_too(project):
    """Hidden folders and virtual environments do not count."""
    before = working_state(project)
    for folder in (".hidden", "env"):
        (project / folder / "other.py").write_text("x")
    assert working_state(project) == before
    (project / "model.py").write_text("A = 2, longer\n")
    assert working_state(project) != before


def test_what_git_does_not_know_counts_by_name_size_and_time(project):
    """Whatever its name; a link that leads nowhere is no error."""
    commit(project)
    clean = working_state(project)
    (project / "tést.toml").write_text("a = 1\n")
    one = working_state(project)
    assert one != clean
    (project / "tést.toml").write_text("a = 12\n")
    two = working_state(project)
    assert two != one
    (project / "dangling.py").symlink_to("nowhere")
    assert working_state(project) != two
    (project / "model.py").write_text("A = 3\n")
    assert len({tuple(clean), tuple(one), tuple(two), tuple(working_state(project))}) == 4


def test_packages_and_variables_that_act_count():
    """Jax as well where it came out of a local file; other variables do not."""
    plain = measured_by({"HOME": "h"})
    assert any(line.startswith("jax==") for line in plain)
    assert measured_by({"HOME": "other"}) == plain
    assert measured_by({"XLA_FLAGS": "--xla_a=1"}) != plain
