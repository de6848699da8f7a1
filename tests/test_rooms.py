"""The arrows between the rooms of the code, read from its import statements."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
ROOMS = {
    "model": {"model"},
    "observe": {"model", "observe"},
    "judge": {"model", "judge"},
    "keep": {"model", "keep"},
    "report": {"model", "report"},
    "plugin": {"model", "observe", "judge", "keep", "report", "plugin"},
    "cli": {"model", "observe", "judge", "keep", "report", "cli"},
    "": {"model", "cli", "observe"},  # what ``import jaxgate`` offers
    "workloads": {"model", "workloads"},
}
"""Which rooms each room may import."""

PURE = {"model", "judge"}
WORLD = {"datetime", "glob", "io", "os", "random", "shutil", "socket", "subprocess", "sys", "tempfile", "threading"}
WORLD |= {"asyncio", "secrets", "time", "urllib", "uuid"}
"""Modules that reach files, clocks, processes or chance. ``pathlib`` names a type; its methods are below."""
TOUCHES = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "touch", "rename", "unlink", "mkdir"}
TOUCHES |= {"rmdir", "iterdir", "rglob", "exists", "is_file", "is_dir", "stat", "resolve", "cwd", "home"}
TOUCHES |= {"today", "fromtimestamp"}
PLAIN = {"datetime.date"}
"""A value, as long as nobody asks it for today's."""


def room_of(file):
    """The room that a file lies in; ``""`` for the package itself."""
    parts = file.parts
    if parts[0] == "workloads":
        return "workloads"
    assert parts[:2] == ("src", "jaxgate"), f"{file} lies in no room"
    return parts[2] if len(parts) > 3 else ""


def imports(tree, file):
    """Every imported module with its line, wherever the statement stands; relative ones resolved."""
    package = [part for part in file.parent.parts if part != "src"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) in ("import_module", "__import__"):
            target = node.args[0] if node.args else None
            known = isinstance(target, ast.Constant) and isinstance(target.value, str)
            yield (target.value if known else "jaxgate.somewhere", node.lineno)


def _name(function):
    """The last word of what is called."""
    return getattr(function, "attr", getattr(function, "id", ""))


def offence(module, room, file):
    """Why a file may not import a module; empty if it may."""
    top, *rest = module.split(".")
    if top in ("jaxgate", "workloads"):
        target = top if top == "workloads" else (rest[0] if rest and rest[0] in ROOMS else "the package")
        return "" if target in ROOMS[room] else f"{room or 'jaxgate'} must not import {target}"
    may_jax = room in ("observe", "workloads") or file.as_posix() == "src/jaxgate/plugin/functions.py"
    if top in ("jax", "jaxlib", "flax", "optax") and not may_jax:
        return "only observe and plugin/functions.py import JAX"
    if top in ("pytest", "_pytest", "pluggy", "pytest_benchmark") and room != "plugin":
        return "only plugin imports pytest"
    if room in PURE and module not in PLAIN and (top == "numpy" or top in WORLD):
        return f"{room} computes from its arguments alone"
    return ""


def violations(root, file):
    """What is wrong in one file, as ``file:line: module: reason``."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    room = room_of(file)
    found = []
    for module, line in imports(tree, file):
        reason = offence(module, room, file)
        if reason:
            found.append(f"{file.as_posix()}:{line}: {module}: {reason}")
    if room in PURE:
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) in TOUCHES]
        found += [
            f"{file.as_posix()}:{node.lineno}: {_name(node.func)}(): {room} touches no files, asks no clock"
            for node in calls
        ]
    return found


def files(root=REPOSITORY):
    """Every file that has a room."""
    paths = [*(root / "src/jaxgate").rglob("*.py"), *(root / "workloads").rglob("*.py")]
    return sorted(path.relative_to(root) for path in paths)


def test_every_folder_is_a_room():
    """A new folder needs arrows of its own, and no room has vanished."""
    assert {room_of(file) for file in files()} == set(ROOMS)


@pytest.mark.parametrize("file", files(), ids=lambda file: file.as_posix().removeprefix("src/"))
def test_no_arrow_is_forbidden(file):
    """The file imports only what its room may."""
    assert violations(REPOSITORY, file) == []


PLANTS = [
    ("model/numbers.py", "import jax", "jax"),
    ("model/numbers.py", "from jax import numpy as jnp", "jax.numpy"),
    ("model/numbers.py", "import numpy as np", "numpy"),
    ("model/workload.py", "from jaxgate.judge import judge", "jaxgate.judge.judge"),
    ("model/workload.py", "from ..keep import atomic", "jaxgate.keep.atomic"),
    ("model/workload.py", "from jaxgate import Case", "jaxgate.Case"),
    ("model/baseline.py", "import time", "time"),
    ("model/baseline.py", "from os import environ", "os.environ"),
    ("model/baseline.py", "TEXT = Path('x').read_text()", "read_text()"),
    ("judge/verdict.py", "from jaxgate.observe.measure import observe", "jaxgate.observe.measure.observe"),
    ("judge/verdict.py", "from jaxgate import observe", "jaxgate.observe"),
    ("judge/verdict.py", "from .. import observe", "jaxgate.observe"),
    ("judge/verdict.py", "import jaxgate.keep.baselines as kept", "jaxgate.keep.baselines"),
    ("judge/policy.py", "import pytest", "pytest"),
    ("judge/policy.py", "import datetime", "datetime"),
    ("judge/policy.py", "from datetime import datetime", "datetime.datetime"),
    ("judge/ageing.py", "TODAY = date.today()", "today()"),
    ("judge/policy.py", "FILE = open('x')", "open()"),
    ("judge/facts.py", "def late():\n    import numpy.linalg", "numpy.linalg"),
    ("judge/facts.py", "if TYPE_CHECKING:\n    from jaxgate.keep.baselines import BaselineStore", "jaxgate.keep"),
    ("judge/facts.py", "import importlib\nimportlib.import_module('jax')", "jax"),
    ("judge/facts.py", "__import__('jaxgate.' + 'keep')", "jaxgate.somewhere"),
    ("observe/measure.py", "from jaxgate.judge.policy import POLICIES", "jaxgate.judge.policy.POLICIES"),
    ("observe/measure.py", "from jaxgate.keep.references import ReferenceCache", "jaxgate.keep"),
    ("observe/measure.py", "import pytest", "pytest"),
    ("keep/baselines.py", "import jax", "jax"),
    ("keep/baselines.py", "from jaxgate.observe.surroundings import environment", "jaxgate.observe"),
    ("keep/provenance.py", "from jaxgate.plugin.options import Settings", "jaxgate.plugin"),
    ("report/text.py", "from jaxgate.judge import judge", "jaxgate.judge"),
    ("report/text.py", "import jaxlib.xla_client", "jaxlib"),
    ("plugin/gate.py", "import jax", "jax"),
    ("plugin/hooks.py", "from workloads import scan", "workloads.scan"),
    ("__init__.py", "from jaxgate.plugin import catalogue", "jaxgate.plugin.catalogue"),
    ("__init__.py", "import jax", "jax"),
]
OUTSIDE = [
    ("scan/rnn.py", "from jaxgate import Case", "jaxgate.Case"),
    ("scan/rnn.py", "import jaxgate", "jaxgate"),
    ("scan/rnn.py", "from jaxgate.plugin import catalogue", "jaxgate.plugin.catalogue"),
    ("scan/rnn.py", "from jaxgate.observe.measure import observe", "jaxgate.observe"),
    ("scan/rnn.py", "import pytest", "pytest"),
]
ALL = [(f"src/jaxgate/{file}", *rest) for file, *rest in PLANTS]
ALL += [(f"workloads/{file}", *rest) for file, *rest in OUTSIDE]


@pytest.mark.parametrize(
    ("file", "statement", "module"),
    ALL,
    ids=lambda part: None if part is None else part.removeprefix("src/").replace("\n", " "),
)
def test_a_planted_arrow_is_seen(tmp_path, file, statement, module):
    """One forbidden statement, anywhere in a file, is found with its line; the rest of the file stays clean."""
    copy = tmp_path / file
    copy.parent.mkdir(parents=True)
    shutil.copy(REPOSITORY / file, copy)
    assert violations(tmp_path, Path(file)) == []
    text = copy.read_text(encoding="utf-8") + "\n" + statement + "\n"
    copy.write_text(text, encoding="utf-8")
    (found,) = violations(tmp_path, Path(file))
    assert found.startswith(f"{file}:{len(text.splitlines())}: {module}")


def test_a_file_outside_the_rooms_is_seen(tmp_path):
    """A new folder beside the rooms does not escape."""
    stray = tmp_path / "src/jaxgate/extra/tools.py"
    stray.parent.mkdir(parents=True)
    stray.write_text("import jax\n")
    (tmp_path / "workloads").mkdir()
    assert {room_of(file) for file in files(tmp_path)} == {"extra"}
    assert "extra" not in ROOMS
