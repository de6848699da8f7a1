"""What ``jaxgate bisect`` takes on its command line; the search itself is loaded once it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate bisect``."""
    bisecting = command(
        "bisect",
        _bisect,
        pytest=True,
        usage="jaxgate bisect CASE --good REV [--bad REV] [options] [pytest arguments ...]\n"
        "       jaxgate bisect CASE --over PACKAGE --good RELEASE [--bad RELEASE] [options] [pytest arguments ...]\n"
        "       jaxgate bisect --reset",
        help="find the first commit, or the first release of a package, with which a case became worse",
        description="Measure a case at the good and at the bad side, find the fact that moved, or else the time, and search for "
        "the first bad one between: commits by git bisect in a worktree of its own, releases in environments that pip makes. "
        "After Ctrl-C the same command goes on. Exit codes: 0 it is named, 1 it could not be narrowed down to one or both sides "
        "are alike, 2 the question makes no sense here. Other arguments are pytest's: where to look for the test, and options "
        "such as --perf-target=gpu:h200:8.",
    )
    bisecting.add_argument("case", nargs="?", default="", metavar="CASE", help="family/sentence, or FILE::TEST")
    bisecting.add_argument("--good", default="", metavar="REV", help="a commit, or with --over a release")
    bisecting.add_argument("--bad", default="", metavar="REV", help="default: HEAD, or the release that is installed")
    bisecting.add_argument("--over", default="", metavar="PACKAGE", help="search its releases, for example jax")
    bisecting.add_argument("--fact", default="", metavar="NAME", help="follow this one; run_ns is the time of a call")
    bisecting.add_argument(
        "--compare-with",
        choices=("good", "bad"),
        default="good",
        help="bad is what is unlike the good side (good, the default), or what is like the bad side (bad)",
    )
    bisecting.add_argument(
        "--tests",
        choices=("own", "today"),
        default="",
        help="run each commit's own tests, or today's copied over each; default: own, and today's where the good side lacks it",
    )
    bisecting.add_argument(
        "--with", dest="also", action="append", default=[], metavar="PATH", help="copied, too, with today's tests"
    )
    bisecting.add_argument("--first-parent", action="store_true", help="a merged branch counts as its merge")
    bisecting.add_argument(
        "--reset", action="store_true", help="forget searches that were interrupted, and environments"
    )


def _bisect(known: argparse.Namespace) -> int:
    from jaxgate.ext.bisect.run import bisect  # noqa: PLC0415 - loads what `jaxgate --help` does without

    return bisect(known)
