"""Two tests cannot share a baseline, also where they never run together; one that moved keeps its own."""

import pytest

from jaxgate.engine.case_names import refuse_foreign
from jaxgate.model.measurement import InvalidCaseError

STEP = "def test_step(gate):\n    pass\n"


@pytest.fixture
def project(tmp_path):
    """A project with one file of tests."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b/test_model.py").write_text(STEP)
    return tmp_path


@pytest.mark.parametrize(
    ("recorded_by", "test"),
    [
        ("b/test_model.py::test_step", "a/test_model.py::test_step"),
        ("b/test_model.py::test_step[8]", "a/test_model.py::test_step[8]"),
        ("b/test_model.py::TestModel::test_step", "test_other.py::test_named"),
    ],
    ids=["files of one name", "parametrised", "a name that was given"],
)
def test_a_test_that_is_still_there_keeps_its_baseline(project, recorded_by, test):
    with pytest.raises(InvalidCaseError, match="which is still there") as caught:
        refuse_foreign(project, recorded_by, test)
    assert recorded_by in caught.value.reason
    assert f"expected a baseline of {test}" in caught.value.reason
    assert "name='family/sentence'" in caught.value.reason


@pytest.mark.parametrize(
    "recorded_by",
    [
        "a/test_model.py::test_step",
        "gone/test_model.py::test_step",
        "b/test_model.py/x.py::test_step",
        "b/test_model.py::test_renamed",
        "../b/test_model.py::test_step",
    ],
    ids=["its own", "no file", "no folder", "no such test", "outside"],
)
def test_one_that_moved_takes_its_baseline_along(project, recorded_by):
    """Its old file is gone, or has it no more; nothing outside of the project is looked at."""
    refuse_foreign(project, recorded_by, "a/test_model.py::test_step")


def test_one_of_many_parameters_may_have_moved_to_another_file(project):
    refuse_foreign(project, "b/test_model.py::test_step[8]", "b/test_wide.py::test_step[8]")


def test_a_file_that_cannot_be_read_may_hold_it(project):
    (project / "b/test_model.py").write_text("def test_step(:\n")
    with pytest.raises(InvalidCaseError):
        refuse_foreign(project, "b/test_model.py::test_step", "a/test_model.py::test_step")
