"""The page of a case that failed, as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from jaxgate.ext.profile.model import Side
from jaxgate.ext.profile.table import communication_line, markdown_table, rank_table, step_line, waited_for
from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.measurement import Measurement
from jaxgate.model.roofline import Roofline
from jaxgate.model.verdict import Verdict
from jaxgate.report.printable import fenced, printable
from jaxgate.report.text import open_questions, roofline_rows
from jaxgate.report.units import show, show_ratio

BUFFERS = "jaxgate: largest buffers"
CHANGES = "jaxgate: what changed in the program since its baseline"

_MEMORY = (
    "argument_bytes", "output_bytes", "temp_bytes", "aliased_bytes", "state_bytes", "peak_bytes", "constant_bytes",
)  # fmt: skip
_FILES = {
    "now.stablehlo.txt": "today's program as traced",
    "baseline.stablehlo.txt": "the baseline's program as it is stored",
    "reference.stablehlo.txt": "the reference as traced",
    "stablehlo.diff": "what differs between the two, names and numbers normalised",
    "now.hlo.txt": "today's program as compiled here",
    "baseline.hlo.txt": "the baseline's program as compiled here",
    "reference.hlo.txt": "the reference as compiled here",
    "hlo.diff": "what differs between the two, names and numbers normalised",
    "now.jaxpr.txt": "what JAX traced",
    "retraces.txt": "who traced or compiled again, the root cause first",
    "verdict.json": "the verdict, everything that was checked, and the operations, as data",
}


def report(
    verdict: Verdict,
    now: Measurement | None,
    record: StoredBaseline | None,
    text: str,
    files: Sequence[str],
    *,
    logdir: str,
) -> str:
    """The page of a case; ``files`` are the others of its bundle, ``logdir`` has all bundles, relative to the project."""
    parts = [f"# {verdict.status}: {verdict.case}", fenced(text)]
    capture = verdict.evidence.capture
    if capture is not None and capture.table is not None:
        sentences = (
            f"{line.capitalize()}." for line in (step_line(capture.table), communication_line(capture.table)) if line
        )
        parts += ["## Where the time goes", " ".join(sentences), markdown_table(capture.table)]
    if capture is not None and capture.ranks:
        sentence = waited_for(capture.ranks)
        parts += [
            "## Ranks side by side",
            *([f"{sentence.capitalize()}."] if sentence else []),
            rank_table(capture.ranks),
        ]
    if capture is not None and capture.notes:
        parts += [fenced("\n".join(capture.notes))]
    memory = list(_memory(now, record))
    if memory:
        parts += ["## Memory of one device", "\n".join(["| | baseline | now | |", "|---|--:|--:|--:|", *memory])]
    parts += list(_least_times(verdict))
    for title, lines in report_sections(verdict):
        parts += [f"## {title.removeprefix('jaxgate: ').capitalize()}", fenced(lines)]
    if capture is not None and capture.sides:
        parts += ["## Look at the profiles", f"```console\n$ jaxgate tensorboard --logdir {shlex.quote(logdir)}\n```"]
    if capture is not None and capture.seconds:
        parts += [f"Captured in {capture.seconds:.1f} s."]
    known = [f"- [`{name}`]({name}): {_FILES[name]}" for name in files if name in _FILES]
    parts += ["## Files", "\n".join(known)] if known else []
    return printable("\n\n".join(parts)) + "\n"


def _memory(now: Measurement | None, record: StoredBaseline | None) -> Iterator[str]:
    for name in _MEMORY if now is not None else ():
        ours = getattr(now.facts, name) if now is not None else None
        theirs = None if record is None else getattr(record.baseline.facts, name)
        if ours is not None:
            against = "–" if theirs is None else show(name, theirs)
            yield f"| `{name}` | {against} | {show(name, ours)} | {show_ratio(ours, theirs)} |"


def _least_times(verdict: Verdict) -> Iterator[str]:
    """The roofline of a case that was compiled for a target, beside that of the other side."""
    if verdict.cost.roofline is None:
        return
    others = {} if verdict.evidence.capture is None else verdict.evidence.capture.rooflines
    sides: dict[Side, Roofline] = {"now": verdict.cost.roofline, **others}
    yield "## Least time of a call, estimated"
    yield (
        "At the peak rates of one device's data sheet; nothing is judged by it. Compute is that of matrix products and "
        "convolutions."
    )
    yield "\n".join(roofline_rows(sides))
    if unknown := open_questions(sides):
        yield fenced("\n".join(unknown))


def report_sections(verdict: Verdict) -> list[tuple[str, str]]:
    """Title and text of each list that a verdict brings."""
    lists = ((BUFFERS, verdict.evidence.allocations), (CHANGES, verdict.evidence.changes))
    return [(title, printable("\n".join(lines))) for title, lines in lists if lines]
