"""Why a case cannot be timed against its baseline's program, known before anything is compiled."""

from __future__ import annotations

from jaxgate.judge import Difference, why_untimed
from jaxgate.model import MAX_NAMED, shortlist

SEVERAL = "several processes: not duelled yet"
"""Why a program that runs over several processes is not timed against another."""


def why_hopeless(difference: Difference) -> str:
    """Why no duel could say anything; empty if one could."""
    now = difference.now
    if now.processes > 1:
        return SEVERAL
    launched = now.launched_programs and difference.baseline.launched_programs
    if now.only_raises:
        return "its error checks call Python, so that it cannot be stored and duelled; EQX_ON_ERROR=nan leaves them out"
    if (now.eager and not launched) or now.facts.host_callbacks or now.native_code:
        return "it cannot be stored and duelled"
    if not difference.executable:
        return "a duel would compile both sides here"
    if difference.program and not difference.work:
        decide = (
            f", and {shortlist(now.depends_on_values, MAX_NAMED)} may depend on them" if now.depends_on_values else ""
        )
        return f"a duel would give today's input values to both programs{decide}"
    return ""


def why_unclocked(difference: Difference, *, budget_left: bool) -> str:
    """Why no clock may decide; empty if one may."""
    if why := why_untimed(difference.now):
        return why
    if not difference.devices:
        return "a duel would give both programs one order of devices"
    return "" if budget_left else "the budget for duels is spent (--perf-budget)"
