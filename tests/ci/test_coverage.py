"""How much of the core is run: counted by room, shown as a badge, red below the least; and that nothing measured is no green."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from ci import coverage


def counts(lines, run, branches=0, taken=0):
    """What coverage.py says of a file."""
    return {
        "num_statements": lines,
        "covered_lines": run,
        "missing_lines": lines - run,
        "num_branches": branches,
        "covered_branches": taken,
        "missing_branches": branches - taken,
    }


FILES = {
    "src/jaxgate/settings.py": counts(10, 10),
    "src/jaxgate/judge/verdict.py": counts(80, 78, 10, 7),
    "src/jaxgate/ext/bisect/run.py": counts(100, 0),
}


def test_lines_and_branches_count_alike():
    assert coverage.share([counts(80, 78, 10, 7), counts(10, 10)]) == 95.0
    assert coverage.share([]) == 100.0


@pytest.mark.parametrize(("lines", "code", "colour"), [(78, 0, "brightgreen"), (77, 1, "red")])
def test_the_core_decides(monkeypatch, tmp_path, capsys, lines, code, colour):
    """What a capability lacks is shown, and decides nothing; the badge says the figure."""
    files = FILES | {"src/jaxgate/judge/verdict.py": counts(80, lines, 10, 7)}
    report = {"files": {name: {"summary": one} for name, one in files.items()}}
    monkeypatch.setattr(coverage, "measure", lambda *_: coverage.by_room(report))
    badge = tmp_path / "badge.json"
    assert coverage.main([f"--badge={badge}", "-k", "scan"]) == code
    assert json.loads(badge.read_text()) == {
        "schemaVersion": 1,
        "label": "coverage of the core",
        "message": f"{lines + 17:.1f} %",
        "color": colour,
    }
    said = capsys.readouterr().out
    assert "ext            0.0 %    1 files" in said
    assert "itself       100.0 %" in said
    assert said.index("judge/verdict.py") < said.index("settings.py")
    assert "ext/bisect" not in said


def test_nothing_measured_is_no_figure(monkeypatch, tmp_path):
    """The tests may fail, as some do while Python is traced; without a file of counts there is no badge."""
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    with pytest.raises(SystemExit, match="expected files of coverage"):
        coverage.measure([], tmp_path)
