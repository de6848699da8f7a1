"""Which of its possible names the case of a test has: the one of its baseline, else the shortest that is nobody else's.

Two files of one name, run apart, would take each other's baselines and record over them: that is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePosixPath

from jaxgate.keep.baselines import recorded_by
from jaxgate.keep.files import read_text
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.workload import possible_names


def refuse_foreign(project: Path, recorded_by: str, test: str) -> None:
    """Refuse a baseline that a test of another file recorded, where that test still stands there.

    Raises:
        InvalidCaseError: If both are there.
    """
    if stands_elsewhere(project, recorded_by, test):
        raise InvalidCaseError(
            "reading the baseline",
            f"expected a baseline of {test}, found that of {recorded_by}, which is still there: two tests cannot share one; "
            "give one of them a name of its own: gate(..., name='family/sentence')",
        )


def stands_elsewhere(project: Path, recorded_by: str, test: str) -> bool:
    """Whether a test of another file recorded a baseline and still stands in that file.

    Of a file that was moved by hand nobody knows whose it was: the test with its name has it.
    """
    if not recorded_by:
        return False
    theirs, ours = (PurePosixPath(node.partition("::")[0]) for node in (recorded_by, test))
    function, _, parameters = recorded_by.rpartition("::")[2].partition("[")
    moved = bool(parameters) and theirs.name != ours.name  # one of many of its function: nothing shows that it stayed
    if theirs == ours or moved or theirs.is_absolute() or ".." in theirs.parts:
        return False
    try:
        tree = ast.parse(read_text(project / theirs))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError, SyntaxError, RecursionError):  # it is there, and nothing says that the test is not
        return True
    return any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == function for node in ast.walk(tree)
    )


class CaseNames:
    """Names the cases of one run. What was recorded keeps its name, whatever files come beside it.

    Of ``folders`` of baselines the first one is compared with; ``namesakes`` share their file name with another file
    that gates.
    """

    def __init__(self, project: Path, folders: Sequence[Path], namesakes: AbstractSet[str]) -> None:
        self._project = project
        self._folders = tuple(dict.fromkeys(folders))
        self._namesakes = namesakes

    def of(self, test: str, given: str | None) -> tuple[str, str]:
        """Family and sentence of a case."""
        names = possible_names(test, given)
        if len(names) == 1:
            return names[0]
        for folder in self._folders:
            for name in names:
                if test in recorded_by(folder, "/".join(name)):
                    return name
        short = names[0]
        with_folder = next((name for name in names if name[0] != short[0]), short)
        is_namesake = test.partition("::")[0] in self._namesakes
        return with_folder if is_namesake or self._is_taken("/".join(short), test) else short

    def _is_taken(self, case: str, test: str) -> bool:
        """Whether a test of another file, which is still there, has recorded a case."""
        owners = {owner for folder in self._folders for owner in recorded_by(folder, case)}
        return any(stands_elsewhere(self._project, owner, test) for owner in owners)
