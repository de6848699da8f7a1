"""A mistake that somebody makes, as a small diff on a text; and what a person reads of the verdict that it got."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxgate.model import ProgramRecord, Provenance, Samples, Status
from jaxgate.report.text import explain

NO_PROGRAM = ProgramRecord(digest=None, donated=(), feeds=None, why_not="not stored: nothing is timed", options={})
NOWHERE = Provenance(commit=None, dirty=False, date="2026-01-01", jaxgate="")
NO_TIME = Samples(bursts_ns=(1,), calls_per_burst=1)  # facts are judged; a baseline has samples none the less


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A small diff, and what must be said of it.

    Attributes:
        name: What the author did, as a clause.
        edits: Replacements of text that stands exactly once in the file.
        moves: Facts, or quantities of claims, of which at least one must be REGRESSED. Empty where the case must not
            be judged at all.
        status: What the verdict must be.
        culprit: What the first culprit line must say (a regular expression, case ignored): the argument's path, the
            operation, the parameter; of a case that is not judged, what its ``found`` row must say.
        at: Texts of the edited file; the line must name the file and line of one of them. Empty where the culprit has
            no line: an argument, or something that is gone.
    """

    name: str
    edits: tuple[tuple[str, str], ...]
    moves: frozenset[str] = frozenset()
    status: str = "REGRESSED"
    culprit: str = ""
    at: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a mistake that no outcome could miss."""
        if not self.edits or not (self.culprit or self.at):
            raise ValueError(f"{self.name}: expected an edit and a culprit")
        if (self.status == "REGRESSED") != bool(self.moves):
            raise ValueError(f"{self.name}: expected facts to move where it is REGRESSED, and nowhere else")

    def planted(self, source: str, file: str) -> str:
        """The text of a file with the mistake in it.

        Raises:
            ValueError: If a text to replace does not stand there exactly once.
        """
        for old, new in self.edits:
            if source.count(old) != 1:
                raise ValueError(f"{self.name}: expected {old!r} once in {file}, found {source.count(old)}")
            source = source.replace(old, new)
        return source

    def places(self, source: str, file: str) -> tuple[str, ...]:
        """Where in the edited text it may be blamed, as ``name.py:line``."""
        lines = enumerate(source.splitlines(), 1)
        return tuple(f"{file}:{number}" for number, text in lines if any(part in text for part in self.at))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the engine said.

    Attributes:
        name: Of the mistake.
        status: The verdict's status.
        moved: Quantities that were REGRESSED, worst first.
        line: The first culprit line as printed; of a case without one, its ``found`` row.
        caught: Whether the right verdict was given for the right reason.
        blamed: Whether that line is right.
        why: What is wrong, for a person.
        seconds: Time it took.
    """

    name: str
    status: str = ""
    moved: tuple[str, ...] = ()
    line: str = ""
    caught: bool = False
    blamed: bool = False
    why: str = ""
    seconds: float = 0.0


def said(mistake: Mistake, verdict, places: tuple[str, ...], *, kinds: tuple[str, ...]) -> dict[str, object]:
    """The fields of an outcome that a verdict decides; ``kinds`` of findings may carry what moved."""
    moved = tuple(
        finding.name.partition(" ")[0]
        for finding in verdict.findings
        if finding.kind in kinds and finding.status is Status.REGRESSED
    )
    line = first_line(verdict)
    caught = str(verdict.status) == mistake.status and (not mistake.moves or bool(mistake.moves & set(moved)))
    blamed = caught and names(line, mistake.culprit, places)
    why = ""
    if not caught:
        by = f" by {' or '.join(sorted(mistake.moves))}" if mistake.moves else ""
        why = f"expected {mistake.status}{by}, found {verdict.status} {', '.join(moved)}"
    elif not blamed:
        why = f"expected the culprit to say /{mistake.culprit}/ {' or '.join(places)}"
    return {
        "status": str(verdict.status), "moved": moved, "line": line, "caught": caught, "blamed": blamed, "why": why,
    }  # fmt: skip


def first_line(verdict) -> str:
    """The culprit as printed; where nothing could be compared, what was found."""
    rows = dict(re.findall(r"^  (\w+) +(.*)$", explain(verdict, test="planted"), flags=re.MULTILINE))
    judged = verdict.status is Status.REGRESSED
    line = re.sub(r"; comes from: .*$", "", rows["culprit"]) if judged else rows.get("found", "")
    return re.sub(r"\S*/(\w+\.py)", r"\1", line)  # without the temporary folder


def names(line: str, culprit: str, places: tuple[str, ...]) -> bool:
    """Whether a line says what it must, and names one of the places if there are any."""
    words = re.sub(r"\w+\.py:\d+", "", line)  # the name of a file must not pass for the name of an operation
    said = re.search(culprit, words, flags=re.IGNORECASE) is not None
    return said and (not places or any(re.search(rf"{re.escape(place)}\b", line) for place in places))
