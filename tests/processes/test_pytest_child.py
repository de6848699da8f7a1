"""What a process that runs the selected tests again is started with."""

from pathlib import Path

import pytest

from jaxgate.processes.child import Finished
from jaxgate.processes.pytest_child import Selection, Side, record_selection


@pytest.mark.parametrize("held", ["", "4711"], ids=["free", "held"])
def test_whoever_has_the_machine_says_so_to_what_it_starts(monkeypatch, held):
    """It is held by the time of the start, long after the run began: else both would wait for each other for ever."""
    side, asked = Side(Path(), {"PATH": "p"}, "measuring again"), []
    monkeypatch.delenv("JAXGATE_MACHINE_HELD")
    if held:
        monkeypatch.setenv("JAXGATE_MACHINE_HELD", held)

    def run(_command, *, variables, **_):
        asked.append(variables)
        return Finished(status=0, stdout="", stderr="")

    record_selection(side, Selection((), "", ""), Path("into"), run)
    assert asked == [{"PATH": "p", "JAXGATE_OTHER_SIDE": "1", **({"JAXGATE_MACHINE_HELD": held} if held else {})}]
