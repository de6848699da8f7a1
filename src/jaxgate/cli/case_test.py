"""Which test has a case: by its baseline, by its name, or because the user says so."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from jaxgate.keep import baseline_files, recorded_by
from jaxgate.model import UsageError, possible_names, shortlist
from jaxgate.processes.collection import collect_tests

_MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTest:
    """A case and its test.

    Attributes:
        case: Its name; empty where only the test was named, and says which case it has.
        test: pytest node id, relative to the root folder of the tests.
        names: All names that the case may have.
    """

    case: str
    test: str
    names: frozenset[str]

    @property
    def file(self) -> Path:
        """The file of the test, relative to the root folder of the tests."""
        return Path(self.test.partition("::")[0])


def find_test(
    named: str, paths: Sequence[str], *, project: Path, baselines: Path, environ: Mapping[str, str], here: Path
) -> CaseTest:
    """Find the test of a case.

    Args:
        named: The case, or the node id of its test.
        paths: What to look through, as typed: files, folders, node ids; a node id is the test.
        project: Root folder of the tests.
        baselines: Folder of the baselines.
        environ: The environment of a process that collects.
        here: Where the user stands.

    Raises:
        UsageError: If there is none, or several; names what is like it.
    """
    typed = [_relative(path, project, here) for path in ([named] if "::" in named else paths)]
    if (nodes := [path for path in typed if "::" in path]) and (
        len(nodes) > 1 or not (project / nodes[0].partition("::")[0]).exists()
    ):
        raise UsageError(f"expected one test that is there, found {', '.join(nodes)}")
    if nodes:
        names = _names(nodes[0])
        return CaseTest(case="" if "::" in named else named, test=nodes[0], names=names)
    known = sorted(test for test in recorded_by(baselines, named) if (project / test.partition("::")[0]).is_file())
    if known:
        return CaseTest(case=named, test=known[0], names=frozenset({named}))
    tests = collect_tests(project, typed, environ)
    found = [test for test in tests if named in _names(test)]
    if len(found) == 1:
        return CaseTest(case=named, test=found[0], names=_names(found[0]))
    if found:
        raise UsageError(f"several tests may have the case {named}: {shortlist(found, _MOST)}; name one in its place")
    every = {f"{path.parent.name}/{path.stem}" for path in baseline_files(baselines)}
    every |= {name for test in tests for name in _names(test)}
    like = get_close_matches(named, sorted(every), _MOST)
    hint = f"did you mean {', '.join(like)}?" if like else f"{len(tests)} tests were looked at"
    raise UsageError(
        f"expected a case or a test, found no test for {named!r}; {hint} A test that names its cases itself: {named} FILE::TEST"
    )


def support_files(test: Path, project: Path, also: Sequence[Path]) -> list[Path]:
    """What today's test needs beside the code that it gates, relative to the project: conftests, packages, what was named.

    Args:
        test: The file of the test, relative to the project.
        project: Root folder of the tests.
        also: Further files or folders, relative to the project.
    """
    found = [test, *(folder / name for folder in test.parents for name in ("conftest.py", "__init__.py"))]
    for path in also:
        inside = sorted((project / path).rglob("*")) if (project / path).is_dir() else [project / path]
        found += [file.relative_to(project) for file in inside if "__pycache__" not in file.parts]
    return [file for file in dict.fromkeys(found) if (project / file).is_file()]


def _relative(path: str, project: Path, here: Path) -> str:
    """A path as pytest names it from the root folder of the tests."""
    file, separator, rest = path.partition("::")
    return PurePosixPath(os.path.relpath(here / file, project)).as_posix() + separator + rest


def _names(test: str) -> frozenset[str]:
    """All names that the case of a test may have; one of a catalogue has the id of its parameters."""
    found = {"/".join(pair) for pair in possible_names(test, None)}
    if test.endswith("]"):
        found |= {"/".join(pair) for pair in possible_names(test, test.partition("[")[2].removesuffix("]"))}
    return frozenset(found)
