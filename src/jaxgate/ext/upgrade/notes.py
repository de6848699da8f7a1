"""What a process that records a side of ``jaxgate upgrade`` notes: a line for each event, so that none is lost if it dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jaxgate.ext.upgrade.model import CaseNote, SideNotes, TestNote
from jaxgate.keep.files import read_text
from jaxgate.keep.strict import adapter_of

Note = str | TestNote | CaseNote
"""The node id of a test that begins, or what is known of one or of a case."""
_KINDS: dict[str, type[Any]] = {"begun": str, "test": TestNote, "case": CaseNote}


def add_note(path: Path, note: Note) -> None:
    """Add a note to a file."""
    name, kind = next((name, kind) for name, kind in _KINDS.items() if isinstance(note, kind))
    line = json.dumps({name: adapter_of(kind).dump_python(note, mode="json")}, ensure_ascii=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def read_notes(path: Path) -> SideNotes:
    """Read the notes of a file, if it was begun. A line that was not written to its end is left out.

    Raises:
        ValueError: If a line is no note.
    """
    begun: list[str] = []
    tests: dict[str, TestNote] = {}
    cases: dict[str, CaseNote] = {}
    for line in read_text(path).split("\n")[:-1] if path.exists() else ():
        ((name, content),) = json.loads(line).items()
        found = adapter_of(_KINDS[name]).validate_json(json.dumps(content))
        if isinstance(found, TestNote):
            tests[found.test] = merged(tests.get(found.test), found)
        elif isinstance(found, CaseNote):
            cases[found.case] = found
        else:
            begun.append(str(found))
    return SideNotes(begun=tuple(begun), tests=tests, cases=cases)


def merged(before: TestNote | None, now: TestNote) -> TestNote:
    """Merge two notes of one test, which did not pass if one note says so; both warn."""
    if before is None:
        return now
    outcome = before if before.outcome != "passed" else now
    warnings = tuple(dict.fromkeys((*before.warnings, *now.warnings)))
    return TestNote(test=now.test, outcome=outcome.outcome, why=outcome.why, line=outcome.line, warnings=warnings)
