"""Capabilities beside the gate: one folder each, with its data, its command, its judge and its words.

The core finds them by the names of their modules, so that a folder can be taken away:

- ``command`` has ``add``, which declares the capability's command of ``jaxgate``;
- ``terminal`` has ``show``, which says at the end of a run what the capability found;
- ``check`` has ``wrong_with``, called with a run that came to its end, for what is wrong beside its cases, a line each;
- ``environment`` has ``is_environment``, which knows what ``--perf-against`` names that is no revision;
- ``ending`` has ``ended``, called with a run that is over and what its ``results.json`` says;
- ``pages`` has ``PAGES``, by name what is written beside ``results.json``, each made of what that says;
- ``mode`` has ``MODES``, by kind of run what runs in place of the tests;
- ``plugin`` has ``configure``, called before a run that gates, and may have ``own_gate``, the fixture's object or ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any


def parts(kind: str) -> Iterator[Any]:
    """The modules of this name, in the order of the capabilities' names; each is imported when its turn comes."""
    for file in sorted(Path(__file__).parent.glob(f"*/{kind}.py")):
        yield import_module(f"{__name__}.{file.parent.name}.{kind}")


def pages() -> dict[str, Callable[[Any], str]]:
    """What is written beside ``results.json``, by name: each makes its text of a run's record."""
    return {name: make for part in parts("pages") for name, make in part.PAGES.items()}
