"""Which of its possible names the case of a test has: the one of its baseline, else the shortest that is nobody else's."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from jaxgate.engine.baseline_owner import stands_elsewhere
from jaxgate.keep import recorded_by
from jaxgate.model import possible_names


class CaseNames:
    """Names the cases of one run. What was recorded keeps its name, whatever files come beside it.

    Args:
        project: Root folder of the tests.
        folders: Of baselines, the one that is compared with first.
        namesakes: Files that have their name in common with another one that gates.
    """

    def __init__(self, project: Path, folders: Sequence[Path], namesakes: AbstractSet[str]) -> None:
        self._project = project
        self._folders = tuple(dict.fromkeys(folders))
        self._namesakes = namesakes

    def of(self, test: str, given: str | None) -> tuple[str, str]:
        """Family and sentence of a case.

        Args:
            test: pytest node id.
            given: The name that the user gave.
        """
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
