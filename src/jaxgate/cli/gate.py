"""``jaxgate gate``: the suite as CI runs it, with exit codes that a pipeline can act on.

Exit codes: 0 fine · 1 a case or a baseline failed · 2 the suite is broken or the machine unfit, so that nothing is
known · 3 nothing but baselines is missing, and ``jaxgate record`` makes them; or they are there, and not committed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jaxgate.cli.console import refuse, say, tell
from jaxgate.cli.pytest_arguments import (
    artifacts_folder,
    baselines_folder,
    has_option,
    platform,
    suite,
    value_of,
    values_of,
)
from jaxgate.ext.targets.runs import HERE, TARGET_OPTION, judge_each
from jaxgate.keep.baselines import baseline_files
from jaxgate.keep.files import append_page
from jaxgate.keep.git import merge_base, read_provenance
from jaxgate.keep.results import read_run_file
from jaxgate.model.outcome import GateExit
from jaxgate.model.words import plural
from jaxgate.settings import RESULTS_INTO, STEP_SUMMARY, TARGET, TIME_LIMIT

SEVERAL = 2
TIME_LIMIT_S = 3600.0
KILL_AFTER_S = 180.0
"""Seconds beyond the limit after which a run is killed: it ends itself a minute after it if anything of it still runs."""
_RECORD = "record them where CI runs: jaxgate record --why TEXT"


def run_pytest(command: Sequence[str], environ: Mapping[str, str], limit_s: float) -> int | None:
    """Run pytest; ``None`` if it had to be killed."""
    with subprocess.Popen(command, env=dict(environ)) as process:
        try:
            return process.wait(timeout=limit_s + KILL_AFTER_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return None
        except KeyboardInterrupt:
            process.wait()
            return 2


def gate(
    arguments: Sequence[str],
    environ: Mapping[str, str] = os.environ,
    run: Callable[[Sequence[str], Mapping[str, str], float], int | None] = run_pytest,
) -> int:
    """Run the suite strictly, for each target that is named, and say in one line what that means; gives the exit code.

    Among pytest's ``arguments`` ``--perf-target`` may stand several times, and name the hardware that is ``here``.
    ``run`` is given a limit in seconds, and gives ``None`` if it had to kill the command.
    """
    targets = values_of(arguments, TARGET_OPTION)
    if len(targets) < SEVERAL and HERE not in targets:
        (code, why), results = judge_once(arguments, environ, run)
        if results is None:
            _tell_summary(f"## ❌ jaxgate: no result\n\n{why}\n", environ)
        else:
            name = value_of(arguments, TARGET_OPTION) or HERE
            tell(results={name: str(artifacts_folder(arguments, environ) / "results.json")})
    else:
        try:
            code, why, page = judge_each(arguments, environ, partial(judge_once, run=run))
        except ValueError as error:
            return refuse("gate", str(error), int(GateExit.BROKEN))
        _tell_summary(page, environ)
    tell(why=why)
    say(f"jaxgate gate: {why} (exit code {int(code)})")
    return int(code)


def judge_once(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    run: Callable[[Sequence[str], Mapping[str, str], float], int | None],
) -> tuple[tuple[GateExit, str], dict[str, Any] | None]:
    """Run the suite once; gives what that means for a pipeline, why, and what the run left (``None`` if nothing)."""
    command = [sys.executable, "-m", "pytest", *suite(arguments), "--perf-strict"]
    against = [] if has_option(arguments, "--perf-against") else _merge_base(arguments, environ)
    limit = _limit(arguments, environ)
    own = [] if has_option(arguments, "--perf-time-limit") else [f"--perf-time-limit={limit:g}"]
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        into = Path(name) / "results.json"
        status = run([*command, *against, *own, *arguments], {**environ, RESULTS_INTO: str(into)}, limit)
        results = _read(into)
    return _meaning(results, status), results


def _limit(arguments: Sequence[str], environ: Mapping[str, str]) -> float:
    text = value_of(arguments, "--perf-time-limit") or environ.get(TIME_LIMIT, "")
    try:
        return float(text)
    except ValueError:
        return TIME_LIMIT_S  # what makes no sense is pytest's to refuse


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = read_run_file(path)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _meaning(results: Mapping[str, Any] | None, status: int | None) -> tuple[GateExit, str]:
    """What a run means for a pipeline, and why."""
    if results is None:
        ended = "was killed after its time limit" if status is None else f"ended with exit code {status}"
        return GateExit.BROKEN, f"pytest {ended} and judged nothing"
    code = GateExit(results["gate_exit"])
    cases = results["cases"]
    failed = [case for case in cases if case["fails"]]
    if code is GateExit.FINE and status != 0:
        return GateExit.BROKEN, f"nothing failed, and pytest ended with exit code {status}"
    if code is GateExit.FINE:
        changed = results["undecided_changed"]
        left = f"; the time of {plural(len(changed), 'changed program')} was not decided" if changed else ""
        return code, f"{plural(len(cases), 'case')} passed{left}"
    if code is GateExit.MISSING and not failed:
        files = plural(len(results["needs_commit"]), "file")
        return code, f"all passed, by baselines that are not in the commit: {files} of them to commit"
    if code is GateExit.MISSING:
        return code, f"{plural(len(failed), 'baseline')} missing or of other arguments; {_RECORD}"
    reasons = [*results["unfit"], *results["problems"]]
    reasons += [f"{plural(len(failed), 'case')} failed"] if failed else []
    reasons += [f"{plural(len(results['not_judged']), 'case')} not judged"] if results["not_judged"] else []
    return code, "; ".join(reasons) or f"pytest ended with exit code {status}"


def _tell_summary(page: str, environ: Mapping[str, str]) -> None:
    """Say on GitHub's page of the job what no run could."""
    file = environ.get(STEP_SUMMARY)
    if file:
        append_page(Path(file), page)


def _merge_base(arguments: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The option that compares with the merge base, where no stored baseline could serve this hardware."""
    folder = baselines_folder(arguments, environ)
    recorded = {path.parents[1].name.partition("-")[0] for path in baseline_files(folder, "*-*")}
    if recorded:
        target = value_of(arguments, TARGET_OPTION) or environ.get(TARGET, "")
        here = target.partition(":")[0] or platform(environ)
        if here in recorded:
            return []
        why = f"no baseline of a {here} in {folder}"
    else:
        why = f"no baseline in {folder}"
    if _is_trunk():  # a suite that is held against itself is always green
        say(f"jaxgate gate: {why}, and this is the trunk: nothing to compare with")
        return []
    say(f"jaxgate gate: {why}: comparing with the merge base")
    return ["--perf-against=merge-base"]


def _is_trunk() -> bool:
    """Whether the checkout is what it would be compared with."""
    here = read_provenance(Path.cwd())
    return here.commit is not None and not here.dirty and merge_base(Path.cwd()) == here.commit
