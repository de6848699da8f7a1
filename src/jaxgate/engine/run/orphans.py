"""What nobody needs any more: baselines whose test is gone, waivers of what is no loss, accepted drifts of no case.

An orphan whose program a new case runs most likely belongs to a test that was renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.ext.history.drift import DriftStart
from jaxgate.judge.waivers import unneeded
from jaxgate.keep.baselines import files_of_case, read_all
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import Baseline
from jaxgate.model.measurement import Fingerprints
from jaxgate.model.verdict import Verdict
from jaxgate.model.waiver import Waiver
from jaxgate.model.workload import Collection

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

Program = tuple[str, str, str | None]
"""Hardware, structure and compiler options: what two cases must share to be taken for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """A case that was most likely called otherwise."""

    before: str  # the name that its baseline has
    now: str  # the name that it has today
    # all files of its baseline, of all hardware and release lines, each with the one that it should be
    moves: tuple[tuple[Path, Path], ...]


def find_renamed(session: GateSession, orphans: Mapping[Path, Baseline]) -> list[Renamed]:
    """Pair cases without a baseline with baselines without a test, by their program; never where two would fit."""
    before: dict[Program, set[str]] = {}
    for baseline in orphans.values():
        before.setdefault(_program(baseline.hardware.slug, baseline.fingerprints), set()).add(baseline.case)
    now: dict[Program, set[str]] = {}
    for verdict in session.result.verdicts:
        found = session.result.new_programs.get(verdict.case)
        if found is not None and verdict.hardware is not None and not verdict.baseline.recorded:
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
    return replace(verdict, findings=findings, baseline=replace(verdict.baseline, renamed_from=before))


def _program(slug: str, found: Fingerprints) -> Program:
    return slug, found.program, found.options


@dataclass(slots=True)
class Orphans:
    """Baselines whose test is gone, those of them whose test was renamed, and files that cannot be read."""

    paths: list[Path] = field(default_factory=list)
    renamed: list[Renamed] = field(default_factory=list)
    unreadable: list[CorruptBaselineError] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.paths or self.unreadable)


def find_orphans(session: GateSession, collection: Collection) -> Orphans:
    """Find baselines, for the hardware and the release line of a run, whose test is gone; note the tests that it dropped.

    A baseline of a test outside what was collected whole is not judged.
    """
    found = Orphans()
    if session.comparison is not None:
        return found  # the stored baselines were not looked at
    names: dict[str, set[str]] = {}
    for case, test in session.result.tests.items():
        if test not in session.result.unfinished:
            names.setdefault(test, set()).add(case)
    baselines: dict[Path, Baseline] = {}
    folders = session.folders(session.result.verdicts)
    for folder in folders:
        there, unreadable = read_all(session.settings.baselines, folder)
        baselines |= there
        found.unreadable += unreadable
    there, unreadable = session.store.of_named_targets(but_not=folders)
    baselines |= there
    found.unreadable += unreadable
    found.paths += without_test(baselines, session.project, collection.tests, collection.roots, names)
    if collection.whole and session.settings.demands_all and not session.settings.elsewhere:
        session.result.dropped |= set(_dropped(session, baselines, found.paths, collection))
    found.renamed += find_renamed(session, {path: baselines[path] for path in found.paths})
    return found


def _dropped(
    session: GateSession, baselines: Mapping[Path, Baseline], gone: Sequence[Path], collection: Collection
) -> Iterator[str]:
    """The tests whose baselines would serve this run, and whose case no gate of it has.

    Where this hardware has no baseline of its own, those of its platform serve.
    """
    here = {verdict.hardware for verdict in session.result.verdicts if verdict.hardware}
    if not any(one.hardware in here for one in baselines.values()):
        others, _ = read_all(session.settings.baselines)
        serve = {path for path, one in others.items() if any(one.hardware.same_platform(key) for key in here)}
        baselines = {**{path: others[path] for path in serve}, **baselines}
    for path, one in baselines.items():
        asked = path in gone or one.test in collection.elsewhere or one.case in session.result.tests
        if not asked and any(is_inside(one.test, root) for root in collection.roots):
            yield one.test


def without_test(
    baselines: Mapping[Path, Baseline],
    project: Path,
    collected: AbstractSet[str],
    roots: Sequence[str],
    names: Mapping[str, set[str]],
) -> Iterator[Path]:
    """The baselines whose test is gone, or has another case now.

    ``collected`` has all tests before any was deselected. ``roots`` were collected whole, relative to the root folder.
    ``names`` lacks a test that was not run, or not to its end.
    """
    files = {test.partition("::")[0] for test in collected}
    for path, baseline in baselines.items():
        file = baseline.test.partition("::")[0]
        seen = file in files or not (project / file).exists()  # an ignored file proves nothing
        inside = seen and any(is_inside(baseline.test, root) for root in roots)
        renamed = baseline.test in names and baseline.case not in names[baseline.test]
        if (inside and baseline.test not in collected) or renamed:
            yield path


def is_inside(test: str, root: str) -> bool:
    """Whether a test lies in a file or folder, both relative to the root folder."""
    file = test.partition("::")[0]
    return root in ("", ".") or file == root or file.startswith(f"{root}/")


def find_idle_entries(session: GateSession, collection: Collection) -> list[tuple[str, str]]:
    """Find the waivers and the accepted drifts that should be removed, each with the reason.

    Nothing is found where the stored baselines are not what was compared with.
    """
    if session.settings.elsewhere or not (session.waivers or session.drift_starts):
        return []
    idle = (pair for verdict in session.result.verdicts for pair in unneeded(verdict, session.waivers))
    return [*((_name(waiver), why) for waiver, why in idle), *_without_case(session, collection)]


def _without_case(session: GateSession, collection: Collection) -> Iterator[tuple[str, str]]:
    """The entries whose case no test has; only a run of the whole suite can know."""
    claimed = session.result.tests
    entries: list[Waiver | DriftStart] = [*session.waivers, *session.drift_starts]
    unknown = [entry for entry in entries if entry.case not in claimed]
    if unknown and _is_whole(session, collection):
        yield from ((_name(entry), "no test has this case") for entry in unknown)


def _name(entry: Waiver | DriftStart) -> str:
    if isinstance(entry, Waiver):
        return f"WAIVER {entry.quantity} of {entry.case}"
    return f"DRIFT since {entry.since} of {entry.case}"


def _is_whole(session: GateSession, collection: Collection) -> bool:
    """Whether every gate named its case, and no stored baseline belongs to a test elsewhere."""
    if not collection.certain or collection.elsewhere or session.result.unfinished:
        return False
    folders = [root for root in collection.roots if (session.project / root).is_dir()]
    if not folders or collection.gates != set(session.result.tests.values()):
        return False
    files = {test.partition("::")[0] for test in collection.tests}
    baselines, unreadable = read_all(session.settings.baselines)
    if unreadable:
        return False
    for test in {baseline.test for baseline in baselines.values()}:
        file = test.partition("::")[0]
        left_out = file not in files and (session.project / file).exists()
        if left_out or not any(is_inside(test, root) for root in folders):
            return False
    return True
