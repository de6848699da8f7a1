"""The end of a run for whoever asks whether its results were checked."""

from __future__ import annotations

import pytest

from jaxgate.ext.opinion.text import opinion_lines
from jaxgate.plugin.console import Console
from jaxgate.plugin.stash import SESSION


def show(out: Console, config: pytest.Config) -> None:
    """Show who else was asked about new results; ``-v`` lists what nobody could be asked about."""
    session = config.stash.get(SESSION, None)
    for line in [] if session is None else opinion_lines(session.result.verdicts, each=config.get_verbosity() > 0):
        out.ensure_newline()
        out.write_line(line)
