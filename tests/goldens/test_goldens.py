"""What a user sees, kept byte for byte: each scenario is a sequence of runs, each file below ``expected`` what they said.

``JAXGATE_GOLDENS=write pytest tests/goldens`` writes the files anew; read the difference before you commit it.
"""

import difflib
import os
from pathlib import Path

import goldens.scenarios_collection
import goldens.scenarios_commands
import goldens.scenarios_options
import goldens.scenarios_processes
import goldens.scenarios_time
import goldens.scenarios_updating
import goldens.scenarios_verdicts  # noqa: F401
import pytest
from goldens.transcript import SCENARIOS, Transcript, settle_environment
from support.fakes import Lab

EXPECTED = Path(__file__).parent / "expected"
WRITES = os.environ.get("JAXGATE_GOLDENS", "") == "write"


@pytest.fixture
def play(project, monkeypatch):
    """A project whose clocks, machine and day are fixed."""
    settle_environment(monkeypatch)
    lab = Lab(project.path, monkeypatch)
    project.instruments = lab.instruments
    return Transcript(project, lab, monkeypatch)


@pytest.mark.parametrize("name", SCENARIOS)
def test_golden(play, name):
    """The runs of a scenario say what they said when its file was written."""
    SCENARIOS[name](play)
    file = EXPECTED / f"{name}.txt"
    if WRITES:
        file.write_text(play.text, encoding="utf-8")
        return
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if play.text != before:
        found = difflib.unified_diff(before.splitlines(), play.text.splitlines(), "expected", "found", lineterm="")
        command = f"JAXGATE_GOLDENS=write pytest tests/goldens -k '{name}'"
        pytest.fail("\n".join((f"{name} says something else; if that is meant: {command}", *found)), pytrace=False)


def test_no_file_is_without_its_scenario():
    """A golden file whose scenario is gone protects nothing."""
    assert {path.stem for path in EXPECTED.iterdir()} == set(SCENARIOS)
