"""``jaxgate bisect``: the first commit, or the first release of a package, with which a case became worse.

Exit codes: 0 it is named · 1 it could not be narrowed down to one, or both sides are alike · 2 the question makes no sense here ·
130 interrupted; the same command goes on.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from jaxgate.cli.case_test import CaseTest, find_test, support_files
from jaxgate.cli.console import begin, refuse, say
from jaxgate.cli.pytest_arguments import IniError, divided, project_of, suite, usual_folder
from jaxgate.cli.search_key import measured_by, working_state
from jaxgate.engine.bisection import AlikeError, Answer, Question, Search
from jaxgate.judge import BISECTED
from jaxgate.keep import CorruptBaselineError, cache_folder, forget, forget_old, question_file, run_git, search_folder
from jaxgate.model import RUN_TIME, AskedSide, Mark, UsageError, cut, plural
from jaxgate.processes.git_bisect import CommitRange
from jaxgate.processes.git_revision import resolve_revision
from jaxgate.processes.pytest_child import fresh_environment
from jaxgate.processes.release_index import ReleaseRange, between, releases_of
from jaxgate.processes.revisions import Range, Revisions, Subject
from jaxgate.report import bisection_table, compared_with, first_bad_lines, moved_twice, show
from jaxgate.settings.variables import NAMED_LIKE

COMMAND = "jaxgate bisect"
_FOUND, _OPEN, _REFUSED, _INTERRUPTED = 0, 1, 2, 130
"""Exit codes of this command."""
_refuse = partial(refuse, "bisect", code=_REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was typed.

    Attributes:
        case: The case, or the node id of its test.
        good: Commit or release.
        bad: The same; empty for the last commit, or the release that is installed.
        over: A package whose releases are searched; empty for commits.
        fact: The quantity to follow; empty for the first that moved.
        compare_with: The side that each revision is compared with.
        tests: ``own`` or ``today``; empty lets the good side decide.
        also: Files to copy beside today's test.
        first_parent: Whether merged branches count as their merge.
        reset: Forget the searches and environments that are kept.
    """

    case: str
    good: str
    bad: str = ""
    over: str = ""
    fact: str = ""
    compare_with: AskedSide = "good"
    tests: str = ""
    also: tuple[str, ...] = ()
    first_parent: bool = False
    reset: bool = False


def bisect(asked: Asked, arguments: Sequence[str], *, search: Callable[..., Revisions] = Revisions) -> int:
    """Search, and print what was found.

    Args:
        asked: What was typed.
        arguments: pytest's: paths to look for the test in, and options of each of its runs.
        search: Makes what measures revisions.

    Returns:
        The exit code.
    """
    try:
        if asked.reset:
            return reset()
        return _search(asked, arguments, search)
    except AlikeError as error:
        say(f"{COMMAND}: {error}")
        return _OPEN
    except CorruptBaselineError as error:
        return _refuse(f"{error}; forget this search: {COMMAND} --reset")
    except (UsageError, IniError, OSError) as error:
        return _refuse(str(error).removeprefix(f"{COMMAND}: "))
    except KeyboardInterrupt:
        say("")
        say(f"{COMMAND}: interrupted; the same command goes on from here, {COMMAND} --reset forgets it")
        return _INTERRUPTED


def reset() -> int:
    """Forget all searches that are under way, with their worktrees, and the environments of releases."""
    cache = cache_folder()
    for name in ("bisect", "environments"):
        say(f"{cache / name}: {show('kept_bytes', forget(cache / name))} removed")
    run_git(Path.cwd(), "worktree", "prune")
    return _FOUND


def _search(asked: Asked, arguments: Sequence[str], search: Callable[..., Revisions]) -> int:
    _check(asked)
    here = Path.cwd()
    project = project_of(here)
    paths, options = divided(arguments)
    baselines = usual_folder(here)
    environ = fresh_environment(os.environ, options)
    case = find_test(
        asked.case, [*suite(paths), *paths], project=project, baselines=baselines, environ=environ, here=here
    )
    also = [Path(os.path.relpath(here / name, project)) for name in asked.also]
    files = support_files(case.file, project, also)
    environ |= {NAMED_LIKE: str(baselines)}
    within, folder = _range(asked, options, project=project, case=case, files=files, environ=environ)
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        _announce(asked, case, within, files)
        subject = Subject(case=case.case, test=case.test, names=case.names)
        copied = {"own": False, "today": True}.get(asked.tests) if within.unit == "commit" else False
        question = Question(fact=asked.fact, asked=asked.compare_with, copied=copied)
        revisions = search(subject, within, folder, waits=begin)
        file = question_file(folder, asked.fact, asked.compare_with)
        try:
            answer = Search(question, within, revisions, file, begin=begin, end=say).run()
        except (AlikeError, UsageError):
            within.close()
            raise
        _report(answer, asked, within)
        within.close()
    return _FOUND if len(answer.first_bad) == 1 else _OPEN


def _check(asked: Asked) -> None:
    """Refuse what makes no sense before anything is looked at.

    Raises:
        UsageError: Says what.
    """
    if not asked.case or not asked.good:
        raise UsageError("expected a case and a good side: jaxgate bisect CASE --good REV")
    if asked.fact and asked.fact not in BISECTED:
        like = get_close_matches(asked.fact, BISECTED, 3, cutoff=0) or sorted(BISECTED)
        raise UsageError(
            f"expected a fact of docs/policy.md or {RUN_TIME}, found --fact {asked.fact}; did you mean {', '.join(like)}?"
        )
    if lost := [path for path in asked.also if not path or not Path(path).exists()]:
        raise UsageError(f"expected a file or folder to copy, found none: --with {lost[0]}")
    if asked.over and (asked.tests or asked.also or asked.first_parent):
        raise UsageError("--tests, --with and --first-parent are for commits; over releases the project stays as it is")


def _range(
    asked: Asked,
    options: Sequence[str],
    *,
    project: Path,
    case: CaseTest,
    files: Sequence[Path],
    environ: Mapping[str, str],
) -> tuple[Range, Path]:
    """What is searched, and the folder of this search.

    Raises:
        UsageError: If it is no range.
    """
    cache = cache_folder()
    forget_old(cache, time.time())
    about = [str(project), case.case, case.test, asked.tests, *options, *measured_by(environ)]
    whole = [project / file for file in files]
    if asked.over:
        try:
            installed = version(asked.over)
        except PackageNotFoundError:
            raise UsageError(f"expected a package that is installed here, found --over {asked.over}") from None
        say(f"asking pip for the releases of {asked.over}")
        chosen = between(releases_of(asked.over), asked.good, asked.bad or installed)
        folder = search_folder(cache, [*about, asked.over, *chosen, *working_state(project)], whole)
        return ReleaseRange(project, asked.over, chosen, cache / "environments", environ=environ), folder
    good, bad = (resolve_revision(project, one, COMMAND) for one in (asked.good, asked.bad or "HEAD"))
    folder = search_folder(cache, [*about, good, bad, str(asked.first_parent)], whole)
    variables = {
        **environ,
        "PYTEST_ADDOPTS": shlex.join([*options, f"--rootdir={folder / 'worktree' / _inside(project)}"]),
    }
    commits = CommitRange(project, good, bad, folder, files=files, environ=variables, first_parent=asked.first_parent)
    if not asked.bad and run_git(project, "status", "--porcelain", "--untracked-files=no"):
        say("there are uncommitted changes: they take no part, the bad side is the last commit")
    return commits, folder


def _inside(project: Path) -> str:
    """Where the root folder of the tests lies in its checkout."""
    return os.path.relpath(
        project.resolve(), Path(run_git(project, "rev-parse", "--show-toplevel") or project).resolve()
    )


@contextmanager
def _alone(folder: Path) -> Any:
    """Keep a second run of the same search out.

    Raises:
        UsageError: If there is one.
    """
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError("another run of the same search is under way") from None
    try:
        yield
    finally:
        lock.release()


def _announce(asked: Asked, case: CaseTest, within: Range, files: Sequence[Path]) -> None:
    revisions = within.revisions
    good, bad = within.short(within.good), within.short(within.bad)
    number = plural(len(revisions) - 1, within.unit)
    say(
        f"{case.case or case.test}: {number} after {good} up to {bad}, about {plural((len(revisions) - 2).bit_length(), 'step')}"
    )
    if asked.tests == "today":
        say(f"today's tests are copied over each commit: {', '.join(map(str, files))}")


def _report(answer: Answer, asked: Asked, within: Range) -> None:
    """Print the table, which side it compares with, the answer, and the text of the first bad revision."""
    state, quantity = answer.state, answer.state.quantity
    assert quantity is not None
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    say("")
    for line in bisection_table(state, quantity, within.revisions, unit=within.unit, short=within.short, width=width):
        say(line)
    say("")
    say(compared_with(quantity, asked.compare_with, within.unit))
    for line in moved_twice(state, quantity, asked.compare_with, within.short):
        say(line)
    if state.others:
        say(f"also moved between the sides: {', '.join(state.others)} (--fact NAME follows one)")
    skipped = sum(probe.mark is Mark.SKIPPED for probe in state.probes)
    for line in first_bad_lines(
        answer.first_bad,
        unit=within.unit,
        case=answer.case,
        gain=quantity.gain,
        describe=within.describe,
        skipped=skipped,
    ):
        say(line)
    lines = [line for line in answer.text.splitlines() if not line.startswith(("  next ", "  bundle "))]
    for line in lines:
        say(cut(line, None))
    if within.unit == "commit" and len(answer.first_bad) == 1:
        say(f"  next      git show {within.short(answer.first_bad[0])}")
    elif within.unit == "release":
        say(f"environments are kept in {cache_folder() / 'environments'}; {COMMAND} --reset removes them")
