"""Source lines of HLO instructions: written beside the instruction, or in tables at the head of the module."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from jaxgate.observe.source_lines import is_project_file, short_path

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_ROW = re.compile(r'([0-9]{1,9}) (?:"((?:[^"\\]|\\.)*)"|\{([^{}]*)\})\s*')
_FIELD = re.compile(r"(\w+)=([0-9]{1,9})\b")
_FRAME_ID = re.compile(r"\bstack_frame_id=([0-9]{1,9})\b")
_BESIDE = re.compile(r'\bsource_file="((?:[^"\\]|\\.)*)" source_line=([0-9]{1,9})\b')


@dataclass(slots=True, kw_only=True)
class SourceTables:
    """The tables of one module, filled line by line."""

    files: dict[int, str] = field(default_factory=dict)
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    frames: dict[int, tuple[int, int]] = field(default_factory=dict)
    _open: str = ""
    _known: dict[int, str] = field(default_factory=dict)

    def close(self) -> None:
        """End the table that is being read: an empty line stands between two."""
        self._open = ""

    def take(self, line: str) -> bool:
        """Read one line; whether it belongs to a table."""
        if line in _TABLES:
            self._open = line
            return True
        row = _ROW.fullmatch(line) if self._open else None
        if row is None:
            return False
        number, fields = int(row[1]), {name: int(value) for name, value in _FIELD.findall(row[3] or "")}
        if self._open == "FileNames" and row[2] is not None:
            self.files[number] = row[2]
        elif self._open == "FileLocations" and {"file_name_id", "line"} <= fields.keys():
            self.places[number] = (fields["file_name_id"], fields["line"])
        elif self._open == "StackFrames" and "file_location_id" in fields:
            self.frames[number] = (fields["file_location_id"], fields.get("parent_frame_id", 0))
        else:
            return self._open == "FunctionNames"
        return True

    def project_line(self, attributes: str) -> str:
        """``file:line`` of the innermost frame of the project, by an instruction's attributes; empty if unknown."""
        if match := _FRAME_ID.search(attributes):
            number = int(match[1])
            if number not in self._known:
                self._known[number] = self._innermost(number)
            return self._known[number]
        if match := _BESIDE.search(attributes):
            return f"{short_path(match[1])}:{match[2]}" if is_project_file(match[1]) else ""
        return ""

    def _innermost(self, number: int) -> str:
        # jaxlib 0.10 and 0.12 print the parent's number plus one, so that the outermost frame is its own parent.
        shift = 1 if any(parent == frame for frame, (_, parent) in self.frames.items()) else 0
        seen: set[int] = set()
        while number in self.frames and number not in seen:
            seen.add(number)
            place, parent = self.frames[number]
            file, line = self.places.get(place, (0, 0))
            path = self.files.get(file, "")
            if is_project_file(path):
                return f"{short_path(path)}:{line}"
            number = parent - shift
        return ""
