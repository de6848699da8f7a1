"""``jaxgate repro``: one file that shows anybody what changed in a case, without anything of whoever wrote the program.

Exit codes: 0 written · 1 the programs cannot be had, or not without names of their author · 2 the file was written and
does not run here. The module also writes the text of a bug report, and what came of a reduction.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from jaxgate.cli.console import complain, refuse, tell, write
from jaxgate.cli.pytest_arguments import IniError, project_of, usual_folder, usual_programs
from jaxgate.ext.opinion.ask import WITHOUT_LIBRARIES
from jaxgate.ext.repro.anonymous import NotAnonymousError, anonymise
from jaxgate.ext.repro.file import REPRO_MARK, repro_file
from jaxgate.ext.repro.model import ABOUT, Reduced
from jaxgate.ext.repro.program_pair import ProgramPair, find_pair
from jaxgate.ext.repro.reduction import reduce_pair
from jaxgate.keep.artifacts import refuse_foreign
from jaxgate.keep.files import write_atomic
from jaxgate.keep.machine import Machine
from jaxgate.model.baseline import Baseline
from jaxgate.model.numbers import Facts
from jaxgate.model.outcome import UsageError
from jaxgate.model.words import cut, plural
from jaxgate.observe.program.export import NotReplayableError
from jaxgate.processes.child import Finished, run_child, strangers_variables

_TITLES = {
    "temp_bytes": "temporary memory",
    "xla_flops": "FLOPs",
    "matmul_flops": "FLOPs of matrix products",
    "collective_bytes": "bytes of collectives",
    "output_bytes": "bytes of results",
    "argument_bytes": "bytes of arguments",
    "transcendentals": "transcendentals",
    "stablehlo_ops": "operations",
    "constant_bytes": "bytes of constants",
}
"""Facts that a title names, where more of them is worse."""
_VERSIONS = ("jax", "jaxlib", "python", "XLA_FLAGS")


def bug_report(
    baseline: Baseline, now: Baseline, file: str, printed: str, *, name: str, reduced: Reduced | None = None
) -> str:
    """Write the report: title, what was seen with which versions, how to see it, the file, what it printed here.

    ``reduced`` says what the programs show, and with which jax.
    """
    same = baseline.fingerprints.program == now.fingerprints.program
    before, after = (
        ", ".join(f"{key} {side.environment[key]}" for key in _VERSIONS if side.environment.get(key))
        for side in (baseline, now)
    )
    if reduced is not None:
        before, after = (f"jax {version}" for version in reduced.versions)
    kind = "the same program" if same else "two versions of a program"
    parts = [
        f"# {_title(baseline.facts, now.facts, same=same) if reduced is None else _shown(reduced, same=same)}",
        f"Seen with {kind} on {now.hardware.platform}: before with {before}; now with {after}."
        if before != after
        else f"Seen with {kind} on {now.hardware.platform}, {now.environment.get('jax', '')}: {after}.",
        *(
            ["Both sides of the file are one program: run it with both versions and compare the columns."]
            if same and before != after
            else []
        ),
        f"## To reproduce\n\nSave the file below as `{name}`; it needs jax and NumPy only:\n\n    pip install jax numpy\n    python {name}",
        f"## What it prints here\n\n```\n{printed.rstrip()}\n```",
        f"## The file\n\n```python\n{file.rstrip()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _shown(reduced: Reduced, *, same: bool) -> str:
    """What a smaller program shows, without how that was decided."""
    what = "The same program" if same else "A changed program"
    return f"{what}: {reduced.shows.partition(';')[0].partition(' (at least')[0]}"


def _title(baseline: Facts, now: Facts, *, same: bool) -> str:
    """Name the fact that grew most; what it grew to."""
    grown: list[tuple[float, str, int, int]] = []
    for fact, words in _TITLES.items():
        theirs, ours = getattr(baseline, fact), getattr(now, fact)
        if theirs is not None and ours is not None and ours > theirs:
            grown.append((ours / max(theirs, 1), words, theirs, ours))
    what = "The same program" if same else "A changed program"
    lost = (baseline.aliased_bytes or 0) - (now.aliased_bytes or 0)
    if grown:
        ratio, words, theirs, ours = max(grown)
        return f"{what} has {ratio:.3g} x the {words}: {theirs:,} before, {ours:,} now"
    if lost > 0:
        return f"{what} reuses {lost:,} bytes less of its arguments"
    return f"{what} differs in time or results"


def reduced_text(found: Reduced) -> str:
    """How small the program became, what it shows, and what it is in JAX."""
    ended = "; time was up: a longer --budget may make it smaller" if found.over else ""
    lines = [
        f"{found.before:,} → {plural(found.after, 'operation')} in {plural(found.tries, 'try', 'tries')} and {found.took_s:.0f} s{ended}",
        f"still shows: {found.shows}",
    ]
    if found.code:
        lines += ["", "As JAX code, which shows it, too:", "", *(f"    {line}" for line in found.code.splitlines())]
    return "\n".join([*lines, "", ""])


TIMEOUT_S = 600.0
"""Seconds that the file may take."""
_WIDTH = 200
"""Characters of a line that the file prints: the signature of 300 arguments is one of 12,000."""
_WRITTEN, _CANNOT, _FAILS = 0, 1, 2
"""Exit codes of this command."""


def repro(asked: argparse.Namespace) -> int:
    """Write the file, run it once where nothing of the project is in sight, show what it prints, give the exit code."""
    path = Path(asked.output or f"repro-{re.sub(r'[^A-Za-z0-9]+', '-', asked.case).strip('-')}.py")
    if not asked.reduce and (asked.python or asked.about or asked.at_least):
        return refuse("repro", "--python, --about and --at-least say what is reduced: add --reduce", _CANNOT)
    if asked.about not in ("", *ABOUT):
        return refuse("repro", f"--about: expected one of {', '.join(ABOUT)}, found {asked.about}", _CANNOT)
    if not os.access(path.absolute().parent, os.W_OK):  # a reduction takes minutes
        return refuse("repro", f"expected a folder that can be written, found {path.absolute().parent}", _CANNOT)
    try:
        _refuse_foreign(path)
        root = Path(asked.baselines) if asked.baselines else usual_folder(Path.cwd())
        _progress(f"recording {asked.case} as it is now")
        pair = find_pair(
            asked.case,
            root,
            project=project_of(Path.cwd()),
            # of today's program, in another environment or compiled otherwise
            alone=asked.python is not None or asked.about == "results",
            programs=usual_programs(Path.cwd()),
            environ=_environ(asked),
        )
        text, reduced = written(pair, path.name, asked)
        _refuse_foreign(path)  # it may have come since
        write_atomic(path, text.encode())
    except (UsageError, IniError, OSError) as error:
        return refuse("repro", str(error), _CANNOT)
    _progress(f"running {path} once")
    done, took_s = run_file(path)
    if done.status:
        return refuse("repro", f"{path} was written and fails here: {done.last_words}", _FAILS)
    _progress(f"{path}: {len(text.encode()):,} bytes, needs jax and NumPy only; it ran in {took_s:.0f} s")
    shown = [f"{cut(line, _WIDTH)}\n" for line in done.stdout.splitlines()]
    printed = "".join([reduced_text(reduced) if reduced else "", *shown])
    if asked.issue:
        printed = bug_report(pair.baseline[0], pair.now[0], text, printed, name=path.name, reduced=reduced)
    tell(file=str(path), shows=printed)
    write(printed)
    return _WRITTEN


def _refuse_foreign(path: Path) -> None:
    """Let no file of the project be lost: of one that this command did not write comes a ``UsageError``."""
    try:
        refuse_foreign(path, REPRO_MARK, "a file of `jaxgate repro`")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}") from error


def run_file(path: Path) -> tuple[Finished, float]:
    """Run a file as a stranger would, in an empty folder without what the project sets; and the seconds that it took.

    Nobody else works on this machine meanwhile, as it times both sides.
    """
    command, variables = [sys.executable, "-I", str(path.absolute())], strangers_variables(os.environ)
    machine = Machine()
    machine.about = f"jaxgate repro, running {path.name}"
    with machine.hold(_progress, alone=True), tempfile.TemporaryDirectory(prefix="jaxgate-") as folder:
        begin = time.monotonic()
        try:
            done = run_child(command, folder=Path(folder), variables=variables, timeout_s=TIMEOUT_S)
        except (TimeoutError, OSError) as error:
            done = Finished(status=1, stdout="", stderr=str(error))
        return done, time.monotonic() - begin


def written(pair: ProgramPair, name: str, asked: argparse.Namespace) -> tuple[str, Reduced | None]:
    """The text of the file, and what it was reduced to.

    Raises:
        UsageError: If a program holds what may be its author's, or shows nothing that could be reduced.
    """
    sides = []
    for whose, (_, program) in (("the baseline's program", pair.baseline), ("today's program", pair.now)):
        try:
            sides.append(anonymise(program))
        except (NotReplayableError, NotAnonymousError) as error:
            raise UsageError(f"{whose} of `{pair.case}` cannot be given away: {error}") from error
    if not asked.reduce:
        return repro_file(*sides, name=name), None
    found = reduce_pair(
        *sides, python=asked.python and Path(asked.python), about=asked.about, least=asked.at_least, budget_s=asked.budget, progress=_progress
    )  # fmt: skip
    return repro_file(found.baseline, found.now, name=name), found


def _environ(asked: argparse.Namespace) -> dict[str, str]:
    """The variables of the process that records: where results are wrong its compiler leaves out what makes them wrong.

    A NaN would keep the case from being recorded; the program is the same.
    """
    if asked.about != "results":
        return dict(os.environ)
    flags = [f"--{name}={value}" for name, value in WITHOUT_LIBRARIES["cpu"].items()]
    return {**os.environ, "XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip()}


def _progress(line: str) -> None:
    complain(f"jaxgate repro: {line}")
