"""The only room that knows pytest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jaxgate.model.workload import Case

__all__ = ["catalogue"]


def catalogue(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Parametrise a test over cases: ``@catalogue(scan.CASES)`` above ``def test_scan(case, gate)``.

    Raises:
        pytest.UsageError: If there is no case, or two share a name. pytest would skip an empty set in silence.
    """
    cases = list(cases)
    names = [case.name for case in cases]
    if not names:
        raise pytest.UsageError("expected at least one case in the catalogue, found none")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise pytest.UsageError(f"expected one case per name, found several called {', '.join(twice)}")
    return pytest.mark.parametrize("case", cases, ids=[case.sentence for case in cases])
