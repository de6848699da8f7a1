"""The end of a run, for others to read: ``summary.md`` and ``results.json`` beside the bundles, and what GitHub shows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from jaxgate.judge.efficiency import scaling
from jaxgate.keep.git import git
from jaxgate.keep.provenance import merge_base
from jaxgate.model.outcome import Outcome
from jaxgate.plugin.fitness import unfit
from jaxgate.plugin.orphans import Orphans
from jaxgate.plugin.run import Run
from jaxgate.report.annotations import error_commands
from jaxgate.report.pull_request import pull_request_page
from jaxgate.report.results import results_json
from jaxgate.report.text import explain

SUMMARY, RESULTS = "summary.md", "results.json"
STEP_SUMMARY, ACTIONS = "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"
INTO = "JAXGATE_RESULTS_INTO"
"""Set by ``jaxgate gate``: a file of its own for the results, wherever the bundles go."""


def publish(
    run: Run, orphans: Orphans | None, *, selected: set[str], exit_status: int, environ: Mapping[str, str] = os.environ
) -> Outcome:
    """Write what a run came to. A page that cannot be written is told; the run was judged all the same.

    Args:
        run: The run, over.
        orphans: Baselines without a test, if they were looked for.
        selected: Node ids of the gates that were to be judged.
        exit_status: pytest's, as it will be.
        environ: Environment variables: GitHub's runner names a file for the job's summary.
    """
    outcome = _outcome(run, orphans, selected, exit_status)
    page = pull_request_page(outcome)
    results = results_json(outcome)
    for name, text in ((SUMMARY, page), (RESULTS, results)):
        run.captures.write_page(name, text)
    if environ.get(INTO):
        Path(environ[INTO]).write_text(results, encoding="utf-8")
    if environ.get(STEP_SUMMARY):
        try:
            with Path(environ[STEP_SUMMARY]).open("a", encoding="utf-8") as file:
                file.write(page)
        except OSError as error:
            run.captures.problems.append(f"the job's summary could not be written: {error}")
    return outcome


def workflow_commands(outcome: Outcome, environ: Mapping[str, str] = os.environ) -> list[str]:
    """What GitHub's runner turns into annotations; nothing elsewhere."""
    return list(error_commands(outcome.failed)) if environ.get(ACTIONS) == "true" else []


def _outcome(run: Run, orphans: Orphans | None, selected: set[str], exit_status: int) -> Outcome:
    tests = {
        verdict.case: run.tests_by_case[verdict.case] for verdict in run.verdicts if verdict.case in run.tests_by_case
    }
    elsewhere = run.settings.elsewhere
    return Outcome(
        verdicts=tuple(run.verdicts),
        tests=tests,
        texts={v.case: explain(v, test=tests.get(v.case, ""), elsewhere=elsewhere) for v in run.verdicts if v.fails},
        not_judged=tuple(sorted(selected - set(tests.values()))),
        problems=tuple(_problems(run, orphans)),
        unfit=tuple(filter(None, (run.time_over, unfit(run)))),
        scaling=scaling(run.verdicts),
        commit=git(run.project, "rev-parse", "HEAD"),
        baseline_edits=_baseline_edits(run) if run.settings.strict else (),
        needs_commit=run.afterwards.needs_commit,
        elsewhere=elsewhere,
        exit_status=exit_status,
    )


def _problems(run: Run, orphans: Orphans | None) -> Iterator[str]:
    yield from run.clashes
    if orphans is not None and run.settings.strict and not run.settings.against:
        yield from (f"{run.short(path)}: its test is gone or has another name" for path in orphans.paths)
    if orphans is not None:
        yield from (f"{run.short(error.path)} is unreadable: {error.reason}" for error in orphans.unreadable)


def _baseline_edits(run: Run) -> tuple[str, ...] | None:
    """What the checkout changes in the stored baselines since it left the trunk; ``None`` if git cannot tell."""
    base = merge_base(run.project)
    if base is None:  # no git, a checkout without history: the page says that it is not known
        return None
    edits = git(run.project, "diff", "--name-status", base, "--", str(run.settings.stored))
    return None if edits is None else tuple(edits.splitlines())
