"""The arrows between the rooms of the code, read from its import statements."""

import ast
import shutil
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from support.paths import REPOSITORY

BASIS = {"settings", "model", "observe", "judge", "keep", "report"}
"""The rooms that each do one thing; what follows puts them together."""
ROOMS = {
    "settings": {"settings"},
    "model": {"settings", "model"},
    "observe": {"settings", "model", "observe"},
    "judge": {"model", "judge"},
    "keep": {"model", "keep"},
    "report": {"model", "report"},
    "processes": BASIS | {"processes"},
    "engine": BASIS | {"processes", "engine"},
    "plugin": BASIS | {"processes", "engine", "plugin"},
    "cli": BASIS | {"processes", "engine", "plugin", "cli"},
    "": {"settings", "model", "engine", "observe", "plugin"},  # what ``import jaxgate`` offers
    "workloads": {"the package", "model", "workloads"},
}
"""Which rooms each room may import."""

ROLES = {
    "model": "history/drift",
    "observe": "growth/probe loop/held loop/moves loop/resume loop/watch energy/counters energy/nvml_counter energy/rapl_counter energy/run opinion/agreement opinion/ask opinion/interpreter watch/gates watch/recorder "
    "opinion/traits profile/capture profile/op_names profile/programs profile/xplane ranks/job start/watch "
    "repro/anonymous repro/flat repro/jax_code repro/modules repro/server "
    "repro/standalone targets/compiled targets/compilers targets/interface targets/topology",
    "judge": "history/chain profile/operations ranks/merge upgrade/launches doctor/checkup shards/merge",
    "keep": "store/shelf upgrade/notes history/store history/saved_runs profile/scalars",
    "report": "page/document page/blocks page/drawing page/curves page/cases page/run_page history/page diff/page profile/table",
    "processes": "bisect/ranges bisect/revisions opinion/process profile/worker "
    "repro/compile_server targets/process times/sessions upgrade/environment upgrade/environment_runs "
    "ranks/again ranks/barrier ranks/case ranks/peers upgrade/runs upgrade/venv",
    "engine": "history/changes bisect/search diff/sides history/budget history/stored opinion/case profile/evidence repro/delta_debugging "
    "repro/oracles repro/program_pair repro/reduction times/case",
    "plugin": "loop/gate ranks/gate start/gate ranks/plugin targets/gate upgrade/child upgrade/plugin shards/plugin watch/watcher history/terminal opinion/terminal",
    "cli": "check/github targets/runs repro/file",
}
"""Which room's rules a module of a capability in ``ext/`` keeps, where its name does not say so."""
BY_NAME = {
    "model": "model", "judge": "judge", "text": "report", "command": "cli", "run": "cli", "mode": "plugin",
    "kept": "keep", "check": "engine", "ending": "engine", "pages": "report",
}  # fmt: skip
ROLE = {name: role for role, names in ROLES.items() for name in names.split()}

WRITERS = {"keep", "processes", "src/jaxgate/ext/profile/capture.py", "workloads/__main__.py"}
"""Who writes to disk; a profile is written by JAX itself, and not all of its files are wanted. The last writes the
catalogue's page in this repository."""
WRITES = {"write_text", "write_bytes", "unlink", "rmdir", "rmtree", "touch", "rename", "opened to write"}

READS = {
    "read_text", "read_bytes", "open", "fdopen", "fromfile", "memmap", "ZipFile", "GzipFile", "LZMAFile",
    "decompress",
}  # fmt: skip
OWN = {"read_text", "read_bytes"}
"""What ``keep/files.py`` calls its functions; those of a path are methods."""
LIBRARIES = {"np", "numpy", "json", "tomllib", "pickle", "marshal"}
"""Their ``load`` reads a file; that of a store is ours."""
EXCUSED = {
    "src/jaxgate/keep/files.py": "the one that reads",
    "src/jaxgate/keep/duel_handoff.py": "bytes that were read already",
    "src/jaxgate/keep/machine.py": "/proc",
    "src/jaxgate/ext/energy/rapl_counter.py": "/sys",
    "src/jaxgate/observe/machine/process.py": "/sys",
    "src/jaxgate/observe/machine/environment.py": "/proc",
    "src/jaxgate/observe/machine/load.py": "/proc and /sys",
    "src/jaxgate/observe/program/custom_call_libraries.py": "/proc, and libraries that this process has loaded",
    "src/jaxgate/ext/check/github.py": "what GitHub answers",
    "src/jaxgate/ext/repro/standalone.py": "the payload that stands in its own file",
    "src/jaxgate/observe/trace/clocks.py": "/proc",
    "src/jaxgate/plugin/xdist/devices.py": "/sys",
    "src/jaxgate/ext/upgrade/venv.py": "the metadata of what is installed here",
    "src/jaxgate/ext/profile/worker.py": "the pipe from the process that started it",
}
"""Who reads anything else than through ``keep/files.py``, and what: nothing that a pull request could have written."""

MOST = 25
"""Modules of a folder, its face with them."""
PURE = {"settings", "model", "judge"}
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
    if parts[2] == "ext":
        return role_of(parts[3:])
    return parts[2].removesuffix(".py") if len(parts) > 3 or parts[2] == "settings.py" else ""


def role_of(parts):
    """The room whose rules a module of a capability keeps: ``("energy", "run.py")`` or ``("energy", "run", …)``."""
    if len(parts) < 2 or parts[1] == "__init__.py":
        return "model"  # a docstring
    name = parts[1].removesuffix(".py")
    return ROLE.get(f"{parts[0]}/{name}") or BY_NAME.get(name, f"ext/{parts[0]}/{name}")


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
            if file.as_posix() != "src/jaxgate/ext/__init__.py":  # it finds capabilities by their names
                yield (target.value if known else "jaxgate.somewhere", node.lineno)


def _name(function):
    """The last word of what is called."""
    return getattr(function, "attr", getattr(function, "id", ""))


def offence(module, room):
    """Why a file may not import a module; empty if it may."""
    top, *rest = module.split(".")
    if top in ("jaxgate", "workloads"):
        if rest[:1] == ["ext"]:
            target = role_of(rest[1:])
        else:
            target = top if top == "workloads" else (rest[0] if rest and rest[0] in ROOMS else "the package")
        return "" if target in ROOMS[room] else f"{room or 'jaxgate'} must not import {target}"
    if top in ("jax", "jaxlib", "flax", "optax") and room not in ("observe", "workloads"):
        return "only observe imports JAX"
    if top in ("pytest", "_pytest", "pluggy", "pytest_benchmark") and room != "plugin":
        return "only plugin imports pytest"
    if room in PURE and module not in PLAIN and (top == "numpy" or top in WORLD):
        return f"{room} computes from its arguments alone"
    return ""


def modules(root=REPOSITORY):
    """Every module of the engine: its dotted name, and the package that it lies in."""
    source = root / "src"
    found = {}
    for path in (source / "jaxgate").rglob("*.py"):
        parts = path.relative_to(source).with_suffix("").parts
        package = ".".join(parts[:-1])
        found[package if parts[-1] == "__init__" else ".".join(parts)] = package
    return found


MODULES = modules()


def module_of(name, known):
    """The module that an import statement reaches: the longest part of its dotted name that is one."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


def violations(root, file):
    """What is wrong in one file, as ``file:line: module: reason``."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    room = room_of(file)
    found = []
    for module, line in imports(tree, file):
        reason = offence(module, room)
        if reason:
            found.append(f"{file.as_posix()}:{line}: {module}: {reason}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            reason = called("opened to write" if opens_to_write(node) else _name(node.func), room, file)
            what = "opened to write" if opens_to_write(node) else f"{_name(node.func)}()"
            found += [f"{file.as_posix()}:{node.lineno}: {what}: {reason}"] if reason else []
            if reads(node) and room not in PURE and file.as_posix() not in EXCUSED and room != "workloads":
                found.append(f"{file.as_posix()}:{node.lineno}: {what}: only keep/files.py reads files")
        if isinstance(node, ast.List) and file.name != "git.py" and _begins_with_git(node):
            found.append(f"{file.as_posix()}:{node.lineno}: git: only keep/git.py makes commands of git")
        if isinstance(node, ast.Constant) and node.value in MODULES and node.value != "jaxgate" and room != "processes":
            found.append(f"{file.as_posix()}:{node.lineno}: {node.value}: only processes starts a process of ours")
    return found


def opens_to_write(call):
    """Whether a call opens a file to write it."""
    place = 1 if isinstance(call.func, ast.Name) else 0  # ``open(path, mode)``, ``path.open(mode)``
    modes = [*call.args[place : place + 1], *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [node.value for node in modes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return _name(call.func) == "open" and any(set(text) & set("wax") for text in texts)


def reads(call):
    """Whether a call reads a file, or unpacks what was read."""
    name, owner = _name(call.func), getattr(getattr(call.func, "value", None), "id", "")
    own = name in OWN and isinstance(call.func, ast.Name)
    return (name in READS and not own and not opens_to_write(call)) or (name == "load" and owner in LIBRARIES)


def _begins_with_git(command):
    first = command.elts[0] if command.elts else None
    return isinstance(first, ast.Constant) and first.value == "git"


def called(name, room, file):
    """Why a room may not call a function; empty if it may."""
    if room in PURE and name in TOUCHES:
        return f"{room} touches no files, asks no clock"
    if name in WRITES and room not in WRITERS and file.as_posix() not in WRITERS:
        return "only keep writes to disk, and processes where it makes a folder for a process"
    return ""


def circle(root=REPOSITORY):
    """The modules of a circle of imports, wherever the statements stand; none if there is none."""
    known, graph = modules(root), {}
    for file in files(root):
        if file.parts[0] != "src":
            continue
        parts = file.relative_to("src").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found = {module_of(module, known) for module, _ in imports(ast.parse((root / file).read_text()), file)}
        graph[name] = found - {"", name, "jaxgate"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def files(root=REPOSITORY):
    """Every file that has a room."""
    catalogue = [
        path for path in (root / "workloads").rglob("*.py") if path.parent.name != "contrast"
    ]  # a tool, as ci/ is
    paths = [*(root / "src/jaxgate").rglob("*.py"), *catalogue]
    return sorted(path.relative_to(root) for path in paths)


def test_every_excuse_is_needed():
    """A file that reads no longer, or is gone, has none."""
    calls = {
        name: [node for node in ast.walk(ast.parse((REPOSITORY / name).read_text())) if isinstance(node, ast.Call)]
        for name in EXCUSED
    }
    assert [name for name in EXCUSED if not any(map(reads, calls[name]))] == []


def test_every_folder_is_a_room():
    """A new folder needs arrows of its own, and no room has vanished."""
    assert {room_of(file) for file in files()} == set(ROOMS)


JOINTS = {
    "energy": "engine/duels/baseline_duel engine/instruments engine/run/ending judge/verdict model/measurement "
    "model/verdict observe/measure_calls observe/observation observe/tools plugin/benchmark_rows "
    "report/results report/text",
    "growth": "__init__ ext/loop/gate judge/causes/suspects judge/verdict model/computation model/measurement model/verdict "
    "observe/arguments/function_case observe/measure report/results report/text",
    "loop": "plugin/hooks",
    "start": "plugin/hooks",
    "watch": "plugin/hooks",
    "history": "cli/pytest_arguments engine/instruments engine/run/ending engine/run/orphans engine/run/session ext/diff/command "
    "ext/diff/judge ext/diff/model ext/diff/sides keep/waivers model/verdict plugin/gating_run report/pull_request report/results "
    "report/text",
    "opinion": "engine/instruments engine/run/session ext/repro/compile_server ext/repro/oracles ext/repro/reduction ext/repro/run judge/verdict "
    "model/verdict",
    "page": "ext/diff/page ext/diff/command ext/history/command ext/history/page ext/targets/runs",
    "pages": "engine/run/result_files ext/shards/command",
    "parts": "cli/main engine/run/ending engine/run/result_files plugin/gating_run plugin/options/kinds",
    "profile": "engine/instruments engine/run/session model/outcome model/verdict report/case_page report/text",
    "targets": "cli/gate engine/instruments engine/run/session keep/baselines model/chips model/workload "
    "observe/hlo/demand observe/measure observe/observation observe/tools plugin/gate plugin/gating_run",
    "store": "keep/programs",
    "times": "engine/repeats engine/run/session plugin/modes/trim",
    "upgrade": "engine/run/session ext/bisect/ranges ext/bisect/revisions ext/bisect/run plugin/gating_run "
    "plugin/terminal",
}
"""Which modules of the core, or of another capability, know one. One that is gone is taken out; a new one is a decision."""


def joints():
    """What imports a capability from outside it, by capability."""
    found = {}
    for file in files():
        inside = file.parts[3] if file.parts[2:3] == ("ext",) else ""
        for module, _ in imports(ast.parse((REPOSITORY / file).read_text(encoding="utf-8")), file):
            top, *rest = module.split(".")
            if top == "jaxgate" and rest[:1] == ["ext"] and rest[1] != inside:
                found.setdefault(rest[1], set()).add("/".join(file.parts[2:]).removesuffix(".py"))
    return found


def test_the_core_knows_few_capabilities():
    """A capability is one folder; each import of it from outside stands above, and there are only fewer."""
    assert joints() == {capability: set(known.split()) for capability, known in JOINTS.items()}


def test_no_package_hands_on_names_of_its_modules():
    """A name has one place; what users import stands in ``jaxgate/__init__.py``, and ``catalogue`` in the plugin's."""
    faces = [file for file in files() if file.name == "__init__.py" and file.parts[0] == "src"]
    more = [
        file.as_posix() for file in faces if len(ast.parse((REPOSITORY / file).read_text(encoding="utf-8")).body) > 1
    ]
    assert more == ["src/jaxgate/__init__.py", "src/jaxgate/ext/__init__.py", "src/jaxgate/plugin/__init__.py"]


def test_no_folder_is_too_long_to_look_over():
    """A folder of more modules holds two things, and is divided."""
    counts = Counter(file.parent.as_posix() for file in files())
    assert {folder: count for folder, count in counts.items() if count > MOST} == {}


@pytest.mark.parametrize("file", files(), ids=lambda file: file.as_posix().removeprefix("src/"))
def test_no_arrow_is_forbidden(file):
    assert violations(REPOSITORY, file) == []


def test_nothing_imports_itself_around_a_corner():
    """No circle of imports, not even through ``TYPE_CHECKING`` or inside a function."""
    assert circle() == []


PLANTS = [
    ("model/numbers.py", "import jax", "jax"),
    ("model/numbers.py", "import numpy as np", "numpy"),
    ("model/workload.py", "from jaxgate.judge.verdict import judge", "jaxgate.judge.verdict.judge"),
    ("model/workload.py", "from ..keep import atomic", "jaxgate.keep.atomic"),
    ("model/baseline.py", "import time", "time"),
    ("model/baseline.py", "TEXT = Path('x').read_text()", "read_text()"),
    ("judge/verdict.py", "from jaxgate.observe.measure import observe", "jaxgate.observe.measure.observe"),
    ("judge/verdict.py", "from jaxgate import observe", "jaxgate.observe"),
    ("judge/verdict.py", "from .. import observe", "jaxgate.observe"),
    ("judge/policy.py", "import pytest", "pytest"),
    ("judge/policy.py", "from datetime import datetime", "datetime.datetime"),
    ("judge/ageing.py", "TODAY = date.today()", "today()"),
    ("judge/facts.py", "def late():\n    import numpy.linalg", "numpy.linalg"),
    ("judge/facts.py", "if TYPE_CHECKING:\n    from jaxgate.keep.baselines import BaselineStore", "jaxgate.keep"),
    ("judge/facts.py", "import importlib\nimportlib.import_module('jax')", "jax"),
    ("judge/facts.py", "__import__('jaxgate.' + 'keep')", "jaxgate.somewhere"),
    ("observe/measure.py", "from jaxgate.judge.policy import POLICIES", "jaxgate.judge.policy.POLICIES"),
    ("keep/git.py", "from jaxgate.settings import Settings", "jaxgate.settings"),
    ("report/text.py", "import jaxlib.xla_client", "jaxlib"),
    ("plugin/hooks.py", "from workloads import scan", "workloads.scan"),
    ("engine/run/gate_cost.py", "from jaxgate.plugin.usage import usage_errors", "jaxgate.plugin.usage.usage_errors"),
    ("engine/run/gate_cost.py", "Path('x').write_text('y')", "write_text()"),
    ("engine/run/gate_cost.py", "Path('x').open('a')", "opened to write"),
    ("report/text.py", "FILE = open('x', mode='wb')", "opened to write"),
    ("plugin/gate.py", "Path('x').rename('y')", "rename()"),
    ("keep/baselines.py", "TEXT = Path('x').read_text()", "read_text()"),
    ("ext/times/kept.py", "FILE = open('x', 'rb')", "open()"),
    ("keep/programs.py", "import gzip\ngzip.decompress(b'')", "decompress()"),
    ("keep/programs.py", "from zipfile import ZipFile\nZipFile('x')", "ZipFile()"),
    ("cli/gate.py", "import json\njson.load(FILE)", "load()"),
    ("engine/run/gate_cost.py", "import numpy as np\nnp.load('x')", "load()"),
    ("cli/record.py", "COMMAND = ['git', 'status']", "git"),
    ("engine/run/gate_cost.py", "RUN = ['-m', 'jaxgate.processes.duel_worker']", "jaxgate.processes.duel_worker"),
    ("processes/child.py", "if TYPE_CHECKING:\n    import pytest", "pytest"),
    ("ext/ranks/barrier.py", "from jaxgate.engine import Progress", "jaxgate.engine"),
    ("plugin/gate.py", "from jaxgate.cli import gate", "jaxgate.cli"),
    ("__init__.py", "import jax", "jax"),
    ("__init__.py", "from jaxgate.judge.timing.duel import decide", "jaxgate.judge.timing.duel.decide"),
]
OUTSIDE = [
    ("scan/rnn.py", "from jaxgate.settings import Settings", "jaxgate.settings"),
    ("scan/rnn.py", "from jaxgate.plugin import catalogue", "jaxgate.plugin.catalogue"),
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


@pytest.mark.parametrize("how", ["from jaxgate.judge.facts import late", "if 1:\n    import jaxgate.judge.facts"])
def test_a_planted_circle_is_seen(tmp_path, how):
    """Two modules that import each other, one of them late."""
    folder = tmp_path / "src/jaxgate/judge"
    folder.mkdir(parents=True)
    (tmp_path / "workloads").mkdir()
    (tmp_path / "src/jaxgate/__init__.py").touch()
    (folder / "__init__.py").touch()
    (folder / "policy.py").write_text(how + "\n")
    (folder / "facts.py").write_text("def late():\n    from jaxgate.judge import policy\n")
    assert {"jaxgate.judge.facts", "jaxgate.judge.policy"} <= set(circle(tmp_path))


def test_a_file_outside_the_rooms_is_seen(tmp_path):
    """A new folder beside the rooms does not escape."""
    stray = tmp_path / "src/jaxgate/extra/tools.py"
    stray.parent.mkdir(parents=True)
    stray.write_text("import jax\n")
    (tmp_path / "workloads").mkdir()
    assert {room_of(file) for file in files(tmp_path)} == {"extra"}
    assert "extra" not in ROOMS
