"""Tables as plain text: what a cell holds is shown as it is, and each row is one line."""

from jaxgate.report.printable import aligned, headed


def test_columns_are_two_spaces_apart_and_no_line_ends_in_one():
    rows = [["case", "ns", "why"], ["scan/rnn", "7", ""], ["a", "1000", "because"]]
    assert aligned(rows, right={1}) == ["case        ns  why", "scan/rnn     7", "a         1000  because"]
    markup = [["t.py::t[red]:warning:", "x"], ["[/]", "y"]]  # is shown as it is
    assert aligned(markup) == ["t.py::t[red]:warning:  x", "[/]                    y"]


def test_a_table_without_rows_has_no_line():
    assert aligned([]) == headed([]) == []


def test_nothing_wraps_however_narrow_the_terminal_is(monkeypatch):
    """Neither the variables of a terminal nor those that ask for colours change a line."""
    for name, value in {"COLUMNS": "20", "FORCE_COLOR": "1", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    assert aligned([["word " * 500, "end"]], texts=["text"]) == [f"{'word ' * 500}  end  text"]


def test_each_row_is_one_line_and_a_text_is_left_alone():
    """A line break in a cell would move what follows; what stands behind the cells moves nothing."""
    found = aligned([["two\nlines", "x"], ["a", ""]], texts=["first\n second ", ""])
    assert found == ["two lines  x  first\n second ", "a             "]


def test_the_first_cell_can_be_coloured_alone():
    assert headed([["SAME", "a"], ["UNDECIDED", "bb"]], texts=["x", "y"]) == [
        ("SAME     ", "  a   x"),
        ("UNDECIDED", "  bb  y"),
    ]
