"""Other processes of pytest: one records the selected tests for a comparison, one runs a test again, one collects."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxgate.keep.machine import HELD
from jaxgate.keep.results import read_run_file
from jaxgate.model.outcome import UsageError
from jaxgate.processes.child import Finished, run_child
from jaxgate.settings import CPU_DEVICES, NAMED_LIKE, NAMESAKES, OTHER_SIDE, RESULTS_INTO, SIZE, TARGET, Settings

_RECORDED = (0, 1, 5)
"""pytest's exit codes of a run that came to its end: passed, some tests failed, no tests collected."""
_TAIL = 15
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?) - (.*)$", re.MULTILINE)


class BrokenRecordingError(UsageError):
    """A process that was to record did not come to its end.

    Attributes:
        status: Its exit status; negative for the signal that ended it.
    """

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tests to run on the other side: paths relative to the root folder, and expressions."""

    paths: tuple[str, ...]
    keyword: str
    markers: str


@dataclass(frozen=True, slots=True)
class Side:
    """How to run the other side."""

    project: Path  # root folder of its tests
    environment: Mapping[str, str]  # environment variables of the process
    option: str  # the option that asked for it, for messages
    python: Path = field(default=Path(sys.executable))  # the interpreter
    cache: Path | None = None  # folder in which its processes remember references; `None` remembers nothing
    arguments: tuple[str, ...] = ()  # more of pytest's arguments


RecordSelection = Callable[[Side, Selection, Path], dict[str, str]]
"""Records the selected tests into a folder, in another process; gives what failed there, by test."""


def child_environment(settings: Settings) -> dict[str, str]:
    """The environment for a process that runs tests of this run again: as this one's was before a conftest changed it.

    What belongs to this run of pytest is left out; the project's own options are handed on.
    """
    return fresh_environment(settings.started_with, settings.options)


def fresh_environment(environ: Mapping[str, str], options: Sequence[str]) -> dict[str, str]:
    """The environment of a run of pytest to which no other run of jaxgate has described anything.

    ``options`` are added to those on its command line.
    """
    dropped = ("JAXGATE_", "PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS", "PYTEST_XDIST")
    found = {name: value for name, value in environ.items() if not name.startswith(dropped)}
    found |= {name: os.environ[name] for name in (SIZE, CPU_DEVICES, TARGET) if name in os.environ}
    found["COLUMNS"] = "400"  # pytest cuts its reasons to the width of the terminal
    if options:
        found["PYTEST_ADDOPTS"] = shlex.join(options)
    return found


def naming(settings: Settings) -> dict[str, str]:
    """Variables by which a process that records for this one gives the cases the names that they have here."""
    return {NAMED_LIKE: str(settings.stored), NAMESAKES: os.pathsep.join(sorted(settings.namesakes))}


def record_selection(
    side: Side, chosen: Selection, into: Path, run: Callable[..., Finished] = run_child
) -> dict[str, str]:
    """Record the baselines of the selected tests; gives what failed there, by test: its case is on this side only.

    Raises:
        BrokenRecordingError: If the other side cannot be collected, or its process dies.
    """
    paths = [path for path in chosen.paths if (side.project / path.partition("::")[0]).exists()]
    if chosen.paths and not paths:
        return {}  # none of it existed then
    command = [str(side.python), "-m", "pytest", *paths, "-q", "-rfE", "--color=no"]
    command += ["-p", "no:cacheprovider"] if side.cache is None else ["-o", f"cache_dir={side.cache}"]
    command += ["-k", chosen.keyword] if chosen.keyword else []
    command += ["-m", chosen.markers] if chosen.markers else []
    command += ["--perf-update", f"--perf-baselines={into}", "--no-perf-strict", "--perf-max-undecided=1"]
    command += side.arguments
    done = run(command, folder=side.project, variables=_variables(side) | {OTHER_SIDE: "1"})
    if done.status not in _RECORDED:
        raise BrokenRecordingError(f"{side.option}: the other side could not be recorded:\n{_tail(done)}", done.status)
    return dict(_FAILED.findall(done.stdout))


def judge_test(
    side: Side, test: str, against: Sequence[str], folder: Path, run: Callable[..., Finished] = run_child
) -> Mapping[str, Any]:
    """Judge a test by a run of its own; gives what ``results.json`` of that run says.

    Raises:
        UsageError: If it came to no result.
    """
    results = folder / "results.json"
    results.unlink(missing_ok=True)  # another revision's, of a run that was ended
    arguments = (*against, f"--perf-artifacts={folder / 'pages'}")
    done = run_test(side, test, {RESULTS_INTO: str(results)}, arguments, run)
    try:
        found = read_run_file(results)
    except (OSError, ValueError):
        raise UsageError(f"{side.option}: the comparison came to no result:\n{_tail(done)}") from None
    finally:
        results.unlink(missing_ok=True)
    return dict(found)


def run_test(
    side: Side,
    test: str,
    variables: Mapping[str, str],
    arguments: Sequence[str] = (),
    run: Callable[..., Finished] = run_child,
) -> Finished:
    """Run a test in a process of its own, which is no event of the history."""
    command = [
        str(side.python),
        "-m",
        "pytest",
        test,
        "-q",
        "-rfEs",
        "--color=no",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    command += ["--no-perf-strict", "--perf-max-undecided=1", "--perf-profile=never"]
    here = _variables(side) | {"JAXGATE_HISTORY": "none"} | dict(variables)
    return run(command, folder=side.project, variables=here)


def _variables(side: Side) -> dict[str, str]:
    """Variables of a process of that side: without ``HELD`` it would wait for ever if this one has the machine to itself."""
    return {**side.environment, **({HELD: os.environ[HELD]} if HELD in os.environ else {})}


def _tail(done: Finished) -> str:
    return "\n".join((done.stdout + done.stderr).strip().splitlines()[-_TAIL:])


_COLLECTED = (0, 5)
"""pytest's exit codes of a collection: of some tests, of none."""


def collect_tests(project: Path, paths: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Node ids of all tests of a project, or of these paths in it.

    Raises:
        UsageError: If pytest collects with errors; the text is its last word.
    """
    command = [sys.executable, "-m", "pytest", *paths, "--collect-only", "-q", "--color=no", "-p", "no:cacheprovider"]
    done = run_child(command, folder=project, variables=environ)
    if done.status not in _COLLECTED:
        raise UsageError(
            f"the tests cannot be collected: {(done.stdout.strip().splitlines() or [done.last_words])[-1]}"
        )
    return [line for line in done.stdout.splitlines() if "::" in line]
