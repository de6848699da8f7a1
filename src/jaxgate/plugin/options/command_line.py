"""How a run was started: processes that run its tests again start in the same way."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest


@dataclass(frozen=True, slots=True)
class Started:
    """How pytest was started.

    Attributes:
        environ: The environment before the first conftest ran: what it changes is the code of this side.
        options: The options of the project's own conftests, and ini values, as they were typed.
    """

    environ: Mapping[str, str]
    options: tuple[str, ...]


STARTED = pytest.StashKey[Started]()


class CommandLine:
    """A command line, read before the project's conftests have said which options they take.

    Args:
        parser: pytest's, before it has seen a conftest.
        invocation: The arguments of this run.
        environ: The environment; ``PYTEST_ADDOPTS`` is read, and a copy is kept.
    """

    def __init__(
        self, parser: pytest.Parser, invocation: Sequence[str], environ: Mapping[str, str] = os.environ
    ) -> None:
        self._environ = dict(environ)
        self._arguments = [*shlex.split(self._environ.get("PYTEST_ADDOPTS", "")), *invocation]
        self._has_options = any(argument.startswith("-") for argument in self._arguments)
        self._parser = parser
        self._unclaimed = self._left()[0] if self._has_options else Counter[str]()

    def read(self) -> Started:
        """How the run was started, once the conftests were read: what nobody claimed before is theirs."""
        if not self._has_options:
            return Started(self._environ, ())
        left, ini_values = self._left()
        claimed, options = self._unclaimed - left, []
        for argument in self._arguments:
            if claimed[argument] > 0:
                claimed[argument] -= 1
                options.append(argument)
        for value in ini_values:
            options += ["-o", value]
        return Started(self._environ, tuple(options))

    def _left(self) -> tuple[Counter[str], list[str]]:
        """Options that nobody has declared with what stands for a path, which may be their values; and ini values."""
        known, unknown = self._parser.parse_known_and_unknown_args(self._arguments)
        return Counter([*unknown, *getattr(known, "file_or_dir", ())]), getattr(known, "override_ini", None) or []
