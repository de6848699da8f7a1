"""``--perf-update=trim``: collect the tests, run none, and remove what no test and no baseline needs.

Nothing is removed if a file cannot be read, collecting fails, or no test gates: everything would look unneeded.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jaxgate.engine.run.orphans import without_test
from jaxgate.ext.times.kept import times_beside
from jaxgate.keep.baselines import read_all
from jaxgate.keep.log import log_trimmed
from jaxgate.keep.programs import find_unreferenced, named_by, remove, remove_empty_folders
from jaxgate.model.words import plural
from jaxgate.plugin.console import Console
from jaxgate.plugin.modes.base import InsteadOfTests
from jaxgate.plugin.session_end import whole_roots
from jaxgate.plugin.stash import SETTINGS, TESTS
from jaxgate.report.units import show

Removed = tuple[Path, int]


class Trimmer(InsteadOfTests):
    """Runs no test, removes files, shows what it removed."""

    title = "jaxgate: trim, no test was run"
    despite_errors = True

    def __init__(self) -> None:
        self._refused = ""
        self._baselines: list[Removed] = []
        self._programs: list[Removed] = []

    def carry_out(self, session: pytest.Session, tests: list[str]) -> None:
        """Trim."""
        del tests
        try:
            self._refused = self._why_not(session) or self._trim(session.config)
        except OSError as error:
            self._refused = f"{error}; what is listed was removed before"

    def exit_status(self, exitstatus: int) -> int:
        """A trim that was refused ends with exit code 1; one of tests that were all deselected ends well."""
        if self._refused:
            return pytest.ExitCode.TESTS_FAILED
        return pytest.ExitCode.OK if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED else exitstatus

    def _why_not(self, session: pytest.Session) -> str:
        """Why nothing may be removed; empty if it may."""
        if session.testsfailed:
            errors = plural(session.testsfailed, "error")
            return (
                f"expected a collection without errors, found {errors}: their tests would look deleted; fix that first"
            )
        if not session.config.stash[TESTS].gates:
            return "expected tests that gate, collected none: every baseline would look orphaned; name the folder of the suite"
        return ""

    def _trim(self, config: pytest.Config) -> str:
        """Remove orphaned baselines, then the programs that none of the others names; why not, if not."""
        settings, root = config.stash[SETTINGS], config.stash[SETTINGS].baselines
        baselines, unreadable = read_all(root)
        if unreadable:
            found = "; ".join(f"{_short(error.path, config)}: {error.reason}" for error in unreadable)
            return f"expected baselines that can be read, found {found}. Its program would look unneeded; restore it with git"
        if not baselines:
            return f"expected baselines under {_short(root, config)}, found none; name their folder: --perf-baselines"
        gone = list(without_test(baselines, config.rootpath, config.stash[TESTS].collected, whole_roots(config), {}))
        kept = {path: baseline for path, baseline in baselines.items() if path not in gone}
        try:
            for path in gone:
                for file in (path, times_beside(path)):
                    if os.path.lexists(file):
                        self._baselines.append(remove(file, root))
                        remove_empty_folders(root, file)
            for path in find_unreferenced(root, named_by(kept.values())):
                self._programs.append(remove(path, root))
                remove_empty_folders(root, path)
        finally:  # Ctrl-C: what is gone is in the log all the same
            if self._baselines or self._programs:
                names = [path.relative_to(root).with_suffix("").as_posix() for path, _ in self._baselines]
                log_trimmed(root, removed=names, programs=len(self._programs), why=settings.why)
        return ""

    def show(self, out: Console, config: pytest.Config) -> None:
        """List what was removed, and what to do next; or say why nothing was."""
        removed = [("baseline", *file) for file in self._baselines] + [("program", *file) for file in self._programs]
        for what, path, nbytes in removed:
            out.write_line(f"REMOVED  {what:<8}  {show('file_bytes', nbytes):>8}  {_short(path, config)}")
        if self._refused:
            what = "trimmed in part" if removed else "nothing was removed"
            out.write_line(f"{what}: {self._refused}", red=True)
        elif removed:
            size = show("file_bytes", sum(nbytes for _, _, nbytes in removed))
            folder = _short(config.stash[SETTINGS].baselines, config)
            out.write_line(
                f"{plural(len(removed), 'file')}, {size}; the log has an entry. Look at it with git status, and commit it: git add {folder}"
            )
        else:
            out.write_line("nothing to trim: each baseline has its test, each program its baseline", green=True)


def _short(path: Path, config: pytest.Config) -> str:
    return os.path.relpath(path, config.invocation_params.dir)
