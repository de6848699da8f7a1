"""An interpreter that has what was asked of the other environment.

A requirement is installed into a virtual environment of its own, made once and kept; all other packages come
from this one, at the versions that they have here.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jaxgate.model import UsageError
from jaxgate.processes.child import run_child
from jaxgate.processes.environment_spec import OPTION, EnvironmentSpec, interpreter

_FAMILY = re.compile(r"jax|jaxlib|libtpu|jax-cuda\d+-(plugin|pjrt)|jax-rocm\d*-(plugin|pjrt)")
"""Released together: a requirement for one of them frees all."""

_PROBE = """
import importlib.metadata as m, json, sys
from importlib.util import find_spec
def seen(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return None
packages = sys.argv[1].split()
missing = [n for n in ("jax", "pytest", "pytest_benchmark", "jaxgate") if find_spec(n) is None]
unknown = []
if not missing and sys.argv[2:]:
    import jax
    unknown = [n for n in sys.argv[2:] if not hasattr(jax.config, n)]
found = None if "jaxgate" in missing else m.version("jaxgate")
print(json.dumps({"missing": missing, "unknown": unknown, "jaxgate": found, "seen": {n: seen(n) for n in packages}}))
"""


def prepare_environment(asked: EnvironmentSpec, cache: Path, environ: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    """Make the other environment ready.

    Args:
        asked: What the user asked for.
        cache: Folder that keeps environments made for requirements.
        environ: The environment variables to start from.

    Returns:
        Its interpreter, and the environment variables for its processes.

    Raises:
        UsageError: If it cannot be made, or lacks what a recording needs.
    """
    python = asked.python or (_install(asked.requirements, cache) if asked.requirements else Path(sys.executable))
    variables = {**environ, **asked.variables}
    if asked.flags:
        variables["XLA_FLAGS"] = " ".join([variables.get("XLA_FLAGS", ""), *asked.flags]).strip()
    _check(python, variables, asked)
    return python, variables


def _check(python: Path, variables: Mapping[str, str], asked: EnvironmentSpec) -> None:
    """Refuse an environment that cannot record, and settings that would do nothing."""
    wanted = [Requirement(item) for item in asked.requirements]
    command = [str(python), "-c", _PROBE, " ".join(one.name for one in wanted), *asked.settings]
    done = run_child(command, variables=variables)
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        raise UsageError(f"{OPTION}: {python} does not start: {done.last_words}") from None
    here = version("jaxgate")
    if found["missing"]:
        names = " ".join(found["missing"]).replace("_", "-")
        raise UsageError(f"{OPTION}: it lacks {names}; install: {python} -m pip install {names}")
    if found["jaxgate"] != here:
        raise UsageError(f"{OPTION}: expected jaxgate {here} there, found {found['jaxgate']}; install the same")
    for one in wanted:
        version_there = found["seen"][one.name]
        if version_there is None or not one.specifier.contains(version_there, prereleases=True):
            raise UsageError(f"{OPTION}: asked for {one}, found {version_there} there; is another on PYTHONPATH?")
    if found["unknown"]:
        raise UsageError(f"{OPTION}: jax there has no setting {', '.join(found['unknown'])}")


def _install(requirements: Sequence[str], cache: Path) -> Path:
    """Make a virtual environment with some packages exchanged; use the one made before if nothing changed."""
    freed: set[str] = {canonicalize_name(Requirement(item).name) for item in requirements}
    if any(_FAMILY.fullmatch(name) for name in freed):
        freed |= {name for name in _installed() if _FAMILY.fullmatch(name)}
    pins = sorted(f"{name}=={number}" for name, number in _installed().items() if name not in freed)
    key = hashlib.blake2b("\n".join([sys.version, sys.prefix, *requirements, *pins]).encode(), digest_size=8)
    folder = cache / key.hexdigest()
    if folder.exists() and all(_is_exact(Requirement(item)) for item in requirements):
        return interpreter(folder)
    shutil.rmtree(folder, ignore_errors=True)  # "the newest", or a file: another one by now, perhaps
    cache.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix="making-", dir=cache))
    try:
        _step([sys.executable, "-m", "venv", str(aside)], requirements)
        (aside / "pins.txt").write_text("\n".join(pins) + "\n")
        python = interpreter(aside)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(aside / "pins.txt")]
        _step([str(python), *install, *requirements], requirements)
        rest = sysconfig.get_path("purelib")
        own = _step([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], requirements)
        Path(own.strip(), "all_else.pth").write_text(f"import site; site.addsitedir({rest!r})\n")
        aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return interpreter(folder)


def _is_exact(requirement: Requirement) -> bool:
    """Whether it means the same package at any time."""
    exact = [one.operator in ("==", "===") and "*" not in one.version for one in requirement.specifier]
    return not requirement.url and any(exact)


def _step(command: Sequence[str], requirements: Sequence[str]) -> str:
    """Run one step; gives what it printed."""
    done = run_child(command)
    if done.status:
        output = (done.stderr or done.stdout).splitlines()
        lines = [line for line in output if line.startswith("ERROR")] or output
        tail = "\n".join(lines[-3:])
        raise UsageError(f"{OPTION}: {', '.join(requirements)} cannot be installed:\n{tail}")
    return done.stdout


def _installed() -> dict[str, str]:
    found: dict[str, str] = {}
    for one in distributions():
        if one.metadata["Name"] and not _is_local(one.read_text("direct_url.json")):
            found.setdefault(canonicalize_name(one.metadata["Name"]), one.version)
    return found


def _is_local(direct_url: str | None) -> bool:
    """Whether a package was installed from a folder: no index has it, and no pin would find it."""
    return direct_url is not None and json.loads(direct_url).get("url", "").startswith("file:")
