"""Release lines of jax: a baseline is kept for each, as two of them rarely write the same program."""

from __future__ import annotations

import re

_VERSION = re.compile(r"(\d+)\.(\d+)(?!\d)")
_MARK = "-jax-"


def release_line(version: str) -> str:
    """The first two numbers of a version: ``0.12`` of ``0.12.0.1``.

    Args:
        version: Of jax, as its package says it.

    Raises:
        ValueError: If it does not start with two numbers.
    """
    found = _VERSION.match(version)
    if found is None:
        raise ValueError(f"expected a version of jax such as 0.12.0, found {version!r}")
    return f"{int(found[1])}.{int(found[2])}"


def folder_name(slug: str, line: str) -> str:
    """The folder of the baselines of one hardware and one release line.

    Args:
        slug: The hardware, for example ``cpu-amd-epyc-1``.
        line: The release line.
    """
    return f"{slug}{_MARK}{line}"


def split_folder_name(name: str) -> tuple[str, str] | None:
    """Hardware and release line of a folder; ``None`` where it is named for none."""
    slug, mark, line = name.rpartition(_MARK)
    return (slug, line) if mark and _VERSION.fullmatch(line) else None


def distance(line: str, here: str) -> tuple[int, int, int]:
    """Sorts lines by how near they are to one: itself, then older ones from the newest, then newer ones from the oldest.

    Args:
        line: The one to sort.
        here: The one that is looked for.
    """
    (major, minor), (own_major, own_minor) = (map(int, one.split(".")) for one in (line, here))
    if (major, minor) == (own_major, own_minor):
        return (0, 0, 0)
    if (major, minor) < (own_major, own_minor):
        return (1, -major, -minor)
    return (2, major, minor)
