"""The lock file: a line for each program and each test, sorted, so that branches that touch different tests merge."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from jaxgate.ext.watch.model import Key, Known, Lock
from jaxgate.keep.files import read_text, write_atomic
from jaxgate.model.outcome import UsageError

NAME = "perf-watch.lock"
_HEAD = "# What the tests of this project compile. `pytest --perf-watch` holds a run against it, `--perf-watch=update` writes it.\n"
_LONGEST = 160
"""Characters of a key's arguments; a digest stands for the rest."""
_UPDATE = "write it anew: pytest --perf-watch=update"


def short_arguments(text: str) -> str:
    """Arguments on one line; of many the first ones, and a digest of all. Addresses of objects are left out."""
    plain = re.sub(r" at 0x[0-9a-f]+", "", re.sub(r"\s+", " ", text))
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[:_LONGEST].rpartition(',')[0]}, … {hashlib.blake2s(plain.encode(), digest_size=4).hexdigest()}"


def write_lock(file: Path, lock: Lock) -> None:
    """Write it aside and rename it."""
    lines = [
        "\t".join(("program", key.function, key.arguments, str(known.compiles), _facts(known.facts)))
        for key, known in sorted(lock.programs.items())
    ]
    lines += [f"test\t{test}\t{again}" for test, again in sorted(lock.tests.items())]
    text = "\n".join([_HEAD.rstrip(), f"recorded\t{lock.jax}\t{lock.hardware}", *lines]) + "\n"
    write_atomic(file, text.encode())


def read_lock(file: Path) -> Lock | None:
    """Read it; ``None`` if there is none.

    Raises:
        UsageError: If a line is none of it: two branches that moved the same test leave marks, for example.
    """
    try:
        text = read_text(file)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file.name}: {error}; {_UPDATE}") from error
    recorded: list[str] = []
    tests: dict[str, int] = {}
    programs: dict[Key, Known] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            kind, *rest = line.split("\t")
            if kind == "recorded":
                recorded = rest[:2]
            elif kind == "test":
                tests[rest[0]] = int(rest[1])
            elif kind == "program":
                pairs = (pair.split("=") for pair in rest[3].split())
                programs[Key(rest[0], rest[1])] = Known(int(rest[2]), {name: int(value) for name, value in pairs})
            elif line and not line.startswith("#"):
                raise UsageError(_wrong(file, number, line))
        except (IndexError, ValueError) as error:
            raise UsageError(_wrong(file, number, line)) from error
    if len(recorded) < 2:  # noqa: PLR2004 - jax and hardware
        raise UsageError(f"{file.name}: expected a line `recorded`, found none; {_UPDATE}")
    return Lock(jax=recorded[0], hardware=recorded[1], tests=tests, programs=programs)


def _wrong(file: Path, number: int, line: str) -> str:
    return f"{file.name}:{number}: expected recorded, program or test and its columns, found {line[:60]!r}; {_UPDATE}"


def _facts(facts: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(facts.items()))
