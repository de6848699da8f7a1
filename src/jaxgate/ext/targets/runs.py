"""``jaxgate gate`` for several targets: one run for each, in a folder of its own, and one page for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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

MAX_ROWS = 40
_CALM = frozenset({Status.SAME, Status.UNDECIDED, Status.EXPECTED})
_GOOD, _FAIR, _BAD = "✅", "⚠️", "❌"
_LONGEST = 120
"""Characters of a cell: a table of several columns has to fit a page."""

Results = Mapping[str, Any]
"""What a run left as ``results.json``."""


def side_by_side(runs: Mapping[str, Results | None], meanings: Mapping[str, tuple[GateExit, str]]) -> str:
    """The page: how each run ended, then a row for each case that moved on any hardware.

    Runs are by hardware, ``None`` where one left nothing; ``meanings`` are for a pipeline.
    """
    ends = [f"- {found.sign} {code(name)}: {plain(why)}" for name, (found, why) in meanings.items()]
    moved = _moved(runs)
    parts = ["\n".join(ends)]
    if moved:
        parts.append("\n".join(_table(moved, runs)))
    return printable("\n\n".join(parts)) + "\n"


def _moved(runs: Mapping[str, Results | None]) -> list[str]:
    """The cases that moved or failed anywhere; those that failed come first."""
    found: dict[str, bool] = {}
    for results in runs.values():
        for case in [] if results is None else results["cases"]:
            if case["fails"] or case["status"] not in _CALM:
                found[case["case"]] = found.get(case["case"], False) or case["fails"]
    return sorted(found, key=lambda name: not found[name])


def _table(moved: Sequence[str], runs: Mapping[str, Results | None]) -> Iterator[str]:
    yield f"| case | {' | '.join(code(name) for name in runs)} |"
    yield "|---" * (len(runs) + 1) + "|"
    columns = [{case["case"]: case for case in results["cases"]} if results else {} for results in runs.values()]
    for name in moved[:MAX_ROWS]:
        yield f"| {code(name)} | {' | '.join(_cell(column.get(name)) for column in columns)} |"
    if len(moved) > MAX_ROWS:
        yield f"| … and {plural(len(moved) - MAX_ROWS, 'case')} more {'| ' * len(runs)}|"


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


HERE = "here"
"""Names the hardware that is attached, among targets that are not."""
TARGET_OPTION = "--perf-target"

Judged = tuple[tuple[GateExit, str], dict[str, Any] | None]
"""What a run means for a pipeline, and why; and what it left."""


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
    variables = {
        name: value for name, value in environ.items() if name not in (TARGET, STEP_SUMMARY)
    }  # one page, not four
    artifacts = _begin(root)
    meanings: dict[str, tuple[GateExit, str]] = {}
    runs: dict[str, dict[str, Any] | None] = {}
    for name, folder in folders.items():
        own = [] if name == HERE else [f"{TARGET_OPTION}={name}"]
        meanings[name], runs[name] = judge([*rest, *own, f"--perf-artifacts={root / folder}"], variables)
        say(f"jaxgate gate: {name}: {meanings[name][1]} (exit code {int(meanings[name][0])})")
    code = GateExit.severest(found for found, _ in meanings.values())
    page = _page(code, runs, meanings) + "".join(
        _part(name, root / folder) for name, folder in folders.items() if runs[name] is not None
    )
    if artifacts is not None:
        _leave(artifacts, page, runs, code)
        _draw(artifacts, folders, runs)
    bad = [name for name, (found, _) in meanings.items() if found is not GateExit.FINE]
    why = f"not fine: {', '.join(bad)}" if bad else f"{plural(len(runs), 'run')} passed"
    tell(results={name: str(root / folders[name] / RESULTS) for name, found in runs.items() if found is not None})
    return code, why, page


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


def _page(
    code: GateExit, runs: Mapping[str, dict[str, Any] | None], meanings: Mapping[str, tuple[GateExit, str]]
) -> str:
    fine = sum(found is GateExit.FINE for found, _ in meanings.values())
    headline = f"## {code.sign} jaxgate: {fine} of {plural(len(runs), 'run')} passed"
    return f"{headline}\n\n{side_by_side(runs, meanings)}"


def _part(name: str, folder: Path) -> str:
    """A run's own page; nothing where it left none."""
    page = page_of(folder)
    return f"\n### `{name}`\n\n{page.strip()}\n" if page else ""


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


def _draw(artifacts: Artifacts, folders: Mapping[str, str], runs: Mapping[str, dict[str, Any] | None]) -> None:
    """Write the page to look at, of all runs that left something; what goes wrong here changes no exit code."""
    page = artifacts.root / PAGE
    shown = []
    for name, found in runs.items():
        if found is None:
            continue
        try:
            shown.append((artifacts.root / folders[name] / RESULTS, name, parse_results(found)))
        except UnreadableResultsError as error:
            complain(f"jaxgate gate: {page} is without {name}: {error}")
    if not shown:
        return
    try:
        artifacts.write_page(PAGE, results_page(shown, page))
    except Exception as error:  # noqa: BLE001 - a page is no part of a verdict
        complain(f"jaxgate gate: {page} could not be made: {type(error).__name__}: {error}")
    else:
        say(f"jaxgate gate: all runs side by side: {page}")


def _leave(artifacts: Artifacts, page: str, runs: Mapping[str, dict[str, Any] | None], code: GateExit) -> None:
    """Write the page and the results of all runs where ``jaxgate comment`` looks for them."""
    commits = {found["commit"] for found in runs.values() if found is not None}
    content = {"gate_exit": int(code), "commit": commits.pop() if len(commits) == 1 else None, "runs": runs}
    try:
        artifacts.write_page("summary.md", page)
        artifacts.write_page(RESULTS, json.dumps(content, indent=2))
    except OSError as error:
        complain(f"jaxgate gate: the page of all runs could not be written: {error}")
