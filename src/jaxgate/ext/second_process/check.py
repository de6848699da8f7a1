"""A run that recorded, or saw programs change: one more process makes the same programs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.engine.run.progress import Progress
from jaxgate.keep.baselines import BaselineStore
from jaxgate.keep.programs import ProgramStore
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import Baseline
from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.outcome import UsageError
from jaxgate.model.program import StoredProgram
from jaxgate.model.verdict import Verdict
from jaxgate.model.words import plural, shortlist
from jaxgate.processes.pytest_child import Selection
from jaxgate.settings import AS_MEASURED, RunKind

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

_SEED = "PYTHONHASHSEED"
_HERE = (RunKind.JUDGE, RunKind.UPDATE, RunKind.REVIEW)
MAX_ASKED = 20
"""Cases that it is asked about: it takes 2 s to start, and each case as long as it does without a clock."""
_LINE = 60
"""Characters that are shown of a line of a program."""
_SO = "so that none finds it in the compile cache; a set, an id, the time or an earlier trace decides it"


def wrong_with(session: GateSession) -> list[str]:
    """Ask another process for the programs of this run: what differs by process nobody finds compiled."""
    settings = session.settings
    not_here = settings.target or settings.ranks or settings.elsewhere or settings.other_side or settings.as_measured
    asked = _asked(session) if settings.opinion_s and settings.kind in _HERE and not not_here else {}
    if not asked:
        return []
    tests = tuple(dict.fromkeys(reversed([session.result.tests[case] for case in asked])))  # in another order
    seed = "2" if session.again.environment.get(_SEED) == "1" else "1"
    variables = {**session.again.environment, _SEED: seed, AS_MEASURED: "1"}
    side = replace(
        session.again, environment=variables, option="the second process", arguments=("--benchmark-disable",)
    )
    problems = session.evidence.problems
    # Whoever holds the machine here would keep it from that process, which asks for it by itself.
    shown = Progress(session.terminal, "a second process", None, patience_s=session.instruments.patience_s)
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name, shown as progress:
        progress(f"making the programs of {plural(len(asked), 'case')}")
        try:
            session.instruments.record(side, Selection(tests, "", ""), Path(name))
        except (UsageError, OSError) as error:
            problems.append(f"a second process was to make the programs of this run, and failed: {error}")
            return []
        pairs = {case: pair for case, verdict in asked.items() if (pair := _both(session, verdict, Path(name)))}
        found = [text for case, pair in pairs.items() if (text := _difference(session, asked[case], pair, Path(name)))]
    # What their values decide could never be held against a baseline.
    others = [case for case, (ours, theirs) in pairs.items() if ours.fingerprints.inputs != theirs.fingerprints.inputs]
    drawn = [case for case in others if asked[case].baseline.recorded]
    if drawn:
        have = plural(len(drawn), "case has", "cases have")
        problems.append(
            f"{have} other inputs in each process: draw them with a fixed seed: {shortlist(drawn, MAX_NAMED)}"
        )
    if not found:
        return []
    have = plural(len(found), "case has", "cases have")
    return [f"{have} another program in each process, {_SO}: {shortlist(found, MAX_NAMED)}"]


def _asked(session: GateSession) -> Mapping[str, Verdict]:
    """The cases to ask about, by name: recorded, or of another program; none on a TPU, which one process holds."""
    changed = session.result.changed_programs
    found = {
        verdict.case: verdict
        for verdict in session.result.verdicts
        if verdict.case in session.result.tests
        and verdict.hardware
        and verdict.hardware.platform != "tpu"
        and (verdict.baseline.recorded or verdict.case in changed)
    }
    return dict(list(found.items())[:MAX_ASKED])


def _both(session: GateSession, verdict: Verdict, folder: Path) -> tuple[Baseline, Baseline] | None:
    """A case's baselines here and in the other process; ``None`` if its test fails there: it is red here, too, or runs only once."""
    assert verdict.hardware is not None  # it would not be asked about
    try:
        ours = session.store.load(verdict.hardware, verdict.case)
        theirs = BaselineStore(folder, session.store.line).load(verdict.hardware, verdict.case)
    except CorruptBaselineError:
        return None
    return None if ours is None or theirs is None else (ours.baseline, theirs.baseline)


def _difference(session: GateSession, verdict: Verdict, pair: tuple[Baseline, Baseline], folder: Path) -> str:
    """A case whose program differs in the other process, with a line of it; else empty."""
    ours, theirs = pair
    here, there = ours.fingerprints, theirs.fingerprints
    if not verdict.baseline.recorded:  # what is stored is not today's
        return "" if session.result.changed_programs[verdict.case] == there.program else verdict.case
    if here.program != there.program:
        shown = _first_difference(session.programs, ours, ProgramStore(folder), theirs)
        return f"{verdict.case} ({shown[:_LINE]})" if shown else verdict.case
    # The fingerprint of a program is blind to the order of independent lines, that of an executable is not.
    known = here.executable is not None and there.executable is not None
    return verdict.case if known and here.executable != there.executable else ""


def _first_difference(programs: ProgramStore, ours: Baseline, others: ProgramStore, theirs: Baseline) -> str:
    """A line that only the first program has; empty if there is none, or a program is not stored."""
    from jaxgate.observe.hlo.diff import program_changes  # noqa: PLC0415 - imports JAX

    pair = _stored(programs, ours), _stored(others, theirs)
    lines = () if None in pair else program_changes(*filter(None, pair))
    return next((line[1:].strip() for line in lines if line.startswith(("-", "+"))), "")


def _stored(programs: ProgramStore, baseline: Baseline) -> StoredProgram | None:
    """The program of a baseline, if it is stored."""
    about = baseline.program
    content = programs.load(baseline.fingerprints.program, about.digest) if about.stored else None
    return None if content is None else StoredProgram(record=about, content=content)
