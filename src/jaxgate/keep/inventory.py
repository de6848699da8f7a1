"""Everything stored for a project, read without judging it; and baselines of another project, copied into this one."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from datetime import date
from functools import partial
from pathlib import Path

from jaxgate.keep.baselines import baseline_files, read_all, read_baseline, save_baseline
from jaxgate.keep.git import last_committers
from jaxgate.keep.log import append_log, read_log
from jaxgate.keep.programs import ProgramStore, find_unreferenced, named_by
from jaxgate.keep.waivers import FILE, WaiverError, read_drift_starts, read_waivers
from jaxgate.model.baseline import Baseline
from jaxgate.model.inventory import Inventory, KeptCase, StoredFile
from jaxgate.model.program import ProgramRecord
from jaxgate.model.waiver import Waiver


def read_inventory(root: Path, *, today: date, elsewhere: AbstractSet[tuple[str, str]] | None = None) -> Inventory:
    """Read all baselines, programs and waivers of a project.

    A waiver applies up to and on its last day (UTC). ``elsewhere`` has the programs of a store beside git, by
    fingerprint and digest; ``None`` without one.
    """
    baselines, unreadable = read_all(root)
    store = ProgramStore(root)
    digests = {path: store.digest_of(path) for path in store.files()}
    stored = {(store.fingerprint_of(path), digest) for path, digest in digests.items() if digest is not None}
    stored |= elsewhere or set()
    reasons = {(entry.folder, case): entry.why for entry in read_log(root) for case in entry.cases}
    committers = last_committers(root)
    unneeded = None if unreadable else find_unreferenced(root, named_by(baselines.values()))
    waivers, problem = _waivers(root, today)
    return Inventory(
        cases=tuple(_kept(path, baseline, stored, committers, reasons) for path, baseline in baselines.items()),
        unreadable=tuple((os.path.relpath(error.path, root), error.reason) for error in unreadable),
        programs=tuple(_file(path, root) for path in digests),
        unreferenced=None if unneeded is None else tuple(_file(path, root) for path in unneeded),
        waivers=waivers,
        waiver_problem=problem,
        elsewhere=None if elsewhere is None else len(elsewhere),
    )


def _kept(
    path: Path,
    baseline: Baseline,
    stored: set[tuple[str, str]],
    committers: Mapping[Path, str],
    reasons: Mapping[tuple[str, str], str],
) -> KeptCase:
    made, slug, case = baseline.provenance, baseline.hardware.slug, baseline.case
    return KeptCase(
        hardware=slug,
        line=baseline.line,
        case=case,
        date=made.date,
        commit=(made.commit or "")[:10] + ("+changes" if made.dirty else ""),
        environment=baseline.environment,
        why_no_program="" if baseline.launched_programs else baseline.program.why_not,
        has_program=all((structure, about.digest) in stored for structure, about in baseline.programs),
        by=committers.get(path.resolve(), ""),
        why=reasons.get((baseline.folder, case)) or reasons.get((slug, case), ""),  # older entries name no line
    )


def _waivers(root: Path, today: date) -> tuple[tuple[Waiver, ...], str]:
    """The waivers in force; or why they cannot be read."""
    try:
        read_drift_starts(root)  # the other entries of the file
        return tuple(waiver for waiver in read_waivers(root) if today <= waiver.expires), ""
    except WaiverError as error:
        return (), str(error).replace(str(root / FILE), FILE)


def _file(path: Path, root: Path) -> StoredFile:
    return StoredFile(path=os.path.relpath(path, root), nbytes=path.lstat().st_size)


def adopt_revision(
    other: Path, into: Path, folder: str, *, without: Collection[str], serves: Callable[..., bool], why: str
) -> list[str]:
    """Copy the baselines of one hardware and release line with their programs, and log it.

    Cases in ``without`` are left out. ``serves(stored, content=new)`` says if a stored program may stand for a new one
    of its structure.

    Returns:
        The names of the cases; none if there are such baselines already, which are somebody's decision.
    """
    if (into / folder).exists():
        return []
    programs, kept = ProgramStore(other), ProgramStore(into)
    names = []
    for path in baseline_files(other, folder):
        baseline = read_baseline(path)
        if baseline.case in without:
            continue
        contents = {about.digest: programs.load(structure, about.digest) for structure, about in baseline.programs}
        known = {digest: content for digest, content in contents.items() if content is not None}
        if len(known) < len(contents):
            continue

        def save(structure: str, about: ProgramRecord, known: Mapping[str | None, bytes] = known) -> str:
            """Save a program before its baseline, which never names a file that is not there; gives its digest there."""
            content = known[about.digest]
            return kept.save(structure, content, partial(serves, content=content))

        save_baseline(into, baseline.stored_as(save))
        names.append(baseline.case)
    if names:
        append_log(into, created=names, refreshed=[], folder=folder, why=why)
    return names
