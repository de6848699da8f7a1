"""The end of a run for whoever asks how frameworks compare."""

from __future__ import annotations

import pytest

from jaxgate.plugin.console import Console
from jaxgate.plugin.stash import SESSION
from jaxgate.report.contrast import contrast_lines


def show_contrasts(out: Console, config: pytest.Config) -> None:
    """Show the sides of each contrast whose sides do the same."""
    session = config.stash.get(SESSION, None)
    for line in [] if session is None else contrast_lines(session.result.verdicts):
        out.ensure_newline()
        out.write_line(line)
