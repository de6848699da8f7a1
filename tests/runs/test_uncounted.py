"""Under strict a case that fails ends the run with 1, whatever pytest counts."""

import pytest
from support.projects import model

BROKEN = model("jnp.ones(8)", step="x * 2").replace(
    "gate(step, jnp.ones(8))", "gate(step, jnp.ones(8), max_output_bytes=8)"
)
EXPECTED = BROKEN.replace("\ndef test_step", "\nimport pytest\n@pytest.mark.xfail\ndef test_step")
SWALLOWED = BROKEN.replace("    gate(step", "    try:\n        gate(step").rstrip() + (
    "\n    except BaseException:\n        pass\n"
)


@pytest.mark.parametrize(
    ("test", "outcome"), [(EXPECTED, "xfailed"), (SWALLOWED, "passed")], ids=["xfail", "swallowed"]
)
def test_a_failure_that_pytest_does_not_count_ends_a_strict_run(project, test, outcome):
    """The run says which case, and that the test hides it; without strict it ends as pytest says."""
    project.write("test_model.py", test)
    result = project.run("--perf-strict")
    result.counts(**{outcome: 1})
    assert (result.code, project.results()["gate_exit"], project.results()["exit_status"]) == (1, 1, 1)
    result.shows("NOT COUNTED: 1 case fails, and pytest counts no failure (exit code 1): model/step")
    result = project.run()
    assert result.code == 0
    assert "NOT COUNTED" not in result.text


def test_a_failure_that_pytest_counts_is_told_once(project):
    project.write("test_model.py", BROKEN)
    result = project.run("--perf-strict")
    result.counts(failed=1)
    assert result.code == 1
    assert "NOT COUNTED" not in result.text


def test_workers_are_counted_together(project):
    """The process that started them knows all verdicts."""
    project.write("test_model.py", EXPECTED)
    result = project.run("--perf-strict", "-n", "1")
    assert result.code == 1
    result.shows("NOT COUNTED")
