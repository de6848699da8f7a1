"""Cases that failed as annotations of a GitHub workflow: one line each beside the run."""

from __future__ import annotations

from collections.abc import Iterator

from jaxgate.model import Verdict
from jaxgate.report.text import in_short

MAX_ANNOTATIONS = 10
"""GitHub shows as many errors of one step."""


def error_commands(failed: tuple[Verdict, ...]) -> Iterator[str]:
    """Workflow commands; nothing that a name holds ends one or begins another."""
    for verdict in failed[:MAX_ANNOTATIONS]:
        title = f"{verdict.status} {verdict.case}"
        yield f"::error title={_property(title)}::{_data(in_short(verdict))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
