"""The command ``jaxgate``. Nothing heavy is imported here: ``jaxgate --help`` answers at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jaxgate.cli.baselines import show_baselines
from jaxgate.cli.comment import comment
from jaxgate.cli.console import complain, refuse
from jaxgate.cli.gate import gate
from jaxgate.cli.init import asker, init
from jaxgate.cli.pytest_arguments import SUITE
from jaxgate.ext.bisect.command import add_bisect
from jaxgate.ext.diff.command import add_diff
from jaxgate.ext.doctor.command import doctor
from jaxgate.ext.history.command import add_history
from jaxgate.ext.page.command import add_report
from jaxgate.ext.profile.command import open_tensorboard
from jaxgate.ext.repro.command import add_repro
from jaxgate.ext.upgrade.command import upgrade
from jaxgate.judge.policy import ARRIVAL_POLICIES, PHASE_POLICIES, POLICIES, STORED_PHASE_POLICIES
from jaxgate.report.policy import policy_page

Command = Callable[[argparse.Namespace, list[str]], int]
"""Runs with what it was given, and with the arguments that are pytest's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands.

    Returns:
        The exit code.
    """
    parser = _parser()
    known, rest = parser.parse_known_args(arguments)
    if known.command is None:
        parser.print_help()
        return 2
    run: Command = known.run
    try:
        return run(known, rest)
    except OSError as error:
        if error.filename is None:  # no path is the reason
            raise
        found = f"found {str(error.filename)!r} ({error.strerror})"
        return refuse(known.command, f"expected a path that this machine can read, {found}; give another one", 2)


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxgate", description="Performance-regression gates for JAX, beside pytest.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"jaxgate {version('jaxgate')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, run: Command, **about: Any) -> argparse.ArgumentParser:
        one = commands.add_parser(name, allow_abbrev=False, **about)
        one.set_defaults(run=run)
        one.register("action", None, _Given)
        return one

    command(
        "init",
        _init,
        help="write a first test, lines for git and a workflow into this project",
        description="Write what the project lacks: perf/test_first.py, lines in .gitattributes and a workflow for GitHub; "
        "ask before a file is replaced; print the next commands.",
    )
    command(
        "doctor",
        _doctor,
        help="say what can be gated here and what cannot, each with the next command",
        description="Look at packages, devices, settings, the clock, the load, git and baselines. Exit code 1 if "
        "something keeps a gate from judging here. Settings that a conftest makes are not seen.",
    )
    command(
        "gate",
        lambda _, rest: gate(rest),
        usage="jaxgate gate [-h] [pytest arguments ...]",
        help="run the suite as CI does: strict, in time, against the merge base where there are no baselines",
        description="Run the suite strictly and with a time limit (--perf-time-limit, an hour by default); where no "
        "stored baseline can serve this hardware, compare with the merge base. Exit codes: 0 fine, 1 a case or a "
        "baseline failed, 2 the suite is broken or the machine unfit, 3 nothing but baselines is missing. All "
        f"arguments are pytest's; without a path among them the folder {SUITE}/ is run, if there is one.",
    )
    upgrading = command(
        "upgrade",
        lambda known, rest: upgrade(rest, known.python),
        usage="jaxgate upgrade [-h] [REQUIREMENT ...] [NAME=VALUE ...] [--python PYTHON] [pytest arguments ...]",
        help="run the suite in another environment, too, and answer: may I upgrade?",
        description="Record the facts of the suite here and in another environment, time what differs in fresh processes, "
        "and group what is worse, better or cannot run there; write perf-artifacts/upgrade.md for the pull request. The "
        "other environment is this one with requirements (jax==0.12.0.1), an XLA option, a JAX setting or a variable "
        "(NAME=VALUE), or the one of an interpreter. Exit codes: 0 yes, 1 something is worse or cannot run, 2 it is not "
        f"known. All other arguments are pytest's; without a path among them the folder {SUITE}/ is run, if there is one.",
    )
    upgrading.add_argument(
        "--python",
        default="",
        metavar="PYTHON",
        help="the interpreter of an environment; with requirements the one that makes it (python3.12)",
    )
    recording = command(
        "record",
        _record,
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
        _comment,
        help="print the text of a pull request's one comment, from what a run left",
        description="Print Markdown whose first line is a mark to find the last comment by. Where no run left a result "
        "the text says so, in red.",
    )
    commenting.add_argument("--artifacts", default="perf-artifacts", metavar="DIR", help="default: perf-artifacts")
    commenting.add_argument("--commit", default="", metavar="SHA", help="the results must be of this commit")
    add_report(command)
    add_bisect(command)
    command("policy", _policy, help="print what gates, and by how much it may move, as Markdown")
    add_diff(command)
    stored = command(
        "baselines",
        _baselines,
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
    stored.add_argument("--json", action="store_true", help="everything, for machines")
    add_history(command)
    board = command(
        "tensorboard",
        _tensorboard,
        help="open the profiles of the last run in TensorBoard, with a link to the trace of each side of each case",
        description="Print links to the traces of the cases that the last run profiled, then start TensorBoard on this "
        "machine only. Exit code 1 if there is no profile, 2 if TensorBoard is not installed or the port is taken.",
    )
    board.add_argument(
        "--logdir", default="perf-artifacts", metavar="DIR", help="folder of the bundles (default: perf-artifacts)"
    )
    board.add_argument("--port", type=int, default=None, help="default: 6006, or any free one")
    board.add_argument("--links", action="store_true", help="print the links and start nothing")
    add_repro(command)
    return parser


def _record(known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.cli.record import record  # noqa: PLC0415 - imports JAX, to look at the machine

    return record(known.why, rest, busy_ok=known.busy_ok)


def _comment(known: argparse.Namespace, rest: list[str]) -> int:
    return _unknown("comment", rest) or comment(Path(known.artifacts), known.commit)


def _init(_: argparse.Namespace, rest: list[str]) -> int:
    return _unknown("init", rest) or init(Path(), ask=asker())


def _doctor(_: argparse.Namespace, rest: list[str]) -> int:
    return _unknown("doctor", rest) or doctor()


def _policy(_: argparse.Namespace, rest: list[str]) -> int:
    if rest:
        complain(f"jaxgate policy takes no arguments, found {' '.join(rest)}")
        return 2
    sys.stdout.write(policy_page((*POLICIES, *ARRIVAL_POLICIES), STORED_PHASE_POLICIES, PHASE_POLICIES))
    return 0


def _baselines(known: argparse.Namespace, rest: list[str]) -> int:
    return _unknown("baselines", rest) or show_baselines(known.baselines, cases=known.cases, as_json=known.json)


def _tensorboard(known: argparse.Namespace, rest: list[str]) -> int:
    chosen = Path(known.logdir), known.port
    return _unknown("tensorboard", rest) or open_tensorboard(*chosen, links_only=known.links)


def _unknown(command: str, rest: list[str]) -> int:
    """The exit code of arguments that a command does not have; 0 if there are none."""
    return refuse(command, f"unknown arguments {' '.join(rest)}", 2) if rest else 0


if __name__ == "__main__":
    sys.exit(main())
