"""Whose baseline it is: two files of one name, run apart, would take each other's and record over it."""

from __future__ import annotations

import ast
from pathlib import Path, PurePosixPath

from jaxgate.keep import read_text
from jaxgate.model import InvalidCaseError


def refuse_foreign(project: Path, recorded_by: str, test: str) -> None:
    """Refuse a baseline that a test of another file recorded, where that test still stands there.

    Args:
        project: Root folder of the tests.
        recorded_by: pytest node id of the test that recorded it.
        test: The one that asks for it.

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
    """Whether a test of another file recorded it, and still stands there; as above.

    Nobody knows whose a file is that was moved by hand: who has its name has it.
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
