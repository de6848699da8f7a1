"""``jaxgate gate`` for several targets: one run for each, in a folder of its own, and one page for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxgate.cli.console import complain, say, tell
from jaxgate.cli.pytest_arguments import artifacts_folder, values_of, without_option
from jaxgate.ext.page.command import PAGE, results_page
from jaxgate.ext.targets.model import Target
from jaxgate.keep.artifacts import Artifacts, ForeignFolderError
from jaxgate.keep.results import RESULTS, UnreadableResultsError, page_of, parse_results
from jaxgate.model.decision import Status
from jaxgate.model.outcome import GateExit
from jaxgate.model.words import plural
from jaxgate.report.printable import code, plain, printable
from jaxgate.report.units import show_pair
from jaxgate.settings import STEP_SUMMARY, TARGET

HERE = "here"
"""Names the hardware that is attached, among targets that are not."""
TARGET_OPTION = "--perf-target"
MAX_ROWS = 40
_CALM = frozenset({Status.SAME, Status.UNDECIDED, Status.EXPECTED})
_GOOD, _FAIR, _BAD = "✅", "⚠️", "❌"
_LONGEST = 120
"""Characters of a cell: a table of several columns has to fit a page."""

Judged = tuple[tuple[GateExit, str], dict[str, Any] | None]
"""What a run means for a pipeline, and why; and what it left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRun:
    """What came of one run."""

    name: str  # its target, or `here`
    folder: Path  # its bundles
    end: GateExit  # what it means for a pipeline
    why: str  # and why
    results: dict[str, Any] | None  # its `results.json`; `None` where it left nothing


def judge_each(
    arguments: Sequence[str], environ: Mapping[str, str], judge: Callable[[Sequence[str], Mapping[str, str]], Judged]
) -> tuple[GateExit, str, str]:
    """Run the suite for each target that the arguments name, one after the other.

    Returns:
        What all of them mean for a pipeline, why, and the page that shows them side by side.

    Raises:
        ValueError: If one is no target, or is named twice.
    """
    folders = _folders(values_of(arguments, TARGET_OPTION))
    root = artifacts_folder(arguments, environ)
    rest = without_option(without_option(arguments, TARGET_OPTION), "--perf-artifacts")
    # without the page of a pipeline's step: it gets one page, not four
    variables = {name: value for name, value in environ.items() if name not in (TARGET, STEP_SUMMARY)}
    artifacts = _begin(root)
    runs: list[TargetRun] = []
    for name, folder in folders.items():
        own = [] if name == HERE else [f"{TARGET_OPTION}={name}"]
        (end, why), results = judge([*rest, *own, f"--perf-artifacts={root / folder}"], variables)
        runs.append(TargetRun(name=name, folder=root / folder, end=end, why=why, results=results))
        say(f"jaxgate gate: {name}: {why} (exit code {int(end)})")
    severest = GateExit.severest(run.end for run in runs)
    page = _page(severest, runs)
    if artifacts is not None:
        _leave(artifacts, page, severest, runs)
        _draw(artifacts, runs)
    bad = [run.name for run in runs if run.end is not GateExit.FINE]
    tell(results={run.name: str(run.folder / RESULTS) for run in runs if run.results is not None})
    return severest, f"not fine: {', '.join(bad)}" if bad else f"{plural(len(runs), 'run')} passed", page


def _folders(names: Sequence[str]) -> dict[str, str]:
    """The folder of each run's bundles; what is no target, or is named twice, is refused."""
    found: dict[str, str] = {}
    for name in names:
        target = None if name == HERE else Target.parse(name)
        key = HERE if target is None else str(target)
        if key in found:
            raise ValueError(f"expected each {TARGET_OPTION} once, found {key} twice")
        found[key] = HERE if target is None else target.slug
    return found


def _page(severest: GateExit, runs: Sequence[TargetRun]) -> str:
    """How each run ended, a row for each case that moved on any hardware, and each run's own page."""
    fine = sum(run.end is GateExit.FINE for run in runs)
    ends = "\n".join(f"- {run.end.sign} {code(run.name)}: {plain(run.why)}" for run in runs)
    table = "\n".join(_table(runs))
    page = f"## {severest.sign} jaxgate: {fine} of {plural(len(runs), 'run')} passed\n\n"
    page += printable(f"{ends}\n\n{table}" if table else ends) + "\n"
    for run in runs:
        if run.results is not None and (own := page_of(run.folder)):
            page += f"\n### `{run.name}`\n\n{own.strip()}\n"
    return page


def _table(runs: Sequence[TargetRun]) -> Iterator[str]:
    """The cases that moved or failed anywhere; those that failed come first."""
    columns = [{case["case"]: case for case in run.results["cases"]} if run.results else {} for run in runs]
    fails: dict[str, bool] = {}
    for column in columns:
        for name, case in column.items():
            if case["fails"] or case["status"] not in _CALM:
                fails[name] = fails.get(name, False) or case["fails"]
    if not fails:
        return
    yield f"| case | {' | '.join(code(run.name) for run in runs)} |"
    yield "|---" * (len(runs) + 1) + "|"
    for name in sorted(fails, key=lambda name: not fails[name])[:MAX_ROWS]:
        yield f"| {code(name)} | {' | '.join(_cell(column.get(name)) for column in columns)} |"
    if len(fails) > MAX_ROWS:
        yield f"| … and {plural(len(fails) - MAX_ROWS, 'case')} more {'| ' * len(runs)}|"


def _cell(case: Mapping[str, Any] | None) -> str:
    if case is None:
        return "–"
    sign = _BAD if case["fails"] else _GOOD if case["status"] in (*_CALM, Status.IMPROVED, Status.FASTER) else _FAIR
    return f"{sign} {case['status']} {_worst(case)}".rstrip()


def _worst(case: Mapping[str, Any]) -> str:
    ratio = case["time"]["ratio"]
    if case["status"] in (Status.SLOWER, Status.FASTER) and ratio is not None:
        return f"{ratio:.2f} ×"
    finding = next((one for one in case["findings"] if one["status"] == case["status"]), None)
    if finding is None:
        return ""
    if finding["now"] is None or finding["against"] is None:
        return plain(finding["detail"][:_LONGEST])
    now, against = show_pair(finding["name"].split(" ")[0], finding["now"], finding["against"])
    return f"{code(finding['name'])} {against} → {now}"


def _begin(root: Path) -> Artifacts | None:
    """Take the folder of all runs, with a red page until they are over; ``None`` where it is somebody else's."""
    artifacts = Artifacts(root)
    try:
        artifacts.begin()
        artifacts.write_page("summary.md", "## ❌ jaxgate: no result\n\nThe runs did not come to their end.\n")
    except (ForeignFolderError, OSError) as error:
        complain(f"jaxgate gate: the page of all runs cannot be written: {error}")
        return None
    return artifacts


def _leave(artifacts: Artifacts, page: str, severest: GateExit, runs: Sequence[TargetRun]) -> None:
    """Write the page and the results of all runs where ``jaxgate comment`` looks for them."""
    commits = {run.results["commit"] for run in runs if run.results is not None}
    content = {
        "gate_exit": int(severest),
        "commit": commits.pop() if len(commits) == 1 else None,
        "runs": {run.name: run.results for run in runs},
    }
    try:
        artifacts.write_page("summary.md", page)
        artifacts.write_page(RESULTS, json.dumps(content, indent=2))
    except OSError as error:
        complain(f"jaxgate gate: the page of all runs could not be written: {error}")


def _draw(artifacts: Artifacts, runs: Sequence[TargetRun]) -> None:
    """Write the page to look at, of all runs that left something; what goes wrong here changes no exit code."""
    page = artifacts.root / PAGE
    shown = []
    for run in runs:
        if run.results is None:
            continue
        try:
            shown.append((run.folder / RESULTS, run.name, parse_results(run.results)))
        except UnreadableResultsError as error:
            complain(f"jaxgate gate: {page} is without {run.name}: {error}")
    if not shown:
        return
    try:
        artifacts.write_page(PAGE, results_page(shown, page))
    except Exception as error:  # noqa: BLE001 - a page is no part of a verdict
        complain(f"jaxgate gate: {page} could not be made: {type(error).__name__}: {error}")
    else:
        say(f"jaxgate gate: all runs side by side: {page}")
