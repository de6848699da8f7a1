"""Where a recording comes from, and the log of who recorded what and why."""

from __future__ import annotations

import datetime as dt
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from jaxgate.keep.atomic import write_atomic
from jaxgate.model import Provenance

LOG = "LOG.md"
_HEADING = "# Baselines: what was recorded, when and why\n\n"


def utc_today() -> dt.date:
    """The UTC date of now."""
    return dt.datetime.now(dt.UTC).date()


def provenance(project: Path, *, today: dt.date | None = None) -> Provenance:
    """Describe the checkout that a recording is made from.

    Args:
        project: A folder inside the checkout; one without git has no commit.
        today: The date; the UTC date of now by default.
    """
    date = today or utc_today()
    commit = _git(project, "rev-parse", "HEAD") or None
    return Provenance(
        commit=commit,
        dirty=commit is not None and _git(project, "status", "--porcelain", "--untracked-files=no") != "",
        date=date.isoformat(),
        jaxgate=version("jaxgate"),
    )


def append_log(root: Path, *, created: Sequence[str], refreshed: Sequence[str], hardware: str, why: str) -> Path:
    """Add one dated line to ``LOG.md``; create the file with its heading if it is not there.

    Args:
        root: The folder of the baselines.
        created: Cases that had no baseline before.
        refreshed: Cases whose baseline was replaced.
        hardware: Where they were recorded.
        why: The reason that was given; an empty one is written down as such.
    """
    path = root / LOG
    text = path.read_text(encoding="utf-8") if path.exists() else _HEADING
    if not text.endswith("\n"):
        text += "\n"
    date = utc_today().isoformat()
    what = "; ".join(
        f"{word} {', '.join(f'`{case}`' for case in sorted(cases))}"
        for word, cases in (("created", created), ("refreshed", refreshed))
        if cases
    )
    reason = " ".join(why.split()) or "(no reason given)"
    write_atomic(path, f"{text}- {date} on `{hardware}`: {what}. Why: {reason}\n".encode())
    return path


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
