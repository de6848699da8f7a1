"""A case without a baseline that runs the program of a baseline without a test: most likely its test has another name now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.keep import files_of_case
from jaxgate.model import Baseline, Fingerprints, Verdict

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

Program = tuple[str, str, str | None]
"""Hardware, structure and compiler options: what two cases must share to be taken for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """A case that was most likely called otherwise.

    Attributes:
        before: The name that its baseline has.
        now: The name that it has today.
        moves: All files of its baseline, of all hardware and release lines, each with the one that it should be.
    """

    before: str
    now: str
    moves: tuple[tuple[Path, Path], ...]


def find_renamed(session: GateSession, orphans: Mapping[Path, Baseline]) -> list[Renamed]:
    """Pair cases without a baseline with baselines without a test, by their program; never where two would fit.

    Args:
        session: The run, over.
        orphans: Baselines without a test, by file.
    """
    before: dict[Program, set[str]] = {}
    for baseline in orphans.values():
        before.setdefault(_program(baseline.hardware.slug, baseline.fingerprints), set()).add(baseline.case)
    now: dict[Program, set[str]] = {}
    for verdict in session.result.verdicts:
        found = session.result.new_programs.get(verdict.case)
        if found is not None and verdict.hardware is not None and not verdict.recorded:
            now.setdefault(_program(verdict.hardware.slug, found), set()).add(verdict.case)
    root, renamed = session.settings.baselines, []
    for program in before.keys() & now.keys():
        if len(before[program]) == len(now[program]) == 1:
            (old,), (new,) = before[program], now[program]
            renamed.append(Renamed(before=old, now=new, moves=tuple(files_of_case(root, old, new))))
    return sorted(renamed, key=lambda one: one.now)


def add_renames(verdicts: Sequence[Verdict], renamed: Sequence[Renamed]) -> list[Verdict]:
    """The verdicts, of which those without a baseline say which one is most likely theirs."""
    names = {one.now: one.before for one in renamed}
    return [_add(verdict, names[verdict.case]) if verdict.case in names else verdict for verdict in verdicts]


def _add(verdict: Verdict, before: str) -> Verdict:
    more = f" `{before}`, whose test is gone, has its program: renamed?"
    findings = tuple(
        replace(finding, detail=finding.detail + more) if finding.kind == "baseline" else finding
        for finding in verdict.findings
    )
    return replace(verdict, findings=findings, renamed_from=before)


def _program(slug: str, found: Fingerprints) -> Program:
    return slug, found.program, found.options
