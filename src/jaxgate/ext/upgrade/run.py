"""``jaxgate upgrade``: the whole suite in another environment, and one answer: may I upgrade?

Exit codes: 0 yes · 1 no: something is worse there, or cannot run · 2 not known: the other environment could not be made,
or something could not be compared.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell
from jaxgate.cli.pytest_arguments import suite, takes_a_value
from jaxgate.ext.upgrade.environment import is_requirement, is_setting
from jaxgate.ext.upgrade.model import Answer
from jaxgate.keep.files import read_json
from jaxgate.settings import RESULTS_INTO, UPGRADE_TO

_EXPECTED = (
    "expected what to upgrade to: a requirement such as jax==0.12.0.1, NAME=VALUE, or an environment with --python"
)


def upgrade(
    arguments: Sequence[str],
    python: str = "",
    environ: Mapping[str, str] = os.environ,
    run: Callable[..., int] = lambda command, **how: subprocess.run(command, check=False, **how).returncode,
) -> int:
    """Run the suite in both environments, say in one line what that means, and give the exit code.

    ``arguments`` are what to upgrade to, and pytest's; ``python`` is the other interpreter, or makes its environment.
    """
    items, rest = split_arguments(arguments)
    if python:
        found = shutil.which(python) or (python if Path(python).exists() else None)
        if found is None:
            return _refuse(f"expected an interpreter or a virtual environment, found none: --python {python}")
        items.append(str(Path(found).absolute()))
    if not items:
        return _refuse(_EXPECTED)
    command = [sys.executable, "-m", "pytest", *suite(rest), *rest]
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        into = Path(name) / "upgrade.json"
        status = run(command, env={**environ, RESULTS_INTO: str(into), UPGRADE_TO: shlex.join(items)})
        code, why = _meaning(into, status)
    tell(why=why)
    say(f"jaxgate upgrade: {why} (exit code {code})")
    return code


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What to upgrade to, wherever it stands, and what is pytest's; the value of an option is pytest's."""
    items: list[str] = []
    rest: list[str] = []
    before = ""
    for argument in arguments:
        mine = not takes_a_value(before) and (is_requirement(argument) or is_setting(argument))
        (items if mine else rest).append(argument)
        before = argument
    return items, rest


def _meaning(into: Path, status: int) -> tuple[int, str]:
    """The exit code, and why; "not known" of a run that left no answer."""
    try:
        found = read_json(into)
        code, said = int(found["exit_code"]), str(found["said"])
    except (OSError, ValueError, KeyError, TypeError):
        return Answer.UNKNOWN.exit_code, f"pytest ended with exit code {status} and compared nothing"
    if status != code:
        return Answer.UNKNOWN.exit_code, f"pytest ended with exit code {status}, though the answer was {said}"
    tell(**{name: value for name, value in found.items() if name not in ("schema", "exit_code")})
    return code, said


_refuse = partial(refuse, "upgrade", code=Answer.UNKNOWN.exit_code)
