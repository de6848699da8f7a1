"""Second opinions on results, as a run says it once, at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from jaxgate.ext.opinion.model import SWITCHED_OFF, OpinionBy
from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.verdict import Verdict
from jaxgate.model.words import plural, shortlist
from jaxgate.plugin.console import Console
from jaxgate.plugin.stash import SESSION


def show(out: Console, config: pytest.Config) -> None:
    """Show who else was asked about new results; ``-v`` lists what nobody could be asked about."""
    session = config.stash.get(SESSION, None)
    for line in [] if session is None else opinion_lines(session.result.verdicts, each=config.get_verbosity() > 0):
        out.ensure_newline()
        out.write_line(line)


def opinion_lines(verdicts: Sequence[Verdict], *, each: bool) -> list[str]:
    """One sentence on who was asked about how many results; nothing where nobody was to be asked.

    ``each`` adds a line for each that nobody could be asked about, with the reason.
    """
    called = [verdict for verdict in verdicts if verdict.hardware is None or not verdict.hardware.target]
    opinions = {verdict.case: verdict.opinion for verdict in called if verdict.opinion is not None}
    wanted = {case: opinion for case, opinion in opinions.items() if opinion.why_not != SWITCHED_OFF}
    if not wanted:
        return []
    asked = Counter(opinion.by for opinion in wanted.values() if opinion.by)
    unasked = {case: opinion.why_not for case, opinion in wanted.items() if opinion.why_not}
    reasons = set(unasked.values())
    parts = [f"{asked[by]} by {by}" for by in OpinionBy if asked[by]]
    if unasked:
        why = "" if each else f": {reasons.pop()}" if len(reasons) == 1 else " (-v says why)"
        parts.append(f"{len(unasked)} not checked{why}")
    partly = {case: opinion.left_alone for case, opinion in wanted.items() if opinion.left_alone}
    if partly:
        parts.append(f"{len(partly)} in part, as float error moves the rest far{'' if each else ' (-v lists it)'}")
    listed = [f"  {case}: {why}" for case, why in unasked.items()] if each else []
    listed += [f"  {case}: not {shortlist(left, MAX_NAMED)}" for case, left in partly.items()] if each else []
    return [f"SECOND OPINION on {plural(len(wanted), 'new result')}: {', '.join(parts)}", *listed]
