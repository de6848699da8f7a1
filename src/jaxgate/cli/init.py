"""``jaxgate init``: a first test, what git should know of baselines, and a workflow, written into a project."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import refuse, say
from jaxgate.cli.starter import FILES, NEXT, SHARED
from jaxgate.keep import read_text, write_atomic

Ask = Callable[[str], str]


def init(folder: Path, *, ask: Ask | None = None) -> int:
    """Write what a project lacks, ask before a file is replaced, and print the next commands.

    Args:
        folder: Root of the project.
        ask: Asks a person; without one nothing is replaced.

    Returns:
        The exit code: 1 if a file could not be read or written.
    """
    try:
        for name, text in FILES.items():
            say(f"{_put(folder / name, text, ask, shared=name in SHARED):<9} {name}")
    except (OSError, ValueError) as error:
        return refuse("init", f"expected files that can be read and written, found {error}", 1)
    say("Next:")
    for command in NEXT:
        say(f"  {command}")
    return 0


def asker() -> Ask | None:
    """How to ask somebody; ``None`` where nobody sits at a terminal."""
    return input if sys.stdin.isatty() and sys.stdout.isatty() else None


def _put(file: Path, text: str, ask: Ask | None, *, shared: bool) -> str:
    """Write one file, and say in a word what came of it."""
    before = read_text(file) if file.exists() or file.is_symlink() else ""
    if text in before:
        return "is there"
    if before and shared:
        write_atomic(file, f"{before.rstrip()}\n\n{text}".encode())
        return "added to"
    if before and not _agrees(ask, file):
        return "kept"
    write_atomic(file, text.encode())
    return "replaced" if before else "wrote"


def _agrees(ask: Ask | None, file: Path) -> bool:
    """Whether somebody wants a file replaced; Ctrl-C and the end of the input are no."""
    if ask is None:
        return False
    try:
        return ask(f"{file.name} has something else: replace it? [y]es [n]o ").strip().lower() in {"y", "yes"}
    except (KeyboardInterrupt, EOFError):
        return False
