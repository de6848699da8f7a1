"""A checkout beside the checkout: its code must be imported from there, and from nowhere else.

A package that is installed in editable mode, or lies in ``src/``, is found through ``sys.path`` in the original
checkout. Without care the other revision would be today's code, and every comparison would be SAME.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from jaxgate.model import UsageError
from jaxgate.settings.variables import NOT_FROM, ONLY_FROM

_ENGINE = Path(__file__).resolve().parents[1]


def environment_for(worktree: Path, top: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that runs another revision.

    Args:
        worktree: The other checkout.
        top: This checkout.
        environ: The environment of a process that runs this one.
    """
    found = dict(environ)
    inside = [Path(entry).resolve() for entry in sys.path if entry and Path(entry).resolve().is_relative_to(top)]
    moved = [str(worktree / entry.relative_to(top)) for entry in inside if _is_source(entry)]
    found["PYTHONPATH"] = os.pathsep.join([*moved, *filter(None, [environ.get("PYTHONPATH")])])
    found[NOT_FROM] = str(top)
    found[ONLY_FROM] = str(worktree)
    return found


def refuse_modules_from(top: Path) -> None:
    """End the run if it imported code of the checkout that it must not come from.

    Raises:
        UsageError: If there is one; names the first.
    """
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None:
            continue
        path = Path(file).resolve()
        if path.is_relative_to(top) and _is_source(path):
            raise UsageError(
                f"the other revision imported {name} from {path}, which is today's code; install the project so that "
                "its folder comes first on sys.path (a plain src folder or an editable install by path)",
            )


def refuse_installed_copies(worktree: Path) -> None:
    """End the run if a package that the revision has in its checkout was imported from where it is installed.

    Raises:
        UsageError: If there is one; names the first.
    """
    for name in sorted({name.partition(".")[0] for name in sys.modules}):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None:
            continue
        path = Path(file).resolve()
        if path.is_relative_to(worktree) or path.is_relative_to(_ENGINE):
            continue
        roots = (worktree, worktree / "src")
        own = any((root / name / "__init__.py").exists() or (root / f"{name}.py").exists() for root in roots)
        if own and {"site-packages", "dist-packages"} & set(path.parts):
            raise UsageError(
                f"the other revision imported {name} from {path}, an installed copy of one revision for both; "
                "install the project in editable mode: pip install -e .",
            )


def _is_source(path: Path) -> bool:
    """Whether code there is the project's: not an environment inside the checkout, nor this engine."""
    installed = any(part in ("site-packages", "dist-packages") for part in path.parts)
    environment = path.is_relative_to(Path(sys.prefix).resolve()) and Path(sys.prefix) != Path(sys.base_prefix)
    return not (installed or environment or path == _ENGINE.parent or path.is_relative_to(_ENGINE))
