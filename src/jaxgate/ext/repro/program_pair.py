"""Today's program of a case and the baseline's, for a command that looks at both: today's is recorded aside, and nothing is timed."""

from __future__ import annotations

import difflib
import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxgate.keep.baselines import BaselineStore, read_all, recorded_by
from jaxgate.keep.programs import ProgramStore, open_programs
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import Baseline
from jaxgate.model.outcome import UsageError
from jaxgate.model.program import StoredProgram
from jaxgate.processes.pytest_child import RecordSelection, Selection, Side, fresh_environment, record_selection
from jaxgate.settings import AS_MEASURED, NAMED_LIKE, TARGET

LIST = "all cases: jaxgate baselines --cases"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPair:
    """Two programs of one case, which can be compiled again."""

    case: str  # its name
    baseline: tuple[Baseline, StoredProgram]  # what was accepted, its program as well
    now: tuple[Baseline, StoredProgram]  # what was recorded a moment ago


def find_pair(
    case: str,
    root: Path,
    *,
    project: Path,
    alone: bool = False,
    programs: str = "",
    environ: Mapping[str, str] = os.environ,
    record: RecordSelection = record_selection,
) -> ProgramPair:
    """Record a case as it is now, and find what it is compared with.

    Where a case has no baseline, name it by the pytest node id of a test that gates it alone. With ``alone`` today's program
    is both sides, and needs no baseline. ``programs`` is empty where the project has no store beside git.

    Raises:
        UsageError: If one of the two is not there or cannot be compiled again; the text names the next command.
    """
    tests = frozenset({case}) if alone and "::" in case else recorded_by(root, case) - {""}
    if not tests:
        raise UsageError(_unknown(case, root))
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        into = Path(name)
        side = Side(project, _variables(environ, root), "jaxgate repro")
        failed = record(side, Selection(tuple(sorted(tests)), "", ""), into)
        found = {one.case: one for one in read_all(into)[0].values()}
        if case in tests and len(found) == 1:
            (case,) = found
        if case not in found:
            why = next(iter(failed.values()), f"{' '.join(sorted(tests))} gates no case of this name any more")
            raise UsageError(f"`{case}` could not be recorded as it is now: {why}; run it: pytest {_quoted(tests)}")
        now = found[case]
        today = _program(now, ProgramStore(into), "today's program", tests)
    if alone:
        return ProgramPair(case=case, baseline=(now, today), now=(now, today))
    before = _accepted(now, root, tests)
    return ProgramPair(
        case=case,
        baseline=(before, _program(before, open_programs(root, programs), "the baseline's program", tests)),
        now=(now, today),
    )


def _accepted(now: Baseline, root: Path, tests: frozenset[str]) -> Baseline:
    """The baseline that a run would judge by."""
    store = BaselineStore(root, now.line)
    try:
        stored = store.load(now.hardware, now.case)
    except CorruptBaselineError as error:
        raise UsageError(f"{os.path.relpath(error.path)}: {error.reason}") from None
    if stored is None:
        others = ", ".join(store.elsewhere(now.hardware, now.case)) or "other hardware"
        raise UsageError(
            f"`{now.case}` has baselines of {others} only, and this is {now.hardware.slug}; "
            f"record one here: pytest {_quoted(tests)} --perf-update"
        )
    return stored.baseline


def _program(side: Baseline, programs: ProgramStore, whose: str, tests: frozenset[str]) -> StoredProgram:
    """The program of one side; refused where it has none that anybody can compile again."""
    if side.eager:
        raise UsageError(
            f"`{side.case}` is plain Python around jitted calls, which is no program; "
            "gate the jitted function itself, and write the file of that case"
        )
    if side.hardware.platform not in ("cpu", "gpu", "tpu") or side.compiled_only:
        raise UsageError(
            f"`{side.case}` is compiled for {side.hardware.slug} and not called here; "
            f"run it where that is attached, or on this machine without {TARGET}"
        )
    if not side.program.stored:
        raise UsageError(f"{whose} of `{side.case}` was not stored: {side.program.why_not}; compare revisions: "
                         f"pytest {_quoted(tests)} --perf-against=merge-base")  # fmt: skip
    content = programs.load(side.fingerprints.program, side.program.digest)
    if content is None:
        raise UsageError(f"{programs.why_missing(side.fingerprints.program)}: pytest {_quoted(tests)} --perf-update")
    return StoredProgram(record=side.program, content=content)


def _variables(environ: Mapping[str, str], root: Path) -> dict[str, str]:
    """Variables of the process that records: it names cases as this project does, and keeps what breaks a claim."""
    try:
        options = shlex.split(environ.get("PYTEST_ADDOPTS", ""))
    except ValueError as error:
        raise UsageError(f"PYTEST_ADDOPTS cannot be taken apart: {error}") from None
    return fresh_environment(environ, [*options, "--benchmark-disable"]) | {
        AS_MEASURED: "1",
        NAMED_LIKE: str(root.absolute()),
    }


def _unknown(case: str, root: Path) -> str:
    known = sorted({one.case for one in read_all(root)[0].values()})
    near = difflib.get_close_matches(case, known, n=1, cutoff=0.5)
    meant = f"; did you mean `{near[0]}`?" if near else ""
    return f"expected a case with a baseline in {os.path.relpath(root)}, found none named `{case}`{meant} ({LIST})"


def _quoted(tests: frozenset[str]) -> str:
    return shlex.join(sorted(tests))
