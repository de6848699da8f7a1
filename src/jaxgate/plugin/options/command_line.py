"""How a run was started: processes that run its tests again start in the same way."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest


@dataclass(frozen=True, slots=True)
class Started:
    """How pytest was started."""

    # the environment before the first conftest ran: what it changes is the code of this side
    environ: Mapping[str, str]
    options: tuple[str, ...]  # the options of the project's own conftests, and ini values, as they were typed
    # what was typed that leaves tests out, as pytest's options call it; an ini file or a conftest may, too
    narrowed_by: frozenset[str] = frozenset()


STARTED = pytest.StashKey[Started]()
_NARROWS = (
    *("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise", "override_ini", "benchmark_skip"),
    *("splits", "num_shards", "test_group_count"),  # of pytest-split, -shard, -test-groups: a suite among machines
)


class CommandLine:
    """A command line, read before the project's conftests have said which options they take.

    ``parser`` is pytest's before it has seen a conftest. ``PYTEST_ADDOPTS`` is read from ``environ``, of which a copy
    is kept.
    """

    def __init__(
        self, parser: pytest.Parser, invocation: Sequence[str], environ: Mapping[str, str] = os.environ
    ) -> None:
        self._environ = dict(environ)
        self._arguments = [*shlex.split(self._environ.get("PYTEST_ADDOPTS", "")), *invocation]
        self._has_options = any(argument.startswith("-") for argument in self._arguments)
        self._parser = parser
        self._unclaimed, *_ = self._left() if self._has_options else (Counter[str](),)

    def read(self) -> Started:
        """How the run was started, once the conftests were read: what nobody claimed before is theirs."""
        if not self._has_options:
            return Started(self._environ, ())
        left, ini_values, narrowed_by = self._left()
        claimed, options = self._unclaimed - left, []
        for argument in self._arguments:
            if claimed[argument] > 0:
                claimed[argument] -= 1
                options.append(argument)
        for value in ini_values:
            options += ["-o", value]
        return Started(self._environ, tuple(options), narrowed_by)

    def _left(self) -> tuple[Counter[str], list[str], frozenset[str]]:
        """Options that nobody has declared with what stands for a path, which may be their values; ini values; what narrows."""
        known, unknown = self._parser.parse_known_and_unknown_args(self._arguments)
        usual, _ = self._parser.parse_known_and_unknown_args([])
        given, without = _narrowing(known), _narrowing(usual)
        narrowed_by = frozenset(name for name in _NARROWS if given[name] != without[name])
        unclaimed = Counter([*unknown, *getattr(known, "file_or_dir", ())])
        return unclaimed, getattr(known, "override_ini", None) or [], narrowed_by


def _narrowing(options: Namespace) -> dict[str, object]:
    """What leaves tests out; jaxgate's own ini keys do not."""
    ini_values = [value for value in getattr(options, "override_ini", None) or () if not value.startswith("perf_")]
    return {name: getattr(options, name, None) for name in _NARROWS} | {"override_ini": ini_values}
