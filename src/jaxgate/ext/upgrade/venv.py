"""An interpreter that has what was asked of the other environment, or which Python would do where there is no release for this one.

A requirement is installed into a virtual environment of its own, made once and kept; all other packages come
from this one, at the versions that they have here. Of another Python, which cannot use them, all are installed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import Distribution, distributions, metadata, version
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from jaxgate.ext.upgrade.environment import EnvironmentSpec, interpreter
from jaxgate.model.outcome import UsageError
from jaxgate.processes.child import Finished, run_child

_IGNORED = re.compile(r"([\w.!+-]+) Requires-Python ([^;\n]+)")
"""A version that pip passed over, and the Pythons that it is for."""
_MINORS = range(8, 40)


def why_other_python(
    requirements: Sequence[str], complaint: str, which: Callable[[str], str | None] = shutil.which
) -> str:
    """Say that a requirement is for another Python, from what pip complained of; empty if that is not it."""
    passed_over = _IGNORED.findall(complaint)
    for item in requirements:
        try:
            wanted = Requirement(item)
        except InvalidRequirement:
            continue
        if wanted.url or f"No matching distribution found for {wanted.name}" not in complaint:
            continue
        fits = [pythons for number, pythons in passed_over if wanted.specifier.contains(number, prereleases=True)]
        if fits:
            return _described(item, fits[-1].strip().rstrip(")"), which)
    return ""


def _described(item: str, pythons: str, which: Callable[[str], str | None]) -> str:
    try:
        allowed = SpecifierSet(pythons) & SpecifierSet(metadata("jaxgate")["Requires-Python"] or "")
    except InvalidSpecifier:
        return f"{item} is for Python {pythons}, and not for {sys.version.split()[0]}"
    names = [f"python3.{minor}" for minor in _MINORS if f"3.{minor}" in allowed]
    there = next(filter(which, names), None)
    said = f"{item} is for Python {pythons}, and this is {sys.version.split()[0]}"
    if there is not None:
        return f"{said}; let another make its environment: jaxgate upgrade {item!r} --python {there}"
    if names:
        return f"{said}; found no {' or '.join(names)} here: install one, and name it with --python"
    return f"{said}; jaxgate runs on none of these"


_FAMILY = re.compile(r"jax|jaxlib|libtpu|jax-cuda\d+-(plugin|pjrt)|jax-rocm\d*-(plugin|pjrt)")
"""Released together: a requirement for one of them frees all."""

_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
_PLACES = re.compile(r"\.(index-url|extra-index-url|find-links|no-index|constraint)=")
"""Settings of pip that say where packages come from, as ``pip config list`` prints them."""
_NOT_FOUND = re.compile(r"No matching distribution found for (\S+)")
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
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
    """Make the other environment ready: its interpreter, and the environment variables for its processes.

    Raises:
        UsageError: If it cannot be made, or lacks what a recording needs.
    """
    python = asked.python or (_install(asked, cache) if asked.requirements else Path(sys.executable))
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
        raise UsageError(f"{python} does not start: {done.last_words}") from None
    here = version("jaxgate")
    if found["missing"]:
        names = " ".join(found["missing"]).replace("_", "-")
        raise UsageError(f"it lacks {names}; install: {python} -m pip install {names}")
    if found["jaxgate"] != here:
        raise UsageError(f"expected jaxgate {here} there, found {found['jaxgate']}; install the same")
    for one in wanted:
        version_there = found["seen"][one.name]
        if version_there is None or not one.specifier.contains(version_there, prereleases=True):
            raise UsageError(f"asked for {one}, found {version_there} there; is another on PYTHONPATH?")
    if found["unknown"]:
        raise UsageError(f"jax there has no setting {', '.join(found['unknown'])}")


def _install(asked: EnvironmentSpec, cache: Path) -> Path:
    """Make a virtual environment with some packages exchanged; use the one made before if nothing changed."""
    requirements = asked.requirements
    freed: set[str] = {canonicalize_name(Requirement(item).name) for item in requirements}
    if any(_FAMILY.fullmatch(name) for name in freed):
        freed |= {name for name in installed_versions() if _FAMILY.fullmatch(name)}
    pins = sorted(f"{name}=={number}" for name, number in installed_versions().items() if name not in freed)
    other = None if asked.base is None else _other_python(asked.base)
    key = hashlib.blake2b("\n".join([sys.version, sys.prefix, *requirements, *pins]).encode(), digest_size=8)
    if other is not None:
        key.update("\n".join([other, str(asked.base), *_local_projects()]).encode())
    folder = cache / key.hexdigest()
    if folder.exists() and all(_is_exact(Requirement(item)) for item in requirements):
        return interpreter(folder)
    shutil.rmtree(folder, ignore_errors=True)  # "the newest", or a file: another one by now, perhaps
    cache.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix="making-", dir=cache))
    try:
        if other is None:
            _lay_over(aside, requirements, pins)
        else:
            _copy(aside, str(asked.base), requirements, pins)
        aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return interpreter(folder)


def _lay_over(folder: Path, requirements: Sequence[str], pins: Sequence[str]) -> None:
    """An environment that has the requirements, and takes all else from this one."""
    python = _new(folder, sys.executable, requirements)
    (folder / "pins.txt").write_text("\n".join(pins) + "\n")
    _told(_add(python, ["-c", str(folder / "pins.txt"), *requirements]), requirements)
    rest = sysconfig.get_path("purelib")
    own = _told(run_child([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]), requirements)
    Path(own.strip(), "all_else.pth").write_text(f"import site; site.addsitedir({rest!r})\n")


def _copy(folder: Path, base: str, requirements: Sequence[str], pins: Sequence[str]) -> None:
    """An environment of another Python, whose packages cannot be this one's: all are installed there.

    First those that are here, at their versions; then the requirements, which move only what does not go with them, as
    ``pip install`` would do here. A version that this other Python does not have is left out; what needs it brings another.
    """
    python, left = _new(folder, base, requirements), list(pins)
    while left:
        (folder / "pins.txt").write_text("\n".join(left) + "\n")
        done = _add(python, ["--no-deps", "-r", str(folder / "pins.txt")])
        if done.status == 0:
            break
        lost = _NOT_FOUND.search(done.stderr)
        if lost is None or lost[1] not in left:  # as they are here is what was promised: the newest of all is no answer
            raise UsageError(
                f"the packages of this environment cannot be installed for {python}:\n{_errors(done)}\n"
                "make that environment yourself, and name its interpreter without a requirement"
            )
        left.remove(lost[1])
    _told(_add(python, [*requirements, *_local_projects()]), requirements, str(python))


def _add(python: Path, arguments: Sequence[str]) -> Finished:
    """Install into an environment: by uv where it is installed, in seconds and as hard links, else by pip.

    uv does not read pip's settings, so pip alone goes where these name another place for packages. What uv cannot install
    is tried by pip, whose words say why not.
    """
    uv = shutil.which("uv")
    if uv and not _PLACES.search(run_child([str(python), "-m", "pip", "config", "list"]).stdout):
        done = run_child([uv, "pip", "install", "--quiet", "--python", str(python), *arguments])
        if done.status == 0:
            return done
    return run_child([str(python), *_PIP, *arguments])


def _new(folder: Path, base: str, requirements: Sequence[str]) -> Path:
    _told(run_child([base, "-m", "venv", str(folder)]), requirements)
    return interpreter(folder)


def _other_python(base: Path) -> str | None:
    """The version of an interpreter; ``None`` if packages of this one serve it."""
    done = run_child([str(base), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    if done.status:
        raise UsageError(f"{base} does not start: {done.last_words}")
    found = done.stdout.strip()
    return None if found == _PYTHON else found


def _is_exact(requirement: Requirement) -> bool:
    """Whether a requirement means the same package at any time."""
    exact = [one.operator in ("==", "===") and "*" not in one.version for one in requirement.specifier]
    return not requirement.url and any(exact)


def _told(done: Finished, requirements: Sequence[str], python: str = sys.executable) -> str:
    """What a step for an interpreter printed."""
    if done.status:
        if other := why_other_python(requirements, done.stderr):
            raise UsageError(other)
        raise UsageError(f"{', '.join(requirements)} cannot be installed for {python}:\n{_errors(done)}")
    return done.stdout


def _errors(done: Finished) -> str:
    output = (done.stderr or done.stdout).splitlines()
    lines = [line for line in output if line.startswith("ERROR")] or output
    return "\n".join(lines[-3:])


def installed_versions() -> dict[str, str]:
    """The packages of this environment that an index may have: name to version."""
    found: dict[str, str] = {}
    for one in distributions():
        if one.metadata["Name"] and not _local_folder(one):
            found.setdefault(canonicalize_name(one.metadata["Name"]), one.version)
    return found


def _local_projects() -> list[str]:
    """Packages installed here from a folder, perhaps jaxgate and the project, as pip takes them."""
    return [part for one in distributions() for part in _local_folder(one)]


def _local_folder(package: Distribution) -> list[str]:
    """The folder that a package was installed from, as pip takes it: no index has it, and no pin would find it."""
    about = json.loads(package.read_text("direct_url.json") or "{}")
    if not about.get("url", "").startswith("file:"):
        return []
    place = unquote(urlsplit(about["url"]).path)
    return ["-e", place] if about.get("dir_info", {}).get("editable") else [place]
