"""Notes of a process that records one side of an upgrade: whatever was written before it died is there."""

import pytest

from jaxgate.ext.upgrade.model import CaseNote, ClaimNote, SideNotes, TestNote, Warned
from jaxgate.ext.upgrade.notes import add_note, read_notes
from jaxgate.model.decision import Status
from jaxgate.model.workload import Tolerance

WARNED = Warned(category="DeprecationWarning", text="use jax.tree.map", line="a.py:7")


def test_notes_are_read_as_they_were_written(tmp_path):
    """What begins, what becomes of it and what its cases bring, in one file."""
    case = CaseNote(
        case="scan/rnn",
        test="t.py::a",
        claims=(ClaimNote(name="traces = 1", status=Status.SAME, text="1 against 1"),),
        tolerances=(Tolerance(fact="temp_bytes", relative=0.5, why="measured"),),
        unknown={"python_calls": "it never settles"},
    )
    for note in ("t.py::a", case, TestNote(test="t.py::a", outcome="passed", warnings=(WARNED,)), "t.py::b"):
        add_note(tmp_path / "notes", note)
    found = read_notes(tmp_path / "notes")
    assert found.begun == ("t.py::a", "t.py::b")
    assert found.cases == {"scan/rnn": case}
    assert found.tests == {"t.py::a": TestNote(test="t.py::a", outcome="passed", warnings=(WARNED,))}


def test_two_notes_of_a_test_are_one_that_did_not_pass(tmp_path):
    """A test that failed is over, too: its end does not make it pass, and adds its warnings."""
    add_note(tmp_path / "notes", TestNote(test="a", outcome="failed", why="gone", line="a.py:1"))
    add_note(tmp_path / "notes", TestNote(test="a", outcome="passed", warnings=(WARNED,)))
    assert read_notes(tmp_path / "notes").tests["a"] == TestNote(
        test="a", outcome="failed", why="gone", line="a.py:1", warnings=(WARNED,)
    )


def test_a_line_that_was_cut_off_is_left_out_and_no_file_is_no_note(tmp_path):
    """A process that dies while it writes leaves half a line; one that dies at its start leaves no file."""
    assert read_notes(tmp_path / "none") == SideNotes()
    add_note(tmp_path / "notes", "t.py::a")
    with (tmp_path / "notes").open("a") as file:
        file.write('{"test": {"te')
    assert read_notes(tmp_path / "notes").begun == ("t.py::a",)


@pytest.mark.parametrize("line", ["{", '{"other": 1}', '{"test": {"test": 1}}', "[]"])
def test_what_is_no_note_is_an_error(line, tmp_path):
    """Half of what is known must not be read as all of it."""
    (tmp_path / "notes").write_text(f"{line}\n")
    with pytest.raises((ValueError, KeyError, AttributeError)):
        read_notes(tmp_path / "notes")
