"""How long jax promises to read what it serialised, which stored programs come near that end, and whether jax is tested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from packaging.version import Version

WINDOW_DAYS = 180
"""``jax.export`` promises to read a serialised program for six months."""

WARN_DAYS = 150
"""A month is left to record again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ageing:
    """Stored programs that should be recorded again."""

    programs: int  # how many
    oldest: str  # the date of the oldest, as its baseline has it
    case: str  # the case that this one belongs to


def find_ageing(recorded: Mapping[str, str], *, today: date) -> Ageing | None:
    """Find the stored programs that were recorded too long ago.

    A date that cannot be read counts as the oldest; ``today`` is in UTC.
    """
    days = {case: _day(text) for case, text in recorded.items()}
    old = sorted((day, case) for case, day in days.items() if today.toordinal() - day > WARN_DAYS)
    if not old:
        return None
    case = old[0][1]
    return Ageing(programs=len(old), oldest=recorded[case], case=case)


def last_day(recorded: str) -> date | None:
    """The last day of jax's promise for a program; ``None`` if it was recorded on what is no date."""
    day = _day(recorded)
    return date.fromordinal(day + WINDOW_DAYS) if day else None


def age_days(recorded: str, *, today: date) -> int | None:
    """Days since it was recorded; ``None`` if that is no date."""
    day = _day(recorded)
    return today.toordinal() - day if day else None


def window_note(recorded: str, *, today: date) -> str:
    """Say when jax's promise for a program was over; empty if it is not."""
    last = last_day(recorded)
    if last is None:
        return f"it was recorded on {recorded!r}, which is no date"
    return "" if today <= last else f"recorded on {recorded}, it was promised to be readable until {last.isoformat()}"


def _day(text: str) -> int:
    """The ordinal of an ISO date; 0 for what is none."""
    try:
        return date.fromisoformat(text).toordinal()
    except ValueError:
        return 0


TESTED = "0.12"
"""The newest minor release that all tests were run with."""


def untested(found: str) -> str:
    """One line about a newer jax; empty for one that was tested."""
    if Version(found).release[:2] <= Version(TESTED).release:
        return ""
    return (
        f"jax {found} is newer than what jaxgate was tested with ({TESTED}): it is tried as it is, and what cannot be read "
        "of it is unknown, with its reason; a newer jaxgate may know it"
    )
