"""``jaxgate baselines``: what is stored, how old it is, and what is wrong with it. Needs no JAX and no device."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from jaxgate.cli.console import refuse, write
from jaxgate.cli.pytest_arguments import IniError, usual_folder
from jaxgate.judge import age_days, last_day
from jaxgate.keep import read_inventory, utc_today
from jaxgate.report import inventory_json, inventory_text


def show_baselines(folder: str | None, *, cases: bool, as_json: bool) -> int:
    """Print what is stored.

    Args:
        folder: Where the baselines are; ``None`` for what pytest would take.
        cases: One row for each case.
        as_json: For machines.

    Returns:
        The exit code: 1 if a file is unreadable or missing, or there is no baseline at all.
    """
    root = _find(folder)
    if isinstance(root, str):
        return refuse("baselines", root, 1)
    today = utc_today()
    found = read_inventory(root, today=today)
    days = {case.date for case in found.cases}
    ages = {day: age_days(day, today=today) for day in days}
    ends = {day: "" if (last := last_day(day)) is None else last.isoformat() for day in days}
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    text = inventory_json(found, ages, ends) if as_json else inventory_text(found, ages, ends, cases=cases, width=width)
    write(text)
    return 0 if found.sound else 1


def _find(folder: str | None) -> Path | str:
    """The folder of the baselines; or why there is none."""
    try:
        root = Path(folder) if folder else usual_folder(Path.cwd())
    except IniError as error:
        return f"{error}; name the folder: --baselines DIR"
    return root if root.is_dir() else f"expected a folder {os.path.relpath(root)}, found none; name it: --baselines DIR"
