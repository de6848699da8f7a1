"""The lock file: a line for each program and each test, sorted, so that branches that touch different tests merge."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from jaxgate.ext.watch.model import Key, Known, Lock
from jaxgate.keep.files import read_text, write_atomic
from jaxgate.model.outcome import UsageError

NAME = "perf-watch.lock"
_HEAD = "# What the tests of this project compile. `pytest --perf-watch` holds a run against it, `--perf-watch=update` writes it."
_LONGEST = 160
"""Characters of a key's arguments; a digest stands for the rest."""
_UPDATE = "write it anew: pytest --perf-watch=update"


def short_arguments(text: str) -> str:
    """Types of arguments; of many the first ones, and a digest of all."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST].rpartition(', ')[0]}, … {hashlib.blake2s(text.encode(), digest_size=4).hexdigest()}"


def write_lock(file: Path, lock: Lock) -> None:
    """Write a lock file aside and rename it."""
    lines = []
    for key, known in sorted(lock.programs.items()):
        facts = " ".join(f"{name}={value}" for name, value in sorted(known.facts.items()))
        lines.append("\t".join(("program", key.function, key.arguments, str(known.compiles), facts)))
    lines += [f"again\t{function}\t{count}" for function, count in sorted(lock.again.items())]
    lines += [f"test\t{test}" for test in sorted(lock.tests)]
    text = "\n".join([_HEAD, f"recorded\t{lock.jax}\t{lock.hardware}", *lines]) + "\n"
    write_atomic(file, text.encode())


def read_lock(file: Path) -> Lock | None:
    """Read a lock file; ``None`` if there is none.

    Raises:
        UsageError: If a line is no lock file's: two branches that moved the same test leave marks, for example.
    """
    try:
        text = read_text(file)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file.name}: {error}; {_UPDATE}") from error
    lines = _Lines()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            lines.read(line)
        except (IndexError, ValueError) as error:
            found = f"found {line[:60]!r}"
            raise UsageError(
                f"{file.name}:{number}: expected recorded, program, again or test and its columns, {found}; {_UPDATE}"
            ) from error
    if len(lines.recorded) < 2:  # noqa: PLR2004 - jax and hardware
        raise UsageError(f"{file.name}: expected a line `recorded`, found none; {_UPDATE}")
    return Lock(
        jax=lines.recorded[0],
        hardware=lines.recorded[1],
        tests=frozenset(lines.tests),
        programs=lines.programs,
        again=lines.again,
    )


@dataclass(slots=True)
class _Lines:
    recorded: list[str] = field(default_factory=list)
    tests: set[str] = field(default_factory=set)
    programs: dict[Key, Known] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)

    def read(self, line: str) -> None:
        kind, *rest = line.split("\t")
        if kind == "recorded":
            self.recorded = rest[:2]
        elif kind == "test":
            self.tests.add(rest[0])
        elif kind == "again":
            self.again[rest[0]] = int(rest[1])
        elif kind == "program":
            pairs = (pair.split("=") for pair in rest[3].split())
            self.programs[Key(rest[0], rest[1])] = Known(int(rest[2]), {name: int(value) for name, value in pairs})
        elif line and not line.startswith("#"):
            raise ValueError(kind)
