"""A whole run for GitHub: Markdown for a job's summary or a pull request, and annotations of a workflow.

Names of tests come from whoever opened the pull request: nothing that they hold is Markdown or HTML here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jaxgate.ext.history.text import describe_drift
from jaxgate.model.decision import Status
from jaxgate.model.outcome import Outcome
from jaxgate.model.verdict import Verdict
from jaxgate.model.words import plural
from jaxgate.report.printable import code, fenced, fold, inline_code, plain, printable
from jaxgate.report.summary import count_statuses
from jaxgate.report.text import in_short, scaling_table
from jaxgate.report.units import show_pair, show_ratio

MAX_ANNOTATIONS = 10
"""GitHub shows so many errors of one step."""
FAR = 60
"""Most lines from what a cause names to the edit where it is shown: about a function."""
MAX_ROWS = 40
MAX_FOLDS = 20
MAX_EDITS = 50
"""GitHub takes a million characters of a job's summary, and 65,536 of a comment."""
_ICONS = {
    Status.SAME: "✅", Status.FASTER: "✅", Status.IMPROVED: "✅", Status.EXPECTED: "⚠️", Status.UNDECIDED: "⚠️",
    Status.WAIVED: "⚠️", Status.NO_BASELINE: "⚠️", Status.STALE_BASELINE: "⚠️",
}  # fmt: skip
_BAD = "❌"
_QUIET = frozenset({Status.SAME, Status.UNDECIDED})


def pull_request_page(outcome: Outcome) -> str:
    """The page: a headline that says how it ended, a table of what moved, and a fold for each case that failed."""
    parts = [f"## {_headline(outcome)}", _counts(outcome)]
    parts += [f"- {_bad(problem)}" for problem in (*outcome.unfit, *outcome.problems)]
    if outcome.needs_commit:
        baselines = plural(len(outcome.needs_commit), "file of the baselines needs", "files of the baselines need")
        parts.append(_listed(f"{baselines} a commit: without it nobody else has them", outcome.needs_commit))
    if outcome.not_judged:
        listed = ", ".join(code(test) for test in outcome.not_judged[:MAX_FOLDS])
        more = " …" if len(outcome.not_judged) > MAX_FOLDS else ""
        parts.append(f"{_BAD} **{len(outcome.not_judged)} not judged**: {listed}{more}")
    moved = [verdict for verdict in outcome.verdicts if verdict.fails or verdict.status not in _QUIET]
    if moved:
        parts.append("\n".join(_table(sorted(moved, key=lambda verdict: not verdict.fails))))
    table = scaling_table(outcome.scaling)
    if table:
        parts.append("\n".join(table))
    parts += _folds(outcome)
    parts += _undecided(outcome)
    parts += _environment(outcome)
    if outcome.baseline_edits is None:
        parts.append("⚠️ Whether this change edits baselines is not known: git finds no trunk; check out its history.")
    elif outcome.baseline_edits:
        title = f"This change edits {len(outcome.baseline_edits)} baseline files: what is green may be green because of that"
        parts.append(_listed(title, outcome.baseline_edits))
    if outcome.judge_edits:
        title = (
            f"This change edits {plural(len(outcome.judge_edits), 'line that says', 'lines that say')} how it is judged"
        )
        parts.append(_listed(title, outcome.judge_edits))
    return printable("\n\n".join(parts)) + "\n"


def _listed(title: str, lines: Sequence[str], most: int = MAX_EDITS) -> str:
    """A fold with the first lines, the others counted."""
    more = [f"… and {len(lines) - most} more"] if len(lines) > most else []
    return fold(f"⚠️ {title}", fenced("\n".join([*lines[:most], *more])))


def _headline(outcome: Outcome) -> str:
    total = len(outcome.verdicts)
    if not total:
        return f"{_BAD} jaxgate: no case was judged"
    cases = plural(total, "case")
    if outcome.failed:
        return f"{_BAD} jaxgate: {len(outcome.failed)} of {cases} failed"
    if outcome.passed and outcome.needs_commit:
        recorded = sum(bool(verdict.baseline.recorded) for verdict in outcome.verdicts)
        did = f"{recorded} of {cases} recorded" if recorded else f"{cases} passed"
        return f"⚠️ jaxgate: {did}, and the baselines are not committed"
    if not outcome.green:
        return f"{_BAD} jaxgate: no case of {total} failed, and the run is not green"
    changed = sum(verdict.changed_untimed for verdict in outcome.verdicts)
    if changed:
        return f"⚠️ jaxgate: {cases} passed, and the time of {plural(changed, 'changed program')} was not decided"
    return f"✅ jaxgate: {cases} passed"


def _undecided(outcome: Outcome) -> Iterator[str]:
    """Name the cases that are undecided, and why: those whose program changed apart from those where nothing seen did."""
    left = [verdict for verdict in outcome.verdicts if verdict.status is Status.UNDECIDED]
    changed = [verdict for verdict in left if verdict.changed_untimed]
    same = [verdict for verdict in left if not verdict.changed_untimed]
    for verdicts, what in (
        (changed, "The program changed, and its time was not decided"),
        (same, "Undecided, and nothing that is seen of the program changed"),
    ):
        if verdicts:
            lines = [f"{verdict.case}: {in_short(verdict)}" for verdict in verdicts]
            yield _listed(f"{what}: {plural(len(verdicts), 'case')}", lines, MAX_ROWS)


def _counts(outcome: Outcome) -> str:
    shown = count_statuses(outcome.verdicts) or "nothing"
    slugs = sorted({verdict.hardware.slug for verdict in outcome.verdicts if verdict.hardware})
    where = f" on {', '.join(code(slug) for slug in slugs)}" if slugs else ""
    against = f", against {code(outcome.elsewhere)}" if outcome.elsewhere else ""
    return f"{shown}{where}{against}."


def _table(verdicts: list[Verdict]) -> Iterator[str]:
    yield "| verdict | case | what moved most | now | before | |"
    yield "|---|---|---|--:|--:|--:|"
    for verdict in verdicts[:MAX_ROWS]:
        yield f"| {_icon(verdict)} {verdict.status} | {code(verdict.case)} | {_moved(verdict)} |"
    if len(verdicts) > MAX_ROWS:
        yield f"| | … and {len(verdicts) - MAX_ROWS} more | | | | |"


def _moved(verdict: Verdict) -> str:
    """The deciding finding as four cells."""
    decision, worst = verdict.time.decision, verdict.worst
    if decision is not None and verdict.status in (Status.SLOWER, Status.FASTER):
        now, before = show_pair("run_ns", decision.now_ns, decision.baseline_ns)
        return f"time of a call | {now} | {before} | {decision.ratio:.2f} ×"
    if worst is None:
        return " | | | "
    finding = next((f for f in verdict.findings if f.status is verdict.status), worst)
    if finding.kind == "drift":
        return f"{plain(describe_drift(finding))} | | | "
    if finding.now is None or finding.against is None:
        return f"{code(finding.name or finding.kind)} {plain(finding.detail)} | | | "
    quantity = finding.name.split(" ")[0]
    now, against = show_pair(quantity, finding.now, finding.against)
    return f"{code(finding.name)} | {now} | {against} | {show_ratio(finding.now, finding.against)}"


def _folds(outcome: Outcome) -> Iterator[str]:
    for verdict in outcome.failed[:MAX_FOLDS]:
        title = f"{_BAD} {verdict.status} {inline_code(verdict.case)}"
        yield fold(title, fenced(outcome.texts.get(verdict.case, "")))
    if len(outcome.failed) > MAX_FOLDS:
        yield f"… and {len(outcome.failed) - MAX_FOLDS} more that failed"


def _environment(outcome: Outcome) -> Iterator[str]:
    """What differs from the environments of the baselines, each difference with the number of cases that have it."""
    changes = Counter(
        difference
        for verdict in outcome.verdicts
        if verdict.origin is not None
        for difference in verdict.origin.differences
        if "→" in difference
    )
    if changes:
        lines = "\n".join(f"{change}  ({count} cases)" for change, count in changes.most_common())
        yield fold("What differs from the environment of the baselines", fenced(lines))


def _icon(verdict: Verdict) -> str:
    return _BAD if verdict.fails else _ICONS.get(verdict.status, _BAD)


def _bad(problem: str) -> str:
    return f"{_BAD} {plain(problem)}"


def error_commands(outcome: Outcome) -> Iterator[str]:
    """Workflow commands, which GitHub shows on the line that each names; nothing that a name holds ends one or begins another."""
    for verdict in outcome.failed[:MAX_ANNOTATIONS]:
        file, line = place(outcome.lines.get(verdict.case, ""))
        placed = {"file": file, "line": file and str(line), "title": f"{verdict.status} {verdict.case}"}
        properties = ",".join(f"{name}={_property(value)}" for name, value in placed.items() if value)
        said = [in_short(verdict), *map(str, verdict.causes[:1])]
        yield f"::error {properties}::{_data('; '.join(said))}"


def place(line: str) -> tuple[str, int]:
    """A file and a number of ``file:line``, or of a file alone."""
    file, _, number = line.rpartition(":")
    return (file, int(number)) if file and number.isdecimal() else (line, 1)


def in_the_diff(line: str, changed: Mapping[str, Sequence[int]]) -> str:
    """The nearest changed line of the same file, at most ``FAR`` away, else the line itself: hosts show remarks there only."""
    file, number = place(line)
    near = min(changed.get(file, ()), key=lambda one: abs(one - number), default=number)
    return f"{file}:{near}" if near != number and abs(near - number) <= FAR else line


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
