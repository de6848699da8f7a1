"""The command ``jaxgate``. Nothing heavy is imported here: ``jaxgate --help`` answers at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jaxgate.cli.baselines import show_baselines
from jaxgate.cli.comment import comment
from jaxgate.cli.console import UNREAD, answer, nobody_reads, refuse, tell
from jaxgate.cli.gate import gate
from jaxgate.cli.init import asker, init
from jaxgate.cli.pytest_arguments import SUITE
from jaxgate.ext import parts
from jaxgate.judge.policy import ARRIVAL_POLICIES, PHASE_POLICIES, POLICIES, STORED_PHASE_POLICIES
from jaxgate.report.policy import policy_page

Command = Callable[[argparse.Namespace], int]
"""Runs with what it was given; ``rest`` has the arguments that are pytest's."""

FIRST = ("init", "doctor", "gate", "record", "comment")
"""What a newcomer needs: the first screen of ``--help``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands; gives its exit code."""
    parser = _parser()
    known, rest = parser.parse_known_args(arguments)
    known.rest = rest
    if known.command is None:
        parser.print_help()
        return 2
    run = partial(_run, known)
    try:
        return _flushed(answer(known.command, run) if known.json else run())
    except BrokenPipeError:
        if not nobody_reads():
            raise
        return UNREAD


def _run(known: argparse.Namespace) -> int:
    run: Command = known.run
    if known.rest and not known.pytest:
        return refuse(known.command, f"unknown arguments {' '.join(known.rest)}", 2)
    try:
        return run(known)
    except OSError as error:
        if error.filename is None:  # no path is the reason
            raise
        found = f"found {str(error.filename)!r} ({error.strerror})"
        return refuse(known.command, f"expected a path that this machine can read, {found}; give another one", 2)


def _flushed(code: int) -> int:
    sys.stdout.flush()  # a short answer meets only here that nobody reads it
    return code


class _Given(argparse.Action):
    """Takes a value that is there: with nothing after it an option would mean something else than it says."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep the value."""
        if (option_string or values is not self.default) and "" in (values if isinstance(values, list) else [values]):
            name = f"{option_string}={self.metavar}" if option_string else self.metavar
            parser.error(
                f"{option_string or self.metavar}: expected a value, found nothing; write {name}, or leave it out"
            )
        setattr(namespace, self.dest, values)


class _HelpAll(argparse.Action):
    """Show every command, and end."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the long help, and the options of pytest that its own help leaves out."""
        from jaxgate.plugin.options.page import options_text  # noqa: PLC0415 - it imports pytest

        _parser(first=False).print_help()
        sys.stdout.write(f"\noptions of pytest:\n{options_text()}")
        parser.exit()


def _parser(*, first: bool = True) -> argparse.ArgumentParser:
    """The commands; ``first`` shows those that a newcomer needs, and names the others."""
    parser = argparse.ArgumentParser(
        prog="jaxgate", description="Performance-regression gates for JAX, beside pytest.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"jaxgate {version('jaxgate')}")
    parser.add_argument(
        "--help-all", action=_HelpAll, nargs=0, help="show all commands, and all options of pytest, and exit"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    others: list[str] = []

    def command(name: str, run: Command, *, pytest: bool = False, **about: Any) -> argparse.ArgumentParser:
        if first and name not in FIRST:
            del about["help"]  # argparse lists none without
            others.append(name)
        one = commands.add_parser(name, allow_abbrev=False, **about)
        one.set_defaults(run=run, pytest=pytest)
        one.register("action", None, _Given)
        one.add_argument(
            "--json", action="store_true", help="print one JSON object for programs; what is for people goes to stderr"
        )
        return one

    command(
        "init",
        lambda known: init(Path(), ask=None if known.json else asker()),
        help="write a first test, lines for git and a workflow into this project",
        description="Write what the project lacks: perf/test_first.py, lines in .gitattributes and a workflow for GitHub; "
        "ask before a file is replaced; print the next commands.",
    )
    command(
        "gate",
        lambda known: gate(known.rest),
        pytest=True,
        usage="jaxgate gate [-h] [pytest arguments ...]",
        help="run the suite as CI does: strict, in time, against the merge base where there are no baselines",
        description="Run the suite strictly and with a time limit (--perf-time-limit, an hour by default); where no "
        "stored baseline can serve this hardware, compare with the merge base. Exit codes: 0 fine, 1 a case or a "
        "baseline failed, 2 the suite is broken or the machine unfit, 3 nothing but baselines is missing. All "
        f"arguments are pytest's; without a path among them the folder {SUITE}/ is run, if there is one.",
    )
    recording = command(
        "record",
        _record,
        pytest=True,
        usage="jaxgate record [-h] --why TEXT [--busy-ok] [pytest arguments ...]",
        help="record baselines where CI runs, and write them as a patch",
        description="Record the selected baselines, write perf-artifacts/baselines.patch and print the line of the log. "
        "Exit codes: 0 recorded, 1 a case could not be, 2 nothing was: the machine is noisy, baselines have changes "
        f"that are not committed, or the suite is broken. All other arguments are pytest's; without a path {SUITE}/.",
    )
    recording.add_argument("--why", required=True, metavar="TEXT", help="the reason, for the log")
    recording.add_argument(
        "--busy-ok", action="store_true", help="record on a noisy machine, too, and note it in the log"
    )
    commenting = command(
        "comment",
        lambda known: comment(Path(known.artifacts), known.commit),
        help="print the text of a pull request's one comment, from what a run left",
        description="Print Markdown whose first line is a mark to find the last comment by. Where no run left a result "
        "the text says so, in red.",
    )
    commenting.add_argument("--artifacts", default="perf-artifacts", metavar="DIR", help="default: perf-artifacts")
    commenting.add_argument("--commit", default="", metavar="SHA", help="the results must be of this commit")
    command("policy", _policy, help="print what gates, and by how much it may move, as Markdown")
    stored = command(
        "baselines",
        lambda known: show_baselines(known.baselines, cases=known.cases, as_json=known.json),
        help="list the stored baselines: how many, how old, recorded with what and why, and what is wrong with them",
        description="Read every baseline, program and waiver of the project. Exit code 1 if one of them is unreadable "
        "or missing, or there is no baseline.",
    )
    stored.add_argument(
        "--baselines",
        default=None,
        metavar="DIR",
        help="their folder (default: JAXGATE_BASELINES, perf_baselines in pyproject.toml, baselines)",
    )
    stored.add_argument("--cases", action="store_true", help="one row for each case, with its commit, owner and reason")
    for capability in parts("command"):
        capability.add(command)
    if others:
        parser.epilog = f"more commands: {', '.join(sorted(others))}; jaxgate COMMAND --help says what one takes"
    return parser


def _record(known: argparse.Namespace) -> int:
    from jaxgate.cli.record import record  # noqa: PLC0415 - imports JAX, to look at the machine

    return record(known.why, known.rest, busy_ok=known.busy_ok)


def _policy(_: argparse.Namespace) -> int:
    for name, rules in (("facts", (*POLICIES, *ARRIVAL_POLICIES)), ("phases", STORED_PHASE_POLICIES)):
        tell(**{name: [asdict(rule) for rule in rules]})
    sys.stdout.write(policy_page((*POLICIES, *ARRIVAL_POLICIES), STORED_PHASE_POLICIES, PHASE_POLICIES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
