"""What the end of a run says of the drift budget: the cases of which no history is known yet."""

from __future__ import annotations

import pytest

from jaxgate.model.decision import Status
from jaxgate.model.words import plural, shortlist
from jaxgate.plugin.console import Console
from jaxgate.plugin.stash import SESSION

MAX_NAMED = 5


def show(out: Console, config: pytest.Config) -> None:
    """Name the cases that pass a budget because nothing is stored of them."""
    session = config.stash.get(SESSION, None)
    if session is None:
        return
    new = [
        verdict.case
        for verdict in session.result.verdicts
        if any(one.kind == "drift" and one.status is Status.SAME for one in verdict.findings)
    ]
    if new:
        cases = plural(len(new), "case has", "cases have")
        out.ensure_newline()
        out.write_line(
            f"DRIFT BUDGET: {cases} no history here yet, so that no drift was held against it: {shortlist(new, MAX_NAMED)}",
            yellow=True,
        )
