"""Reads what a run left in ``results.json``: the page, the history and the comparison of two runs know a run by it alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jaxgate.keep.files import RUN_BYTES, read_json, read_text
from jaxgate.keep.strict import adapter_of, first_problem
from jaxgate.model.outcome import RESULTS_SCHEMA, RunRecord

RESULTS = "results.json"


class UnreadableResultsError(ValueError):
    """A file that is no run's results; the text says what was expected and found."""


def read_run_file(path: Path) -> Any:
    """Read a file that a run left, ours or pytest-benchmark's, as JSON.

    Raises:
        OSError: If it cannot be read, or is larger than any run's.
        ValueError: If it is not JSON.
    """
    return read_json(path, limit=RUN_BYTES)


def page_of(folder: Path) -> str:
    """The page that a run left in a folder; empty where there is none that can be read."""
    try:
        return read_text(folder / "summary.md")
    except (OSError, ValueError):
        return ""


def results_file(path: Path) -> Path:
    """The results of a run: a file, or those that a folder holds."""
    return path / RESULTS if path.is_dir() else path


def read_results(path: Path) -> RunRecord:
    """Read the results of a run, out of a file or the folder that holds it.

    Raises:
        UnreadableResultsError: If the file cannot be read, or is something else.
    """
    path = results_file(path)
    try:
        content = read_run_file(path)
    except (OSError, ValueError) as error:
        raise UnreadableResultsError(f"{path}: expected the results.json of a run: {error}") from None
    try:
        return parse_results(content)
    except UnreadableResultsError as error:
        raise UnreadableResultsError(f"{path}: {error}") from None


def parse_results(content: object) -> RunRecord:
    """Make what ``results.json`` says into a run.

    Raises:
        UnreadableResultsError: If a key is missing, or its value is of another type.
    """
    if not isinstance(content, dict) or "schema" not in content or "cases" not in content:
        raise UnreadableResultsError("expected the results.json of a run, with `schema` and `cases`")
    if content["schema"] != RESULTS_SCHEMA:
        raise UnreadableResultsError(f"expected schema {RESULTS_SCHEMA}, found {content['schema']!r}")
    try:
        return adapter_of(RunRecord).validate_json(json.dumps(_whole(content)))
    except (ValueError, RecursionError) as error:
        problem = first_problem(error) if hasattr(error, "errors") else str(error)
        raise UnreadableResultsError(f"expected the results.json of a run: {problem}") from None


def _whole(content: dict[str, Any]) -> dict[str, Any]:
    """The content with the environment in each case: the file has each environment once, and cases name it by its place."""
    environments = content.get("environments", [])
    if not isinstance(environments, list) or not isinstance(content["cases"], list):
        raise UnreadableResultsError("expected lists under `environments` and `cases`")
    return content | {"cases": [_with_environment(case, environments) for case in content["cases"]]}


def _with_environment(case: Any, environments: list[Any]) -> Any:
    figures = case.get("figures") if isinstance(case, dict) else None
    if not isinstance(figures, dict) or "environment" not in figures:
        return case
    place = figures["environment"]
    if not isinstance(place, int) or not 0 <= place < len(environments):
        raise UnreadableResultsError(f"expected the place of an environment in {case.get('case')!r}, found {place!r}")
    return case | {"figures": figures | {"environment": environments[place]}}
