"""The command ``jaxgate``. Nothing heavy is imported here: ``jaxgate --help`` answers at once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from jaxgate.cli.selection import SUITE, suite

DUELS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands.

    Args:
        arguments: Those of the command line by default.

    Returns:
        The exit code.
    """
    parser = _parser()
    known, rest = parser.parse_known_args(arguments)
    if known.command is None:
        parser.print_help()
        return 2
    run: Callable[[argparse.Namespace, list[str]], int] = known.run
    return run(known, rest)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxgate", description="Performance-regression gates for JAX, beside pytest.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"jaxgate {version('jaxgate')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    calibrate = commands.add_parser(
        "calibrate",
        allow_abbrev=False,
        usage="jaxgate calibrate [-h] [--duels N] [pytest arguments ...]",
        help="measure the gate's error rates on this machine, and the noise of each case",
        description="Run each case against itself, and against itself with extra work; print and write the gate's "
        "error rates; keep the noise of each case as its margin in later runs here. All other arguments are "
        f"pytest's; without a path among them the folder {SUITE}/ is run, if there is one.",
    )
    calibrate.add_argument(
        "--duels",
        type=_count,
        default=DUELS,
        metavar="N",
        help=f"duels of each case with itself (default: {DUELS}; 299 without a false alarm, over all cases, bound "
        "the rate at 1 %%)",
    )
    calibrate.set_defaults(run=_calibrate)
    peak = commands.add_parser(
        "peak",
        allow_abbrev=False,
        usage="jaxgate peak [-h] [pytest arguments ...]",
        help="show the real peak of device memory of each case, measured in fresh processes",
        description="Build, compile and call each case a few times in a process of its own; print the peak that the "
        "allocator of its fullest device counted, beside the compiler's prediction, with pool, fragmentation and "
        "preallocation. The figures describe, they do not gate. Exit code 1 if a case has none: on CPU no case has. "
        f"All arguments are pytest's; without a path among them the folder {SUITE}/ is run, if there is one.",
    )
    peak.set_defaults(run=_peak)
    gate = commands.add_parser(
        "gate",
        allow_abbrev=False,
        usage="jaxgate gate [-h] [pytest arguments ...]",
        help="run the suite as CI does: strict, in time, against the merge base where there are no baselines",
        description="Run the suite strictly and with a time limit (--perf-time-limit, an hour by default); where no "
        "stored baseline can serve this hardware, compare with the merge base. Exit codes: 0 fine, 1 a case or a "
        "baseline failed, 2 the suite is broken or the machine unfit, 3 nothing but baselines is missing. All "
        f"arguments are pytest's; without a path among them the folder {SUITE}/ is run, if there is one.",
    )
    gate.set_defaults(run=_gate)
    record = commands.add_parser(
        "record",
        allow_abbrev=False,
        usage="jaxgate record [-h] --why TEXT [--busy-ok] [pytest arguments ...]",
        help="record baselines where CI runs, and write them as a patch",
        description="Record the selected baselines, write perf-artifacts/baselines.patch and print the line of the log. "
        "Exit codes: 0 recorded, 1 a case could not be, 2 nothing was: the machine is noisy, baselines have changes "
        f"that are not committed, or the suite is broken. All other arguments are pytest's; without a path {SUITE}/.",
    )
    record.add_argument("--why", required=True, metavar="TEXT", help="the reason, for the log")
    record.add_argument("--busy-ok", action="store_true", help="record on a noisy machine, too, and note it in the log")
    record.set_defaults(run=_record)
    comment = commands.add_parser(
        "comment",
        allow_abbrev=False,
        help="print the text of a pull request's one comment, from what a run left",
        description="Print Markdown whose first line is a mark to find the last comment by. Where no run left a result "
        "the text says so, in red.",
    )
    comment.add_argument("--artifacts", default="perf-artifacts", metavar="DIR", help="default: perf-artifacts")
    comment.add_argument("--commit", default="", metavar="SHA", help="the results must be of this commit")
    comment.set_defaults(run=_comment)
    policy = commands.add_parser(
        "policy", allow_abbrev=False, help="print what gates, and by how much it may move, as Markdown"
    )
    policy.set_defaults(run=_policy)
    _declare_baselines(commands)
    board = commands.add_parser(
        "tensorboard",
        allow_abbrev=False,
        help="open the profiles of the last run in TensorBoard, with a link to the trace of each side of each case",
        description="Print links to the traces of the cases that the last run profiled, then start TensorBoard on this "
        "machine only. Exit code 1 if there is no profile, 2 if TensorBoard is not installed or the port is taken.",
    )
    board.add_argument(
        "--logdir", default="perf-artifacts", metavar="DIR", help="folder of the bundles (default: perf-artifacts)"
    )
    board.add_argument("--port", type=int, default=None, help="default: 6006, or any free one")
    board.add_argument("--links", action="store_true", help="print the links and start nothing")
    board.set_defaults(run=_tensorboard)
    return parser


def _declare_baselines(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    stored = commands.add_parser(
        "baselines",
        allow_abbrev=False,
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
    stored.set_defaults(run=_baselines)


def _baselines(known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.cli.baselines import show_baselines  # noqa: PLC0415 - only this command needs it

    if rest:
        print(f"jaxgate baselines: unknown arguments {' '.join(rest)}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    return show_baselines(known.baselines, cases=known.cases, as_json=known.json)


def _policy(_known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.judge import PHASE_POLICIES, POLICIES, STORED_PHASE_POLICIES  # noqa: PLC0415 - only this command needs them
    from jaxgate.report import policy_page  # noqa: PLC0415 - only this command needs it

    if rest:
        print(f"jaxgate policy takes no arguments, found {' '.join(rest)}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    sys.stdout.write(policy_page(POLICIES, STORED_PHASE_POLICIES, PHASE_POLICIES))
    return 0


def _tensorboard(known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.cli.tensorboard import open_tensorboard  # noqa: PLC0415 - only this command needs it

    if rest:
        print(f"jaxgate tensorboard: unknown arguments {' '.join(rest)}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    return open_tensorboard(Path(known.logdir), known.port, links_only=known.links)


def _gate(_known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.cli.gate import gate  # noqa: PLC0415 - only this command needs it

    return gate(rest)


def _record(known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.cli.record import record  # noqa: PLC0415 - only this command needs it

    return record(known.why, rest, busy_ok=known.busy_ok)


def _comment(known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.cli.comment import comment  # noqa: PLC0415 - only this command needs it

    if rest:
        print(f"jaxgate comment: unknown arguments {' '.join(rest)}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    return comment(Path(known.artifacts), known.commit)


def _calibrate(known: argparse.Namespace, rest: list[str]) -> int:
    _become_pytest([f"--perf-calibrate={known.duels}", "--benchmark-disable"], rest)


def _peak(_known: argparse.Namespace, rest: list[str]) -> int:
    _become_pytest(["--perf-peak"], rest)


def _become_pytest(own: list[str], rest: list[str]) -> NoReturn:
    """Become pytest, so that its exit code, its output and Ctrl-C are its own."""
    command = [sys.executable, "-m", "pytest", *suite(rest), *own, *rest]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606 - a fixed command line, no shell


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of duels, 1 or more, found {text!r}")
    return number


if __name__ == "__main__":
    sys.exit(main())
