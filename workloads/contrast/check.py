"""The body of a test of pytest that compares the sides of a contrast here and now. Nothing is stored, no baseline is read."""

import sys
from functools import partial
from importlib.util import find_spec
from typing import Any

import pytest

from jaxgate.keep.machine import Machine
from jaxgate.observe.machine.virtual_devices import usual_size
from workloads.contrast.compare import compare, in_a_process
from workloads.contrast.contrast import ContrastCase

SHOWN = "contrast"
"""Name of the properties of a report whose values are lines for the end of a run; the root's ``conftest.py`` shows them."""


def check(case: ContrastCase, request: pytest.FixtureRequest, benchmark: Any) -> None:
    """Compare the sides of a case, and time them if they do the same.

    The figures of all sides stand in pytest-benchmark's ``extra_info``.

    Raises:
        pytest.skip.Exception: If a framework is not installed.
        pytest.fail.Exception: If the sides do not do the same, or a claim of theirs is broken.
    """
    missing = [name for name in case.needs if find_spec(name) is None]
    if missing:
        pytest.skip(f"`{case.name}` needs {', '.join(missing)}: pip install '{case.needs[missing[0]]}'")
    build = case.sizes[request.config.getoption("--perf-size") or usual_size()]
    alone = partial(in_a_process, build, case.needs) if benchmark.enabled else None
    with Machine().hold(partial(print, file=sys.stderr), alone=alone is not None):
        found = compare(build(), alone=alone)
    benchmark.extra_info.update(case=case.name, sides=found.figures)
    benchmark.pedantic(lambda: None)
    if found.problems:
        pytest.fail("\n".join([case.name, *(f"  {problem}" for problem in found.problems)]), pytrace=False)
    title, *rows = found.lines
    request.node.user_properties += [(SHOWN, line) for line in (f"{case.name}: {title}", *rows)]
