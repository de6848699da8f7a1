"""Second opinions on results, as a run says it once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxgate.model import OpinionBy, Verdict, plural


def opinion_lines(verdicts: Sequence[Verdict], *, each: bool) -> list[str]:
    """One sentence on who was asked about how many results, and what nobody could be asked about.

    Args:
        verdicts: Of the run.
        each: Whether to list what nobody could be asked about, with the reason, a line each.
    """
    opinions = {verdict.case: verdict.opinion for verdict in verdicts if verdict.opinion is not None}
    if not opinions:
        return []
    asked = Counter(opinion.by for opinion in opinions.values() if opinion.by)
    unasked = {case: opinion.why_not for case, opinion in opinions.items() if opinion.why_not}
    parts = [f"{asked[by]} by {by}" for by in OpinionBy if asked[by]]
    if unasked:
        reasons = set(unasked.values())
        why = reasons.pop() if len(reasons) == 1 else "the reasons are listed" if each else "-v says why"
        parts.append(f"{len(unasked)} by nobody ({why})")
    results = plural(len(opinions), "new result")
    listed = [f"  {case}: {why}" for case, why in unasked.items()] if each and len(set(unasked.values())) > 1 else []
    return [f"SECOND OPINION on {results}: {', '.join(parts)}", *listed]
