"""Build what is published, and try it as a stranger would: sdist and wheel, twice, in bare environments; and a conda package.

Usage: python -m ci.package [--out DIR] [PYTHON ...]   (interpreters to try it on; default: this one; a minute each)

The tools come from requirements/package.txt, into an environment of their own. A line for each thing that was tried; the first
that fails ends it with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[1]
MOST_BYTES = 2_000_000
"""Of the sdist."""
CONDA_NAMES = {"flatbuffers": "python-flatbuffers"}
"""Of packages that conda calls otherwise."""
_TEST = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(*command: object, folder: Path, **environment: str) -> str:
    """Run a command with nothing of this environment but pip's settings; gives what it printed.

    Raises:
        SystemExit: If it fails.
    """
    words = list(map(str, command))
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)}
    keep = {name: value for name, value in _settings().items() if name not in path}
    done = subprocess.run(
        words, cwd=folder, env={**keep, **path, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _settings() -> dict[str, str]:
    """Where packages come from, as pip was told."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_", "REQUESTS_"))}


def build(tools: Path, source: Path, out: Path) -> list[Path]:
    """Build an sdist, and a wheel out of it; both are the same whenever they are built."""
    moment = run("git", "-C", REPOSITORY, "log", "-1", "--format=%ct", folder=out).strip()
    run(tools / "python", "-m", "build", "--no-isolation", "-o", out, source, folder=out, SOURCE_DATE_EPOCH=moment)
    return sorted(out.glob("jaxgate-*"))


def first_test() -> str:
    """The complete test of the README's first recipe."""
    found = _TEST.search((REPOSITORY / "docs" / "recipes.md").read_text(encoding="utf-8"))
    assert found is not None, "docs/recipes.md begins with a test"
    return found[1]


def five_commands(python: Path, wheel: Path, folder: Path) -> str:
    """The README's commands with the wheel in the place of a path; gives the last run's line of the case."""
    venv_python = folder / ".venv" / "bin" / "python"
    run(python, "-m", "venv", ".venv", folder=folder)
    run(venv_python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, folder=folder)
    (folder / "test_train.py").write_text(first_test(), encoding="utf-8")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
    run(*git, "init", "--quiet", folder=folder)
    (folder / ".gitignore").write_text(".venv/\n__pycache__/\n", encoding="utf-8")
    run(venv_python, "-m", "pytest", "--perf-update", "--perf-why", "first baselines", folder=folder)
    run(*git, "add", ".gitignore", "test_train.py", "baselines", folder=folder)
    run(*git, "commit", "--quiet", "-m", "Gate the train step", folder=folder)
    said = run(venv_python, "-m", "pytest", folder=folder, CI="true")
    line = next((line for line in said.splitlines() if line.startswith("SAME")), "")
    if not line:
        sys.exit(f"expected a line SAME, found:\n{said}")
    run(venv_python.with_name("jaxgate"), "doctor", folder=folder)
    return line


def conda_package(tools: Path, wheel: Path, out: Path) -> Path:
    """Make a conda package out of the wheel, without conda; it must have the wheel's files, and need as much.

    Raises:
        SystemExit: If it does not.
    """
    convert = (tools / "whl2conda", "convert", wheel, "--out-dir", out, "--quiet", "--format")
    run(*convert, "tree", folder=out)
    (tree,) = out.glob("jaxgate-*-py_0")
    made = {file.relative_to(tree / "site-packages").as_posix() for file in tree.glob("site-packages/jaxgate/**/*.*")}
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        wanted = HeaderParser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist", [])
    if made != {name for name in names if name.startswith("jaxgate/")}:
        sys.exit("the conda package has other files than the wheel")
    needs = json.loads((tree / "info" / "index.json").read_text(encoding="utf-8"))["depends"]
    asked = {canonicalize_name(Requirement(one).name) for one in wanted if "extra ==" not in one}
    named = {canonicalize_name(one.split()[0]) for one in needs}
    if named != {"python", *(CONDA_NAMES.get(name, name) for name in asked)}:
        sys.exit(f"the conda package needs {', '.join(needs)}; the wheel {', '.join(wanted)}")
    run(*convert, "V2", folder=out)
    return next(out.glob("jaxgate-*.conda"))


def main(arguments: Sequence[str]) -> None:
    """Build, compare, check, install, run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="leave them there")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", default=[sys.executable])
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        here = Path(name)
        venv.create(here / "tools", with_pip=True)
        tools = here / "tools" / "bin"
        pins = REPOSITORY / "requirements" / "package.txt"
        run(tools / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", pins, folder=here)
        folders = [here / "first", here / "second"]
        for folder in folders:
            folder.mkdir()
        sdist, wheel = reversed(build(tools, REPOSITORY, folders[0]))
        with tarfile.open(sdist) as archive:
            archive.extractall(here / "unpacked", filter="data")
        (unpacked,) = (here / "unpacked").iterdir()
        again = list(reversed(build(tools, unpacked, folders[1])))
        for one, other in zip((sdist, wheel), again, strict=True):
            size = one.stat().st_size
            if one.read_bytes() != other.read_bytes():
                sys.exit(f"{one.name} is another one when it is built again out of the sdist")
            print(f"{one.name}: {size:,} bytes, and the same bytes when it is built again out of the sdist")
        if sdist.stat().st_size > MOST_BYTES:
            sys.exit(f"{sdist.name}: expected at most {MOST_BYTES:,} bytes")
        run(tools / "python", "-m", "twine", "check", "--strict", sdist, wheel, folder=here)
        run(tools / "check-wheel-contents", wheel, folder=here)
        print("twine and check-wheel-contents find nothing")
        conda = conda_package(tools, wheel, here)
        print(f"{conda.name}: {conda.stat().st_size:,} bytes, the wheel's files and what it needs")
        for number, python in enumerate(asked.pythons):
            project = here / f"project{number}"
            project.mkdir()
            print(f"{python}: {five_commands(Path(python), wheel, project)}", flush=True)
        if asked.out:
            asked.out.mkdir(parents=True, exist_ok=True)
            for one in (sdist, wheel, conda):
                shutil.copy(one, asked.out)


if __name__ == "__main__":
    main(sys.argv[1:])
