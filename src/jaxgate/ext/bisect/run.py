"""``jaxgate bisect``: the first commit, or the first release of a package, with which a case became worse.

Exit codes: 0 it is named · 1 it could not be narrowed down to one, or both sides are alike · 2 the question makes no sense here ·
130 interrupted; the same command goes on.

The module finds the test of a case, knows what measurements depend on, and runs the search.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath

from filelock import FileLock, Timeout

from jaxgate.cli.console import begin, refuse, say, tell
from jaxgate.cli.pytest_arguments import IniError, divided, project_of, suite, usual_folder
from jaxgate.ext.bisect.judge import BISECTED
from jaxgate.ext.bisect.kept import forget, forget_old, question_file, search_folder
from jaxgate.ext.bisect.model import RUN_TIME, Mark
from jaxgate.ext.bisect.ranges import CommitRange, Range, ReleaseRange, between, releases_of
from jaxgate.ext.bisect.revisions import Revisions, Subject
from jaxgate.ext.bisect.search import AlikeError, Answer, Search
from jaxgate.ext.bisect.text import bisection_table, compared_with, first_bad_lines, moved_twice
from jaxgate.ext.upgrade.venv import installed_versions
from jaxgate.keep.baselines import baseline_files, recorded_by
from jaxgate.keep.git import run_git
from jaxgate.keep.machine import cache_folder
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.outcome import UsageError
from jaxgate.model.words import cut, plural, shortlist
from jaxgate.model.workload import possible_names
from jaxgate.processes.pytest_child import collect_tests, fresh_environment
from jaxgate.processes.worktree import resolve_revision
from jaxgate.report.units import show
from jaxgate.settings import NAMED_LIKE

_MOST = 5


def find_test(
    named: str, paths: Sequence[str], *, project: Path, baselines: Path, environ: Mapping[str, str], here: Path
) -> Subject:
    """Find the test of a case, by its name or by the test's node id; a node id among the paths is the test.

    Raises:
        UsageError: If there is none, or several; names what is like it.
    """
    typed = [_relative(path, project, here) for path in ([named] if "::" in named else paths)]
    if (nodes := [path for path in typed if "::" in path]) and (
        len(nodes) > 1 or not (project / nodes[0].partition("::")[0]).exists()
    ):
        raise UsageError(f"expected one test that is there, found {', '.join(nodes)}")
    if nodes:
        names = _names(nodes[0])
        return Subject(case="" if "::" in named else named, test=nodes[0], names=names)
    known = sorted(test for test in recorded_by(baselines, named) if (project / test.partition("::")[0]).is_file())
    if known:
        return Subject(case=named, test=known[0], names=frozenset({named}))
    tests = collect_tests(project, typed, environ)
    found = [test for test in tests if named in _names(test)]
    if len(found) == 1:
        return Subject(case=named, test=found[0], names=_names(found[0]))
    if found:
        raise UsageError(f"several tests may have the case {named}: {shortlist(found, _MOST)}; name one in its place")
    every = {f"{path.parent.name}/{path.stem}" for path in baseline_files(baselines)}
    every |= {name for test in tests for name in _names(test)}
    like = get_close_matches(named, sorted(every), _MOST, cutoff=0.5)  # `step` is near `model/step`
    hint = f"did you mean {', '.join(like)}?" if like else f"looked at {plural(len(tests), 'test')}."
    raise UsageError(
        f"expected a case or a test, found no test for {named!r}; {hint} A test that names its cases itself: {named} FILE::TEST"
    )


def support_files(test: Path, project: Path, also: Sequence[Path]) -> list[Path]:
    """What today's test needs beside the code that it gates, relative to the project: conftests, packages, what was named."""
    found = [test, *(folder / name for folder in test.parents for name in ("conftest.py", "__init__.py"))]
    for path in also:
        inside = sorted((project / path).rglob("*")) if (project / path).is_dir() else [project / path]
        found += [file.relative_to(project) for file in inside if "__pycache__" not in file.parts]
    return [file for file in dict.fromkeys(found) if (project / file).is_file()]


def _relative(path: str, project: Path, here: Path) -> str:
    """A path as pytest names it from the root folder of the tests."""
    file, separator, rest = path.partition("::")
    return PurePosixPath(os.path.relpath(here / file, project)).as_posix() + separator + rest


def _names(test: str) -> frozenset[str]:
    """All names that the case of a test may have; one of a catalogue has the id of its parameters."""
    found = {"/".join(pair) for pair in possible_names(test, None)}
    if test.endswith("]"):
        found |= {"/".join(pair) for pair in possible_names(test, test.partition("[")[2].removesuffix("]"))}
    return frozenset(found)


_ACTS = ("JAX_", "XLA_", "JAXGATE_", "LIBTPU_", "CUDA_", "NVIDIA_", "TPU_")
"""Variables that begin so may change what is measured: under others it is another search."""


def measured_by(environ: Mapping[str, str]) -> list[str]:
    """The machine, Python, packages and variables. A package out of a local file is not among those that an index may have."""
    packages = {**installed_versions(), **{name: version(name) for name in ("jaxgate", "jax", "jaxlib")}}
    variables = [f"{name}={environ[name]}" for name in sorted(environ) if name.startswith(_ACTS)]
    pins = [f"{name}=={number}" for name, number in sorted(packages.items())]
    return [platform.node(), sys.version, sys.prefix, *pins, *variables]


def working_state(project: Path) -> list[str]:
    """What the project is now: its commit, its changes, and when files were written that git does not know."""
    head, changes = run_git(project, "rev-parse", "HEAD"), run_git(project, "diff", "HEAD")
    if head is None or changes is None:
        return [_written(file) for file in _modules_below(project)]
    top = Path(run_git(project, "rev-parse", "--show-toplevel") or project)
    names = run_git(top, "ls-files", "--others", "--exclude-standard", "-z") or ""
    return [head, changes, *(_written(top / name) for name in sorted(names.split("\0")) if name)]


def _written(file: Path) -> str:
    """A file with its size and the time of its last change; another one where it cannot be looked at."""
    try:
        about = file.stat()
    except OSError as error:
        return f"{file} {type(error).__name__}"
    return f"{file} {about.st_size} {about.st_mtime_ns}"


def _modules_below(folder: Path) -> Iterator[Path]:
    """The modules of a project, without hidden folders and virtual environments."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one[0] != "." and not Path(place, one, "pyvenv.cfg").exists())
        yield from (Path(place, name) for name in sorted(names) if name.endswith(".py"))


COMMAND = "jaxgate bisect"
_FOUND, _OPEN, _REFUSED, _INTERRUPTED = 0, 1, 2, 130
"""Exit codes of this command."""
_refuse = partial(refuse, "bisect", code=_REFUSED)


def bisect(asked: argparse.Namespace, *, search: Callable[..., Revisions] = Revisions) -> int:
    """Search, print what was found, and give the exit code. The ``rest`` is pytest's: paths, and options of each run."""
    try:
        if asked.reset:
            return reset()
        return _search(asked, search)
    except AlikeError as error:
        tell(why=str(error))
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


def _search(asked: argparse.Namespace, search: Callable[..., Revisions]) -> int:
    _check(asked)
    here = Path.cwd()
    project = project_of(here)
    paths, options = divided(asked.rest)
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
    try:
        alone = FileLock(folder / "lock").acquire(timeout=0)
    except Timeout:
        raise UsageError("another run of the same search is under way") from None
    with alone:
        _announce(asked, case, within, files)
        copied = {"own": False, "today": True}.get(asked.tests) if within.unit == "commit" else False
        revisions = search(case, within, folder, waits=begin)
        file = question_file(folder, asked.fact, asked.compare_with)
        found = Search(
            within, revisions, file, fact=asked.fact, asked=asked.compare_with, copied=copied, begin=begin, end=say
        )
        try:
            answer = found.run()
        except (AlikeError, UsageError):
            within.close()
            raise
        _report(answer, asked, within)
        within.close()
    return _FOUND if len(answer.first_bad) == 1 else _OPEN


def _check(asked: argparse.Namespace) -> None:
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
    asked: argparse.Namespace,
    options: Sequence[str],
    *,
    project: Path,
    case: Subject,
    files: Sequence[Path],
    environ: Mapping[str, str],
) -> tuple[Range, Path]:
    """What is searched, and the folder of this search."""
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
    commits = CommitRange(project, good, bad, folder, files=files, environ=environ, first_parent=asked.first_parent)
    if not asked.bad and run_git(project, "status", "--porcelain", "--untracked-files=no"):
        say("there are uncommitted changes: they take no part, the bad side is the last commit")
    return commits, folder


def _announce(asked: argparse.Namespace, case: Subject, within: Range, files: Sequence[Path]) -> None:
    revisions = within.revisions
    good, bad = within.short(within.good), within.short(within.bad)
    number = plural(len(revisions) - 1, within.unit)
    say(
        f"{case.case or case.test}: {number} after {good} up to {bad}, about {plural((len(revisions) - 2).bit_length(), 'step')}"
    )
    if asked.tests == "today":
        say(f"today's tests are copied over each commit: {', '.join(map(str, files))}")


def _report(answer: Answer, asked: argparse.Namespace, within: Range) -> None:
    state, quantity = answer.state, answer.state.quantity
    assert quantity is not None
    tell(
        case=answer.case,
        quantity=quantity.name,
        first_bad=list(answer.first_bad),
        tried=[asdict(probe) for probe in state.probes],
        others=list(state.others),
        text=answer.text,
    )
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
