"""A run in the text format of OpenMetrics 1.0. Source: https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from jaxgate.model.outcome import CaseRecord, RunRecord

_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def openmetrics(run: RunRecord) -> str:
    """How the run ended, and of each case its verdict, its numbers and its time against the baseline's."""
    return "\n".join([*_lines(run), "# EOF", ""])


def _lines(run: RunRecord) -> Iterator[str]:
    yield from _family("jaxgate_gate_exit", "What a gate ends with: 0 fine, 1 red, 2 not judged, 3 no baseline.")
    yield f"jaxgate_gate_exit {run.gate_exit}"
    yield from _family("jaxgate_not_judged", "Tests that gate and gave no verdict.")
    yield f"jaxgate_not_judged {len(run.not_judged)}"
    yield from _family("jaxgate_case_failed", "1 for a case that failed, with its verdict.")
    for case in run.cases:
        yield f"jaxgate_case_failed{_labels(case, status=case.status)} {int(case.fails)}"
    yield from _family("jaxgate_case_value", "What was measured of a case; the last word of a name is its unit.")
    for case in run.cases:
        for name, value in sorted(({} if case.figures is None else case.figures.now).items()):
            if value is not None and isfinite(value):
                yield f"jaxgate_case_value{_labels(case, name=name)} {value!r}"
    yield from _family(
        "jaxgate_case_time_ratio", "The time of a call against that of the baseline, where it was measured."
    )
    for case in run.cases:
        if case.time.ratio is not None:
            yield f"jaxgate_case_time_ratio{_labels(case)} {case.time.ratio!r}"


def _family(name: str, text: str) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    yield f"# HELP {name} {text}"


def _labels(case: CaseRecord, **more: str) -> str:
    labels = {"case": case.case, "hardware": case.folder, **more}
    named = ",".join(f'{name}="{_safe(text)}"' for name, text in labels.items())
    return f"{{{named}}}"


def _safe(text: str) -> str:
    """A name as a label: what is no character to read may not stand in a text of UTF-8."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text).translate(_ESCAPED)


PAGES = {"metrics.txt": openmetrics}
"""What is written beside ``results.json``, each made of what that says; also where nothing is red."""
