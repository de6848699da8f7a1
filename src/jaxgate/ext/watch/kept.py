"""The lock file: a line for each program and each test, sorted, so that branches that touch different tests merge."""

from __future__ import annotations

import hashlib
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
    return _parsed(text, file.name)


def _parsed(text: str, name: str) -> Lock:
    recorded: list[str] = []
    tests: set[str] = set()
    programs: dict[Key, Known] = {}
    again: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            match line.split("\t"):
                case ["recorded", *rest]:
                    recorded = rest
                case ["test", test, *_]:
                    tests.add(test)
                case ["again", function, count, *_]:
                    again[function] = int(count)
                case ["program", function, arguments, count, facts, *_]:
                    known = {fact: int(value) for fact, value in (pair.split("=") for pair in facts.split())}
                    programs[Key(function, arguments)] = Known(int(count), known)
                case [other, *_] if other and not other.startswith("#"):
                    raise ValueError(other)  # noqa: TRY301 - as a number that is none
        except ValueError as error:
            found = f"found {line[:60]!r}"
            raise UsageError(
                f"{name}:{number}: expected recorded, program, again or test and its columns, {found}; {_UPDATE}"
            ) from error
    if len(recorded) < 2:  # noqa: PLR2004 - jax and hardware
        raise UsageError(f"{name}: expected a line `recorded`, found none; {_UPDATE}")
    return Lock(jax=recorded[0], hardware=recorded[1], tests=frozenset(tests), programs=programs, again=again)
