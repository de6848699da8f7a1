"""What a verdict says of a fault, and the score as people read it: in the terminal, and as a page of the docs."""

from __future__ import annotations

import datetime as dt
import re

from jaxgate.model.decision import Status
from jaxgate.report.text import explain
from tests.faults.model import Fault, Outcome, Score

ALARMS = frozenset(Status) - {Status.SAME, Status.IMPROVED, Status.FASTER, Status.UNDECIDED}


def of_fault(fault: Fault, verdict, places: tuple[str, ...]) -> Outcome:
    """Whether a fault was caught, and whether its cause was named first.

    Args:
        fault: The mistake.
        verdict: What was said of the case with it.
        places: Where it may be blamed.
    """
    kinds = {"fact", "claim"} if fault.file else {"fact"}  # a small program makes no claim: its facts must have moved
    moved = tuple(
        finding.name.partition(" ")[0]
        for finding in verdict.findings
        if finding.kind in kinds and finding.status is Status.REGRESSED
    )
    line = first_line(verdict)
    clause = line.split("; ")[0] if verdict.status is Status.REGRESSED else line  # what a person reads first
    caught = str(verdict.status) == fault.status and (not fault.moves or bool(fault.moves & set(moved)))
    blamed = caught and names(clause, fault.culprit) and names(line, "", places)
    why = ""
    if not caught:
        by = f" by {' or '.join(sorted(fault.moves))}" if fault.moves else ""
        why = f"expected {fault.status}{by}, found {verdict.status} {', '.join(moved)}"
    elif not blamed:
        later = "; a later clause does" if names(line, fault.culprit) and not names(clause, fault.culprit) else ""
        where = f", and to be at {' or '.join(places)}" if places else ""
        why = f"expected the first clause, {clause!r}, to say /{fault.culprit}/{where}{later}"
    return Outcome(
        name=fault.name,
        kind=fault.kind,
        case=fault.case,
        status=str(verdict.status),
        moved=moved,
        line=line,
        at=bare(verdict.evidence.line),
        caught=caught,
        blamed=blamed,
        identical=verdict.time.status is Status.SAME,
        why=why,
    )


def of_unchanged(name: str, case: str, verdict) -> Outcome:
    """Whether a program that only looks different was left alone."""
    alarms = [finding for finding in verdict.findings if finding.status in ALARMS]
    quiet = not alarms and verdict.status not in ALARMS
    return Outcome(
        name=name,
        kind="unchanged",
        case=case,
        status=str(verdict.status),
        moved=tuple(finding.name for finding in alarms),
        line="" if quiet else first_line(verdict),
        caught=quiet,
        identical=verdict.time.status is Status.SAME,
        why="; ".join(f"{finding.status} {finding.name}: {finding.detail}" for finding in alarms),
    )


def of_slowdown(fault: Fault, text: str, places: tuple[str, ...]) -> Outcome:
    """Whether a test that failed names the cause of its slow-down first.

    Args:
        fault: The mistake; whatever makes it red, the culprit is what is asked for.
        text: What was printed below the test's name; empty if it did not fail.
        places: Where it may be blamed.
    """
    row = re.search(r"^  culprit +(.*)$", text, flags=re.MULTILINE)
    line = row[1] if row else ""
    blamed = row is not None and names(line, fault.culprit, places)
    why = "" if blamed else f"expected the culprit to say /{fault.culprit}/ {' or '.join(places)}"
    return Outcome(
        name=fault.name, kind=fault.kind, case=fault.case, line=line, caught=row is not None, blamed=blamed, why=why
    )


def first_line(verdict) -> str:
    """The culprit as printed; where nothing could be compared, what was found."""
    rows = dict(re.findall(r"^  (\w+) +(.*)$", explain(verdict, test="planted"), flags=re.MULTILINE))
    judged = verdict.status is Status.REGRESSED
    line = re.sub(r"; comes from: .*$", "", rows["culprit"]) if judged else rows.get("found", "")
    return bare(line)


def bare(line: str) -> str:
    """Without the temporary folder."""
    return re.sub(r"\S*/(\w+\.py)", r"\1", line)


def names(line: str, culprit: str, places: tuple[str, ...] = ()) -> bool:
    """Whether a line says what it must, and names one of the places if there are any."""
    words = re.sub(r"\w+\.py:\d+", "", line)  # the name of a file must not pass for the name of an operation
    said = re.search(culprit, words, flags=re.IGNORECASE) is not None
    return said and (not places or any(re.search(rf"{re.escape(place)}\b", line) for place in places))


def summary(score: Score) -> list[str]:
    """Caught, blamed, left alone."""
    faults, unchanged = score.faults, score.unchanged
    caught, blamed = (sum(getattr(outcome, name) for outcome in faults) for name in ("caught", "blamed"))
    quiet, identical = (sum(getattr(outcome, name) for outcome in unchanged) for name in ("caught", "identical"))
    return [
        f"faults caught              {_share(caught, len(faults))}",
        f"first culprit clause right {_share(blamed, len(faults))}",
        f"unchanged, no alarm        {_share(quiet, len(unchanged))}; {identical} found identical, so that no clock is asked",
        *([f"not tried on {score.target:<13} {score.left}: they need calls"] if score.target else []),
        f"{score.versions}, {score.seconds:.0f} s",
    ]


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "0 of 0"


def word(outcome: Outcome) -> str:
    """What came of a fault, in one word."""
    if not outcome.caught:
        return "missed"
    return "right" if outcome.blamed else "misblamed"


def lines(score: Score) -> list[str]:
    """What came of each fault."""
    return [
        f"{word(outcome):<9}  {outcome.kind}: {outcome.name} ({outcome.seconds:.1f} s): {outcome.line}"
        for outcome in score.faults
    ]


def failures(score: Score) -> list[str]:
    """A paragraph for each outcome that is wrong."""
    wrong = [outcome for outcome in score.faults if not outcome.blamed]
    alarms = [outcome for outcome in score.unchanged if not outcome.caught]
    return [
        *(
            f"{word(outcome).upper()}  {outcome.kind}: {outcome.name} ({outcome.case})\n"
            f"    {outcome.status} {', '.join(outcome.moved) or 'no fact'}: {outcome.line}\n    {outcome.why}"
            for outcome in wrong
        ),
        *(f"ALARM  {outcome.name} of {outcome.case}.py: {outcome.why}\n    {outcome.line}" for outcome in alarms),
    ]


_ABOUT = (
    "Each row is a mistake of a few characters in a small program of `tests/faults/programs/`. The program was observed",
    "before and after, and judged as any case is. *right*: red for a fact that the mistake moves, and the first clause of the",
    "culprit names the planted cause. *misblamed*: red, but it names something else. *missed*: not red, or for another reason.",
    "The unchanged programs are the same sources renamed, reordered, reformatted or spelled differently; none may alarm.",
)
_NOT_CALLED = (
    "Nothing was called. A mistake that only calls show is not tried. What a row expects was written for a CPU:"
)
_ON_TARGET = {
    "tpu": "a TPU's compiler keeps small buffers in VMEM, which `temp_bytes` does not count, and has its own way to singular values.",
    "gpu": "the compiler of GPUs counts no FLOPs of a program that calls a library, and has its own sort.",
}


def markdown(score: Score) -> str:
    """The page ``docs/planted.md``."""
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    rows = [
        f"| {outcome.kind} | {outcome.name} | {word(outcome)} | {', '.join(outcome.moved) or '–'} | {_cell(outcome.line)} |"
        for outcome in score.faults
    ]
    page = [
        f"# Planted faults{f', compiled for {score.target}' if score.target else ''}",
        "",
        *_ABOUT,
        *(["", _NOT_CALLED, _ON_TARGET[score.target.partition(":")[0]]] if score.target else ()),
        "",
        f"Written by `{_command(score.target)}` on {today}.",
        "",
        "```text",
        *summary(score),
        "```",
        "",
        "| family | fault | outcome | facts that turned red | first culprit line |",
        "|---|---|---|---|---|",
        *rows,
    ]
    alarms = [
        f"- {outcome.name} of {outcome.case}.py: {outcome.why}" for outcome in score.unchanged if not outcome.caught
    ]
    return "\n".join([*page, *(["", "Alarms on unchanged programs:", "", *alarms] if alarms else [])]) + "\n"


def _command(target: str) -> str:
    page = f"planted-{target.partition(':')[0]}" if target else "planted"
    return f"python -m tests.faults programs{f' --target {target}' if target else ''} --markdown docs/{page}.md"


def _cell(line: str) -> str:
    cut = line if len(line) <= 160 else line[:159] + "…"
    return f"`{cut.replace('|', '¦').replace('`', '´')}`" if cut else "–"
