"""The log of who accepted what and why: one small file for each entry, ``<baselines>/log/<moment>-<word>.md``.

One file that everybody appends to conflicts whenever two branches record; ``merge=union`` mends that in a local
git only (GitHub takes no notice of it, and runs no checks on a pull request that conflicts). Files of their own
merge everywhere, and ``cat baselines/log/*.md`` reads as one. Old entries may share a file whose name sorts before theirs.
"""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from jaxgate.keep.files import is_linked, may_be_quoted, read_text, write_atomic
from jaxgate.model.inventory import LogEntry
from jaxgate.model.words import plural

LOG_FOLDER = "log"
_ENTRY = re.compile(r"- (\d{4}-\d\d-\d\d) on `([^`]+)`: (.*?)\. Why: (.*)")
_NAMED = re.compile(r"`([^`]+)`")


def append_log(
    root: Path,
    *,
    created: Sequence[str],
    refreshed: Sequence[str],
    folder: str,
    why: str,
    worse: Mapping[str, str] = MappingProxyType({}),
    energy: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Add the entry of a recording on one hardware, with one release line of jax.

    An empty reason is written down as such. ``worse`` has the worst figure of each refreshed case that lost something,
    within its tolerance or not. ``energy`` is that of a call, in words: no baseline keeps it.
    """

    def named(case: str) -> str:
        figures = "; ".join(filter(None, (worse.get(case, ""), energy.get(case, ""))))
        figure = " ".join(figures.replace("`", "'").split())  # names of cases stand in backticks
        return f"`{case}` ({figure})" if figure else f"`{case}`"

    what = "; ".join(
        f"{word} {', '.join(map(named, sorted(cases)))}"
        for word, cases in (("created", created), ("refreshed", refreshed))
        if cases
    )
    return _write(root, f"on `{folder}`: {what}", why)


def log_trimmed(root: Path, *, removed: Sequence[str], programs: int, why: str) -> Path:
    """Add the entry of a trim."""
    parts = [f"baselines {', '.join(f'`{name}`' for name in sorted(removed))}"] if removed else []
    parts += [f"{plural(programs, 'program')} that no baseline names"] if programs else []
    return _write(root, f"trimmed {' and '.join(parts)}", why)


def last_line(root: Path) -> str:
    """The newest entry as it stands; empty where there is none that can be read."""
    lines = [line for text in _texts(root) for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def read_log(root: Path) -> tuple[LogEntry, ...]:
    """Every entry of a recording, oldest first; what people wrote by hand in other words is passed over."""
    lines = [line for text in _texts(root) for line in text.splitlines()]
    found = [match.groups() for match in map(_ENTRY.match, lines) if match]
    return tuple(
        LogEntry(date=date, folder=folder, cases=tuple(_NAMED.findall(what)), why=why)
        for date, folder, what, why in found
    )


def _texts(root: Path) -> Iterator[str]:
    """The entries, oldest first; what no recording writes is passed over: a link, a pipe, a file without end."""
    for path in sorted((root / LOG_FOLDER).glob("*.md")):
        if may_be_quoted(path) and not is_linked(path, root):
            with suppress(OSError):
                yield read_text(path, errors="replace")


def _write(root: Path, what: str, why: str) -> Path:
    now = dt.datetime.now(dt.UTC)
    path = root / LOG_FOLDER / f"{now.strftime('%Y-%m-%dT%H-%M-%S')}-{secrets.token_hex(4)}.md"  # sorts by time
    reason = " ".join(why.split()) or "(no reason given)"
    write_atomic(path, f"- {now.date().isoformat()} {what}. Why: {reason}\n".encode())
    return path
