"""``--perf-update``: what a run records, and what it leaves to be judged.

A command, not a setting: it exists on the command line only, because a line that is committed, or a forgotten
variable, must not rewrite baselines and be green for ever.
"""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

OPTION = "--perf-update"


class Update(StrEnum):
    """What a run records. The empty word, which is false, records nothing."""

    NOTHING = ""
    BOTH = "create and refresh"
    CREATE = "create"
    REFRESH = "refresh"
    TRIM = "trim"
    REVIEW = "review"

    def records(self, *, exists: bool) -> bool:
        """Whether a case is recorded instead of being judged.

        Args:
            exists: Whether it has a baseline of this hardware, readable or not.
        """
        if self is Update.BOTH:
            return True
        return (self is Update.CREATE and not exists) or (self is Update.REFRESH and exists)


MODES = (Update.CREATE, Update.REFRESH, Update.TRIM, Update.REVIEW)


def add_options(group: pytest.OptionGroup) -> None:
    """Declare the command and its reason in the group of the others."""
    group.addoption(
        OPTION,
        nargs="?",
        const=str(Update.BOTH),
        default=None,
        metavar="|".join(MODES),
        help="record the selected cases as baselines; touch no other baseline. `create` records only those that have "
        "none on this hardware, `refresh` only those that have one, and the others are judged; `review` judges, then "
        "asks about each case that moved; `trim` runs nothing and removes baselines without a test, and programs "
        "that no baseline names. Put a path before it",
    )
    group.addoption("--perf-why", metavar="TEXT", default="", help="reason for the recording, kept in its log")


def read_update(config: pytest.Config) -> Update:
    """Read what is to be recorded.

    Raises:
        pytest.UsageError: If it makes no sense, stands in a file or a variable, or does not go with another option.
    """
    given: str | None = config.getoption(OPTION)
    if given is None:
        if config.getoption("--perf-why"):
            raise pytest.UsageError("--perf-why gives the reason of a recording; it needs --perf-update")
        return Update.NOTHING
    if given not in (Update.BOTH, *MODES):
        raise pytest.UsageError(
            f"{OPTION}: expected one of {', '.join(MODES)}, found {given!r}; was a path meant? Write {OPTION}=refresh, "
            "or put it last"
        )
    update = Update(given)
    if not hasattr(config, "workerinput") and not _typed([str(part) for part in config.invocation_params.args]):
        raise pytest.UsageError(
            f"{OPTION} is a command: expected it on the command line, found it in addopts or PYTEST_ADDOPTS; remove it "
            "there, a run that records judges nothing"
        )
    if update is not Update.TRIM and config.getoption("--benchmark-disable", default=False):
        raise pytest.UsageError(f"{OPTION} needs samples; drop --benchmark-disable")
    if config.getoption("--perf-against"):
        raise pytest.UsageError(f"{OPTION} records, --perf-against compares; choose one")
    distributed = config.getoption("numprocesses", default=None) or config.getoption("dist", default="no") != "no"
    if update in (Update.TRIM, Update.REVIEW) and distributed:
        why = "runs no test" if update is Update.TRIM else "asks about what one process measured"
        raise pytest.UsageError(f"{OPTION}={update} {why}; drop -n")
    return update


def read_typed(config: pytest.Config) -> tuple[str, ...]:
    """The options of this run that decide which baselines are meant: a command to record them must repeat these."""
    chosen = ((name, config.getoption(name)) for name in ("--perf-baselines", "--perf-size"))
    return tuple(f"{name}={shlex.quote(value)}" for name, value in chosen if value)


def _typed(arguments: Sequence[str]) -> bool:
    """Whether somebody typed it; a file of arguments (``@file``) is typed, too."""
    return any(argument == OPTION or argument.startswith((f"{OPTION}=", "@")) for argument in arguments)
