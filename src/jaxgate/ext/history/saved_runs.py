"""Runs that are in files, for the history: ``results.json``, and what pytest-benchmark saved."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxgate.ext.history.model import HistoryPoint, HistoryRun
from jaxgate.ext.history.store import HistoryError, history_run, utc
from jaxgate.keep.results import UnreadableResultsError, parse_results, read_run_file
from jaxgate.model.workload import case_name

_EXPECTED = "expected JSON that pytest-benchmark saved, or the results.json of a run"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_NS = 1e9
_MACHINE = ("system", "machine", "node", "python_implementation", "python_version")
"""What is kept of the machine, beside its processor."""


def read_saved_run(path: Path) -> HistoryRun:
    """Read a run out of a file; pytest-benchmark's has times only: no verdict, no program and no baseline.

    Raises:
        HistoryError: If it cannot be read, or is something else.
    """
    try:
        content = read_run_file(path)
    except (OSError, ValueError, RecursionError) as error:
        raise HistoryError(f"{path}: {_EXPECTED}: {error}") from None
    try:
        if isinstance(content, dict) and "cases" in content:
            return history_run(parse_results(content))
        return _saved_run(content)
    except (HistoryError, UnreadableResultsError) as error:
        raise HistoryError(f"{path}: {error}") from None


def _saved_run(content: object) -> HistoryRun:
    if not isinstance(content, dict) or not isinstance(content.get("benchmarks"), list):
        raise HistoryError(f"{_EXPECTED}, found no list under `benchmarks`")
    if not isinstance(content.get("datetime"), str):
        raise HistoryError(f"{_EXPECTED}, found no `datetime`")
    folder, environment = _machine(_table(content, "machine_info"))
    commit = _table(content, "commit_info").get("id")
    whole = json.dumps(content, sort_keys=True).encode()
    run, moment = f"pytest-benchmark-{hashlib.sha256(whole).hexdigest()[:16]}", utc(content["datetime"])
    known = commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else None
    found = {
        (case, folder): HistoryPoint(
            run=run,
            moment=moment,
            commit=known,
            case=case,
            folder=folder,
            figures={"run_ns": run_ns},
            environment=environment,
            source="pytest-benchmark",
        )
        for case, folder, run_ns in _times(content["benchmarks"], folder)
    }
    return HistoryRun(run=run, moment=moment, commit=known, source="pytest-benchmark", points=tuple(found.values()))


def _times(benchmarks: list[Any], folder: str) -> Iterator[tuple[str, str, float]]:
    """Case, folder and median of each benchmark that was timed."""
    for place, benchmark in enumerate(benchmarks):
        median = _table(benchmark, "stats").get("median") if isinstance(benchmark, dict) else None
        name = benchmark.get("fullname") if isinstance(benchmark, dict) else None
        if not isinstance(median, int | float) or not isinstance(name, str):
            raise HistoryError(f"{_EXPECTED}, found no `fullname` or no `stats.median` in benchmark {place}")
        ours = _table(benchmark, "extra_info")
        if isinstance(ours.get("case"), str) and isinstance(ours.get("hardware"), str):
            yield "/".join(case_name("", ours["case"])), ours["hardware"], median * _NS
        else:
            yield "/".join(case_name(name, None)), folder, median * _NS


def _machine(about: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The processor's name as that of a folder, which is none of a baseline's, as nothing is known of jax; what is kept."""
    found = {name: about[name] for name in _MACHINE if isinstance(about.get(name), str)}
    processor = _table(about, "cpu").get("brand_raw")
    if isinstance(processor, str):
        found["processor"] = processor
    named = processor or about.get("processor") or about.get("machine") or ""
    return re.sub(r"[^a-z0-9]+", "-", str(named).lower()).strip("-"), found


def _table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}
