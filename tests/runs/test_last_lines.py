"""The end of a run in the terminal: verdicts stand last, red ones below the others, whatever other plugins show."""

import pytest
from support.projects import TWO

RAISES = "def pytest_terminal_summary():\n    raise RuntimeError('somebody else')\n"


@pytest.fixture
def two(project):
    """Two recorded tests, of which the first got worse."""
    project.write("test_model.py", TWO).record()
    project.edit("test_model.py", "x * 2", "x @ x * 2")
    return project


def test_verdicts_stand_below_the_table_that_gates_nothing(two):
    """pytest-benchmark's table comes first, then one line for each case with the red one last."""
    text = two.run().text.partition("short test summary")[0]
    parts = ("benchmark 'model'", "jaxgate on", "SAME       model/second", "REGRESSED  model/first", "2 cases:")
    places = [text.rindex(part) for part in parts]
    assert places == sorted(places)


def test_a_plugin_that_breaks_does_not_hide_them(two):
    two.write("conftest.py", RAISES)
    result = two.run()
    assert "2 cases: 1 SAME, 1 REGRESSED" in result.text
    assert result.code != 0


def test_an_environment_that_changed_for_all_is_said_once(project):
    """Above the lines, and in none of them; with one case alone it stays in its line."""
    project.write("test_model.py", TWO).record()
    for case in ("model/first", "model/second"):
        project.edit_baseline(case, environment={"jaxlib": "0.9.0"})
    text = project.run("--no-perf-strict").text
    assert text.count("all baselines are of another environment: jaxlib 0.9.0 → ") == 1
    assert "[jaxlib 0.9.0" not in text.partition("all baselines")[2]
    alone = project.run("-k", "first", "--no-perf-strict").text
    assert "all baselines" not in alone
    assert "[jaxlib 0.9.0" in alone
