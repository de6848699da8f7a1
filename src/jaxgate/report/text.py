"""What a person reads in the terminal: a red case, a case in a line, its roofline, and scaling efficiency."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jaxgate.ext.energy.model import EnergyRatio
from jaxgate.ext.energy.text import call_energy, energy_details, energy_row, ratio_of_energy
from jaxgate.ext.growth.model import OVER
from jaxgate.ext.history.text import describe_drift
from jaxgate.ext.profile.model import Side
from jaxgate.ext.profile.table import blame
from jaxgate.model.decision import UNMEASURED, Status
from jaxgate.model.outcome import Point, Scaling
from jaxgate.model.roofline import RESOURCES, Resource, Roofline
from jaxgate.model.verdict import Finding, Verdict
from jaxgate.model.words import detectable, plural, shortlist
from jaxgate.report.printable import aligned, code, printable, shell_word
from jaxgate.report.units import nearest_whole, show, show_pair, show_rate, show_rate_of, show_ratio, show_share
from jaxgate.report.waivers import expected_failures, unexpected_passes, waiver_note, waiver_notes


def roofline_line(found: Roofline) -> str:
    """One line: ``at least 1.2 ms, bound by memory (compute 0.4 ms, memory 1.2 ms, communication none)``."""
    parts = ", ".join(f"{resource} {need(found, resource)}" for resource in RESOURCES)
    if not found.least_ns:
        return f"least time unknown ({parts})" if found.unknown else f"next to nothing ({parts})"
    bound = "" if found.bound_by is None else f", bound by {found.bound_by}"
    return f"at least {show('least_ns', found.least_ns)}{bound} ({parts})"


def need(found: Roofline, resource: Resource) -> str:
    """What one resource would need: ``1.2 ms``, ``none``, ``unknown``, ``1.2 ms or more``."""
    time_ns = found.times_ns[resource]
    if resource in found.unknown:
        return f"{show('least_ns', time_ns)} or more" if time_ns else "unknown"
    return show("least_ns", time_ns) if time_ns else "none"


def roofline_rows(sides: Mapping[Side, Roofline]) -> Iterator[str]:
    """A table in Markdown with a column for each side, the first of them last; then what is not known, line by line."""
    names = list(sides)[::-1]
    yield f"| | {' | '.join(names)} |"
    yield f"|---|{'--:|' * len(names)}"
    for resource in RESOURCES:
        yield f"| {resource} | {' | '.join(need(sides[name], resource) for name in names)} |"
    bounds = [sides[name].bound_by or "not known" for name in names]
    yield f"| bound by | {' | '.join(bounds)} |"


def open_questions(sides: Mapping[Side, Roofline]) -> list[str]:
    """Why a resource may need more than is shown, one line for each reason."""
    return [
        f"{resource} of {name}: {reason}" for name, found in sides.items() for resource, reason in found.unknown.items()
    ]


_CALM = frozenset({Status.SAME, Status.IMPROVED, Status.FASTER, Status.EXPECTED, Status.UNDECIDED})
MAX_DIFFERENCES = 4
MAX_OTHERS = 3


def explain(verdict: Verdict, *, test: str, compiled_as: str = "", elsewhere: str = "") -> str:
    """The text of a case that is not green: verdict, numbers, time, baseline, culprit, commands.

    ``compiled_as`` are the options that chose a size and a target, ``elsewhere`` those that chose something else to
    compare with than the stored baselines.
    """
    worst = verdict.worst
    where = f"  on {verdict.hardware.slug}" if verdict.hardware else ""
    others = [f for f in verdict.findings[1:] if worst is not None and f.status is worst.status]
    # Held against another environment: its baseline begins with that one.
    environments = bool(elsewhere) and verdict.baseline.described.startswith(" ".join(shlex.split(elsewhere)[1::2]))
    lines = [f"{verdict.status}  {verdict.case}{where}"]
    judged = verdict.status not in UNMEASURED or verdict.hardware is not None
    if judged and environments:  # what differs between them explains all the rest
        lines.append(_row("against", _baseline(verdict)))
    if worst is not None:
        lines.append(_row("found", describe_finding(worst) + _more(others)))
    if notes := waiver_notes(verdict):
        lines.append(_row("waiver", "; ".join(notes)))
    if verdict.status is Status.RESOURCE_EXHAUSTED and verdict.evidence.allocations:
        lines.append(_row("largest", verdict.evidence.allocations[0]))
    if judged:
        lines.append(_row("time", _time(verdict)))
        if isinstance(verdict.cost.duel_energy, EnergyRatio):
            lines.append(_row("energy", energy_row(verdict.cost.duel_energy)))
        lines += [] if environments else [_row("baseline", _baseline(verdict))]
        lines += [_row(label, text) for label, text in blame(verdict, _culprit(verdict))]
    lines.append(_row("next", _commands(verdict, test, compiled_as, elsewhere)))
    return printable("\n".join(lines))


def describe_finding(finding: Finding) -> str:
    """One finding as a phrase: the number, what it is held against, what is allowed."""
    if finding.kind == "drift":
        return describe_drift(finding)
    if finding.now is None or finding.against is None:
        prefix = f"{finding.name}: " if finding.name and finding.kind in ("claim", "fact", "case") else ""
        return f"{prefix}{finding.detail}"
    quantity = finding.name.split(" ")[0]
    now, against = show_pair(quantity, finding.now, finding.against)
    ratio = show_ratio(finding.now, finding.against)
    share = f" = {ratio}" if ratio else ""
    if finding.kind == "time":
        return f"a call takes {now} against {against}{share}, allowed {show('run_ns', finding.allowed)}"
    if finding.kind == "claim":
        why = f" ({finding.detail})" if finding.detail else ""
        return f"claim {finding.name}: {now} against {against}{share}{_by_duel(finding)}{why}"
    less_is_worse = (
        finding.status is not Status.IMPROVED and finding.allowed is not None and finding.now < finding.allowed
    )
    full, allowed = show_pair(quantity, finding.now, nearest_whole(quantity, finding.allowed, up=less_is_worse))
    note = f" ({finding.detail})" if finding.detail else ""
    shown = full if full != show(quantity, finding.now) else now
    if finding.kind == "environment":
        return f"the baseline's own program has {quantity} {shown} here against {against} recorded{share}, allowed {allowed}"
    then = "" if finding.recorded is None else f", recorded {show(quantity, finding.recorded)}"
    limit = f"{'at least' if less_is_worse else 'allowed'} {allowed}"
    return f"{quantity} {shown} against {against}{share}, {limit}{then}{note}"


def details(verdict: Verdict) -> list[str]:
    """What ``-v`` adds: the case's own claims that hold, with how far they are from breaking, the least time of a target, energy.

    One that says just what it may, as 1 trace of 1, has no distance and is left out.
    """
    held = [finding for finding in verdict.findings if finding.kind == "claim" and finding.status is Status.SAME]
    lines = [f"holds: {describe_finding(finding)}" for finding in held if finding.now != finding.allowed]
    laws = [
        f"{one.name}: {one.detail}"
        for one in verdict.findings
        if one.name.startswith(OVER) and one.status is Status.SAME
    ]
    estimate = [] if verdict.cost.roofline is None else [f"estimate: {roofline_line(verdict.cost.roofline)}"]
    return [*lines, *laws, *estimate, *energy_details(verdict)]


def call_time(verdict: Verdict, *, rates: bool = True) -> str:
    """What a call takes, with its rate in the unit of the case and per joule, where known; empty where it was not timed."""
    if verdict.cost.run_ns is None:
        return ""
    tail = "" if verdict.cost.p99_ns is None else f" (p99 {show('p99_ns', verdict.cost.p99_ns)})"
    rate = (
        "" if verdict.cost.amount is None or not rates else f", {show_rate(verdict.cost.amount, verdict.cost.run_ns)}"
    )
    share = "" if verdict.cost.utilisation is None else f", {show_share(verdict.cost.utilisation)} MFU"
    energy = f", {call_energy(verdict)}" if rates and call_energy(verdict) else ""
    return f"{show('run_ns', verdict.cost.run_ns)}{tail}{rate}{energy}{share}"


def beside(verdict: Verdict) -> str:
    """The time of a case in two environments, or why nothing could be compared."""
    worst, decision = verdict.worst, verdict.time.decision
    if worst is not None and (worst.status in UNMEASURED or (worst.kind == "claim" and verdict.fails)):
        return describe_finding(worst)
    reason = verdict.time.reason if decision is None else f"{decision.ratio:.2f} × there, {verdict.time.reason}"
    return " · ".join([reason, *_undecided(verdict), *waiver_notes(verdict)])


def in_short(verdict: Verdict) -> str:
    """The reason of a verdict in a few words, and every waiver that speaks of it."""
    worst = verdict.worst
    if worst is None or worst.waiver is None:
        return " · ".join([_reason(verdict), *waiver_notes(verdict)])
    first, second = describe_finding(worst), waiver_note(worst)
    if worst.status is Status.WAIVED:
        first, second = second, first
        second += "" if worst.kind == "time" else f" · time {verdict.time.status}"
    return " · ".join([first, second, *waiver_notes(verdict, without=worst)])


def _reason(verdict: Verdict) -> str:
    worst = verdict.worst
    number = sum(finding.kind == "claim" and finding.status is Status.SAME for finding in verdict.findings)
    before = " (run time as measured before)" if any(finding.remembered for finding in verdict.findings) else ""
    expected = [*expected_failures(verdict), *unexpected_passes(verdict)]
    held = " · ".join([f"{plural(number, 'claim holds', 'claims hold')}{before}", *_undecided(verdict), *expected])
    if verdict.baseline.recorded == "created" or (verdict.baseline.recorded and worst and worst.kind == "baseline"):
        return f"{held} · {verdict.time.reason}" if verdict.time.anywhere else held
    if worst is not None and worst.status is Status.NO_BASELINE:
        before = (
            f"; {verdict.baseline.renamed_from}, whose test is gone, has its program: renamed?"
            if verdict.baseline.renamed_from
            else ""
        )
        return f"{held} · no baseline on this hardware{before}"
    if worst is not None and worst.status not in _CALM:
        return describe_finding(worst)
    improved = [
        f"{finding.name} {show_ratio(finding.now, finding.against)}".rstrip()
        for finding in verdict.findings
        if finding.status is Status.IMPROVED
    ]
    parts = [held]
    if improved:
        parts.append(f"improved: {', '.join(improved)}")
    decision = verdict.time.decision
    if improved or verdict.time.status is Status.FASTER:
        same_results = decision is None or decision.agrees
        parts.append("refresh with --perf-update" if same_results else "check its results before refreshing")
    parts.append(
        verdict.time.reason if decision is None else f"{decision.ratio:.2f} × the baseline, {verdict.time.reason}"
    )
    if isinstance(verdict.cost.duel_energy, EnergyRatio) and verdict.cost.duel_energy.differs:
        parts.append(f"{ratio_of_energy(verdict.cost.duel_energy)}, not gated")
    return " · ".join(parts)


def _by_duel(finding: Finding) -> str:
    """What the duel behind a claim about run time found, and whether fresh processes agree."""
    if finding.decision is None:
        return ""
    alone = "; not repeated in fresh processes" if finding.status is Status.REGRESSED else ""
    repeated = f"; in fresh processes {_ratios(finding.confirmed)}" if finding.confirmed else alone
    return f", {finding.decision.reason}{repeated}"


def _ratios(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.3f} ×" for ratio in ratios)


def _undecided(verdict: Verdict) -> list[str]:
    """What is open beside the time of a call, whose reason every line has."""
    undecided = [f for f in verdict.findings if f.kind != "time" and f.status is Status.UNDECIDED]
    return [f"undecided: {describe_finding(finding).removeprefix('claim ')}" for finding in undecided]


def _row(label: str, text: str) -> str:
    return f"  {label:<9} {text}"


def _more(others: Sequence[Finding]) -> str:
    if not others:
        return ""
    names = [f"{'claim ' if finding.kind == 'claim' else ''}{finding.name}{_by_clock(finding)}" for finding in others]
    return f"; also {shortlist(names, MAX_OTHERS)}"


def _by_clock(finding: Finding) -> str:
    by_clock = finding.decision is not None or finding.kind == "phase"
    unconfirmed = by_clock and not finding.confirmed and not finding.detail.startswith("confirmed")
    return " (not repeated in fresh processes)" if unconfirmed else ""


def _time(verdict: Verdict) -> str:
    decision = verdict.time.decision
    if decision is not None:
        interval = f"{decision.ratio:.3f} × [{decision.low:.3f}, {decision.high:.3f}], n={decision.pairs}"
        seen = f"{detectable(decision.sees)} (asked for {decision.threshold:.1%}); "
        known = "" if detectable(decision.sees) in verdict.time.reason else seen
        figures = f"{verdict.time.status}: {interval}, margin {decision.margin:.1%}"
        return f"{figures}; {known}{verdict.time.reason}{_confirmed(verdict)}"
    run = f"; median call {call_time(verdict)}, not gated" if verdict.cost.run_ns is not None else ""
    return f"{verdict.time.status}: {verdict.time.reason}{run}"


def _confirmed(verdict: Verdict) -> str:
    if not verdict.time.confirmed:
        alone = verdict.time.status is Status.SLOWER and verdict.status is not Status.SLOWER
        return "; not repeated in fresh processes, the case is red without it" if alone else ""
    return f"; in fresh processes {_ratios(verdict.time.confirmed)}"


def _baseline(verdict: Verdict) -> str:
    if not verdict.baseline.described:
        return "none"
    if verdict.origin is None:
        return verdict.baseline.described
    named = shortlist(verdict.origin.differences, MAX_DIFFERENCES) or "nothing differs"
    return f"{verdict.baseline.described}; {named}"


def _culprit(verdict: Verdict) -> str:
    """What the facts accuse, and where it comes from; nothing where nothing was compared."""
    if verdict.origin is None and not verdict.causes:
        return ""
    found = str(verdict.causes[0]) if verdict.causes else "cause unknown"
    if verdict.origin is None:
        return found
    separate = f" ({verdict.origin.separate})" if verdict.origin.separate else ""
    return f"{found}; comes from: {verdict.origin.place}{separate}"


def _commands(verdict: Verdict, test: str, compiled_as: str, elsewhere: str) -> str:
    reproduce = " ".join(filter(None, ("reproduce: pytest", shell_word(test), compiled_as, elsewhere)))
    if verdict.opinion is not None and verdict.opinion.wrong:
        return f"{reproduce}   reduce: jaxgate repro {shell_word(verdict.case)} --reduce"
    if elsewhere:
        return reproduce
    wrong = {f.kind for f in verdict.findings if f.status in {*UNMEASURED, Status.REGRESSED}}
    invalid = {f.kind for f in verdict.findings if f.status is Status.INVALID}
    if wrong & {"claim", "case", "drift"} or "time" in invalid:  # what --perf-update refuses, or would only hide
        return reproduce
    verb = "record" if verdict.status is Status.NO_BASELINE else "accept"
    return f"{reproduce}   {verb}: add --perf-update"


def scaling_lines(found: Iterable[Scaling]) -> list[str]:
    """``data-parallel, weak  1: 1.2 M samples/s, 8: 7.9 M samples/s (82 %)``, aligned."""
    series = list(found)
    texts = [", ".join(_point(point, each) for point in each.points) for each in series]
    return aligned([(each.series,) for each in series], texts=texts)


def scaling_table(found: Iterable[Scaling]) -> list[str]:
    """A Markdown table with a row for each number of devices of each series; no line if there is none."""
    rows = [
        f"| {code(each.series)} | {point.devices} | {show_rate_of(point.per_second, each.unit)} "
        f"| {show_share(point.efficiency)} |"
        for each in found
        for point in each.points
    ]
    return ["| scaling | devices | rate | efficiency |", "|---|--:|--:|--:|", *rows] if rows else []


def _point(point: Point, series: Scaling) -> str:
    rate = f"{point.devices}: {show_rate_of(point.per_second, series.unit)}"
    return rate if point is series.points[0] else f"{rate} ({show_share(point.efficiency)})"
