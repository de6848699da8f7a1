"""``--perf-update=trim``: collect the tests, run none, and remove what no test and no baseline needs.

Closed where it cannot know: with a file that cannot be read, an error while collecting, or no gate at all,
everything would look unneeded, and nothing is removed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jaxgate.plugin.settling import whole_roots
from jaxgate.plugin.starting import SETTINGS, TESTS

if TYPE_CHECKING:
    from jaxgate.model import Baseline

Removed = tuple[Path, int]


class Trimmer:
    """Registered for a run that trims: runs no test, removes files, shows what it removed."""

    def __init__(self) -> None:
        self._refused = ""
        self._baselines: list[Removed] = []
        self._programs: list[Removed] = []
        self._done = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Trim instead of running the tests; a bare collection is pytest's."""
        if session.config.option.collectonly:
            return None
        try:
            self._refused = self._why_not(session) or self._trim(session.config)
        except OSError as error:
            self._refused = f"{error}; what is listed was removed before"
        finally:
            self._done = True
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A trim that was refused ends with exit code 1."""
        if self._refused:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self._done and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:  # all deselected: none was to run
            session.exitstatus = pytest.ExitCode.OK

    def _why_not(self, session: pytest.Session) -> str:
        """Why nothing may be removed; empty if it may."""
        if session.testsfailed:
            errors = "1 error" if session.testsfailed == 1 else f"{session.testsfailed} errors"
            return (
                f"expected a collection without errors, found {errors}: tests that are there look gone; mend it first"
            )
        if not session.config.stash[TESTS].gates:
            return "expected tests that gate, collected none: every baseline would look orphaned; name the folder of the suite"
        return ""

    def _trim(self, config: pytest.Config) -> str:
        """Remove orphaned baselines, then the programs that none of the others names; why not, if not."""
        from jaxgate.keep.log import log_trimmed  # noqa: PLC0415 - only a trim needs them
        from jaxgate.keep.unreferenced import (  # noqa: PLC0415
            named_by,
            read_all,
            remove,
            remove_empty_folders,
            unreferenced,
        )
        from jaxgate.plugin.orphans import without_test  # noqa: PLC0415

        settings, root = config.stash[SETTINGS], config.stash[SETTINGS].baselines
        baselines, unreadable = read_all(root)
        if unreadable:
            told = "; ".join(f"{_short(error.path, config)}: {error.reason}" for error in unreadable)
            return f"expected baselines that can be read, found {told}. Its program would look unneeded; restore it with git"
        if not baselines:
            return f"expected baselines under {_short(root, config)}, found none; name their folder: --perf-baselines"
        gone = list(without_test(baselines, config.rootpath, config.stash[TESTS].collected, whole_roots(config), {}))
        kept = {path: baseline for path, baseline in baselines.items() if path not in gone}
        try:
            for path in gone:
                for file in (path, _times(root, path, baselines[path])):
                    if os.path.lexists(file):
                        self._baselines.append(remove(file))
                        remove_empty_folders(root, file)
            for path in unreferenced(root, named_by(kept.values())):
                self._programs.append(remove(path))
                remove_empty_folders(root, path)
        finally:  # Ctrl-C: what is gone is in the log all the same
            if self._baselines or self._programs:
                names = [path.relative_to(root).with_suffix("").as_posix() for path, _ in self._baselines]
                log_trimmed(root, removed=names, programs=len(self._programs), why=settings.why)
        return ""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """List what was removed, and what to do next; or say why nothing was."""
        if not self._done:
            return
        from jaxgate.report.units import show  # noqa: PLC0415 - only a trim needs it

        out = terminalreporter
        out.ensure_newline()
        out.section("jaxgate: trim, no test was run", sep="-")
        removed = [("baseline", *file) for file in self._baselines] + [("program", *file) for file in self._programs]
        for what, path, nbytes in removed:
            out.write_line(f"REMOVED  {what:<8}  {show('file_bytes', nbytes):>8}  {_short(path, config)}")
        if self._refused:
            what = "trimmed in part" if removed else "nothing was removed"
            out.write_line(f"{what}: {self._refused}", red=True)
        elif removed:
            size = show("file_bytes", sum(nbytes for _, _, nbytes in removed))
            files = "1 file" if len(removed) == 1 else f"{len(removed)} files"
            folder = os.path.relpath(config.stash[SETTINGS].baselines, config.invocation_params.dir)
            out.write_line(
                f"{files}, {size}; the log has an entry. Look at it with git status, and commit it: git add {folder}"
            )
        else:
            out.write_line("nothing to trim: each baseline has its test, each program its baseline", green=True)


def _times(root: Path, path: Path, baseline: Baseline) -> Path:
    """Where the stored times of a baseline lie, whether or not they exist."""
    from jaxgate.keep.times import TimesStore  # noqa: PLC0415 - only a trim needs it

    return TimesStore(root).path(baseline.hardware, f"{path.parent.name}/{path.stem}")


def _short(path: Path, config: pytest.Config) -> str:
    return os.path.relpath(path, config.invocation_params.dir)
