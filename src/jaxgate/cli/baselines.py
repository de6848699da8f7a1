"""``jaxgate baselines``: what is stored, how old it is, and what is wrong with it. Needs no JAX and no device."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jaxgate.cli.console import refuse, tell, write
from jaxgate.cli.pytest_arguments import IniError, usual_folder, usual_programs
from jaxgate.judge.ageing import age_days, last_day
from jaxgate.keep.git import utc_today
from jaxgate.keep.inventory import read_inventory
from jaxgate.keep.programs import open_programs
from jaxgate.model.inventory import Inventory, KeptCase, StoredFile
from jaxgate.model.outcome import UsageError
from jaxgate.model.program import UnreachableError
from jaxgate.model.words import cut, plural
from jaxgate.report.printable import aligned, printable_line
from jaxgate.report.units import show

MAX_LISTED = 20
_SHOWN = ("jax", "python")
"""Entries of an environment in the table; JSON has all of them."""


def inventory_text(found: Inventory, today: dt.date, *, cases: bool = False, width: int | None = None) -> str:
    """A table, and below it the store, the waivers in force, and what is wrong.

    ``cases`` gives each case a row instead of each family. ``width`` is ``None`` where nothing wraps.
    """
    rows = list(_case_rows(found, today) if cases else _family_rows(found, today))
    lines = [*aligned(rows), "", *_store(found), *_promise(found, today), *_waivers(found), *_problems(found)]
    return "".join(f"{cut(printable_line(line), width)}\n" for line in lines)


def inventory_json(found: Inventory, today: dt.date) -> dict[str, Any]:
    """Everything, for machines; the keys are the fields of ``Inventory`` and ``KeptCase``."""
    return {
        "sound": found.sound,
        "cases": [
            {
                **asdict(case),
                "age_days": age_days(case.date, today=today),
                "readable_until": _readable_until(case) or None,
            }
            for case in found.cases
        ],
        "unreadable": [{"path": path, "reason": reason} for path, reason in found.unreadable],
        "programs": _files(found.programs),
        "elsewhere": found.elsewhere,
        "unreferenced": None if found.unreferenced is None else _files(found.unreferenced),
        "waivers": [{**asdict(waiver), "expires": waiver.expires.isoformat()} for waiver in found.waivers],
        "waiver_problem": found.waiver_problem,
    }


def _files(files: Sequence[StoredFile]) -> dict[str, Any]:
    return {"count": len(files), "bytes": _bytes(files), "paths": [file.path for file in files]}


def _bytes(files: Sequence[StoredFile]) -> int:
    return sum(file.nbytes for file in files)


def _family_rows(found: Inventory, today: dt.date) -> Iterator[list[str]]:
    yield ["hardware", "jax", "family", "cases", "oldest", "newest", "readable until", "recorded with"]
    families: dict[tuple[str, str, str], list[KeptCase]] = {}
    for case in found.cases:
        families.setdefault((case.hardware, case.line, case.family), []).append(case)
    for (hardware, line, family), kept in sorted(families.items()):
        days = [_day(day, today) for day in sorted(case.date for case in kept)]
        ends = min(filter(None, map(_readable_until, kept)), default="-")
        with_ = " | ".join(sorted({_environment(case) for case in kept}))
        environments = {tuple(sorted(case.environment.items())) for case in kept}
        several = f" ({len(environments)} environments)" if len(environments) > 1 else ""
        yield [hardware, line, family, f"{len(kept)}", days[0], days[-1], ends, with_ + several]


def _case_rows(found: Inventory, today: dt.date) -> Iterator[list[str]]:
    yield ["hardware", "jax", "case", "recorded", "readable until", "recorded with", "from", "by", "why"]
    for case in found.cases:
        ends = "-" if case.why_no_program else _readable_until(case)
        about = [_day(case.date, today), ends, _environment(case), case.commit or "no commit", case.by, case.why]
        yield [case.hardware, case.line, case.case, *about]


def _day(date: str, today: dt.date) -> str:
    age = age_days(date, today=today)
    return f"{date} (no date)" if age is None else f"{date} ({age} d)"


def _readable_until(case: KeptCase) -> str:
    """The last day of jax's promise to read a program; empty where there is none, or no date."""
    last = None if case.why_no_program else last_day(case.date)
    return "" if last is None else last.isoformat()


def _environment(case: KeptCase) -> str:
    return ", ".join(f"{name} {case.environment[name]}" for name in _SHOWN if name in case.environment) or "unknown"


def _store(found: Inventory) -> Iterator[str]:
    if found.elsewhere is not None:
        yield f"store    {plural(found.elsewhere, 'program')} beside git (perf_programs)"
        if not found.programs:
            return
    yield f"store    {plural(len(found.programs), 'program')}, {show('store_bytes', _bytes(found.programs))}"
    if found.unreferenced is None:
        yield "         which of them no baseline names is not known while a file is unreadable"
    elif found.unreferenced:
        size = show("store_bytes", _bytes(found.unreferenced))
        yield f"         {len(found.unreferenced)} that no baseline names, {size}; remove: pytest perf --perf-update=trim"
    else:
        yield "         each is named by a baseline"


def _promise(found: Inventory, today: dt.date) -> Iterator[str]:
    """When the first stored program may no longer be read."""
    kept = [case for case in found.cases if _readable_until(case)]
    if kept:
        first = min(kept, key=lambda case: (case.date, case.case))
        age = age_days(first.date, today=today)
        yield f"promise  jax reads the oldest program until {_readable_until(first)}; it is {age} days old ({first.case})"


def _waivers(found: Inventory) -> Iterator[str]:
    for waiver in found.waivers:
        yield (
            f"waiver   {waiver.case}: {waiver.quantity} up to {waiver.up_to:g}"
            f"{waiver.jax and f' with jax {waiver.jax}'} until {waiver.expires.isoformat()} "
            f"({waiver.owner}: {waiver.reason})"
        )


def _problems(found: Inventory) -> Iterator[str]:
    if not found.cases and not found.unreadable:
        yield "EMPTY    no baseline; record: pytest perf --perf-update"
    for path, reason in found.unreadable:
        yield f"UNREADABLE  {path}: {reason}; restore it with git, or record its case again"
    lost = [case for case in found.cases if not case.has_program]
    for case in lost[:MAX_LISTED]:
        yield f"MISSING  program of {case.folder}/{case.case}; restore it with git, or record the case again"
    if len(lost) > MAX_LISTED:
        yield f"MISSING  and {len(lost) - MAX_LISTED} more"
    if found.waiver_problem:
        yield f"UNREADABLE  {found.waiver_problem}"


def show_baselines(folder: str | None, *, cases: bool, as_json: bool) -> int:
    """Print what is stored.

    ``folder`` is ``None`` for the one that pytest would take.

    Returns:
        The exit code: 1 if a file is unreadable or missing, or there is no baseline at all.
    """
    root = _find(folder)
    if isinstance(root, str):
        return refuse("baselines", root, 1)
    today = utc_today()
    try:
        found = read_inventory(root, today=today, elsewhere=_elsewhere())
    except (UnreachableError, UsageError) as error:
        return refuse("baselines", str(error), 1)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if as_json:
        tell(**inventory_json(found, today))
    else:
        write(inventory_text(found, today, cases=cases, width=width))
    return 0 if found.sound else 1


def _elsewhere() -> set[tuple[str, str]] | None:
    """The programs of the project's store beside git; nothing where it has none."""
    shelf = open_programs(Path(), usual_programs(Path())).shelf
    return None if shelf is None else shelf.names()


def _find(folder: str | None) -> Path | str:
    """The folder of the baselines; or why there is none."""
    try:
        root = Path(folder) if folder else usual_folder(Path.cwd())
    except IniError as error:
        return f"{error}; name the folder: --baselines DIR"
    return root if root.is_dir() else f"expected a folder {os.path.relpath(root)}, found none; name it: --baselines DIR"
