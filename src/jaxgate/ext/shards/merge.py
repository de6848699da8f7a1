"""Makes one run of what the parts of a suite left, and says what is missing or does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.outcome import GateExit, RunRecord
from jaxgate.model.words import plural, shortlist

_LISTS = ("cases", "not_judged", "problems", "unfit", "undecided_changed", "judge_edits", "needs_commit", "scaling")
"""Keys of a run's results whose values are lists, and are put together."""
_SAME = ("schema", "jaxgate", "commit", "dirty", "elsewhere", "project", "baseline_edits")
"""Keys that are those of the first part."""


def wrong_with(parts: Mapping[str, RunRecord], of: int) -> Iterator[str]:
    """What keeps results from being those of one run of so many parts."""
    shards = {file: run.shard for file, run in parts.items() if run.shard is not None}
    whole = [file for file in parts if file not in shards]
    if whole:
        yield f"{plural(len(whole), 'result is', 'results are')} of no part, but of a whole run: {_named(whole)}"
    found = Counter(shard.number for shard in shards.values())
    missing = [f"{number}/{of}" for number in range(1, of + 1) if number not in found]
    if missing:
        yield f"{plural(len(missing), 'part')} left no result: {_named(missing)}"
    twice = [f"{number}/{of}" for number, count in found.items() if count > 1]
    if twice:
        yield f"{plural(len(twice), 'part left', 'parts left')} more than one result: {_named(twice)}"
    for what, values in (
        ("cut into one number of parts", {str(shard.of) for shard in shards.values()}),
        ("cut out of the same tests", {shard.suite for shard in shards.values()}),
        ("of one commit", {str(run.commit) for run in parts.values()}),
        ("of one jaxgate", {run.jaxgate for run in parts.values()}),
        ("held against the same", {run.elsewhere or "stored baselines" for run in parts.values()}),
    ):
        if len(values) > 1:
            yield f"the parts are not {what}: {_named(sorted(values))}"
    if not missing and not twice and len({shard.suite for shard in shards.values()}) == 1:
        yield from _covers(parts, shards.values())


def _covers(parts: Mapping[str, RunRecord], shards: Iterable[Any]) -> Iterator[str]:
    """Whether each gate of the suite was in one part."""
    run = sum(shard.gates for shard in shards)
    suite = max(shard.of_gates for shard in shards)
    tests = Counter(test for one in parts.values() for test in {case.test for case in one.cases})
    twice = [test for test, count in tests.items() if test and count > 1]
    if run != suite or twice:
        named = f"; in several: {_named(twice)}" if twice else ""
        yield (
            f"the parts have {run} of the suite's {plural(suite, 'gate')}: their machines cut it by other baselines{named}"
        )


def _named(names: Sequence[str]) -> str:
    return shortlist(names, MAX_NAMED)


def cases_twice(parts: Iterable[RunRecord]) -> Iterator[str]:
    """Cases that tests of two parts share: two tests cannot have one baseline."""
    owners: dict[str, set[str]] = {}
    for run in parts:
        for case in run.cases:
            owners.setdefault(case.case, set()).add(case.test)
    for name, tests in owners.items():
        if len(tests) > 1:
            yield f"expected one test for the case `{name}`, found {' and '.join(sorted(tests))}"


def merged(contents: Sequence[Mapping[str, Any]], unfit: Sequence[str], problems: Sequence[str]) -> dict[str, Any]:
    """The contents of ``results.json`` of all parts, in their order, as one; ``unfit`` is empty if they are one run."""
    whole: dict[str, Any] = {key: contents[0].get(key) for key in _SAME}
    environments: list[Any] = []
    for key in _LISTS:
        whole[key] = []
    for content in contents:
        first = len(environments)
        environments += content.get("environments", [])
        for key in _LISTS:
            whole[key] += _moved(content["cases"], first) if key == "cases" else content.get(key) or []
    for key in ("not_judged", "problems", "judge_edits", "needs_commit"):  # each part may know of the same
        whole[key] = list(dict.fromkeys(whole[key]))
    whole["problems"] += problems
    whole["unfit"] = [*unfit, *dict.fromkeys(whole["unfit"])]
    ends = [GateExit(content["gate_exit"]) for content in contents]
    ends += [GateExit.BROKEN] if unfit else []
    ends += [GateExit.REGRESSION] if problems else []
    end = GateExit.severest(ends)
    return whole | {
        "environments": environments,
        "run": "+".join(str(content.get("run", "")) for content in contents),
        "moment": max(str(content.get("moment", "")) for content in contents),
        "exit_status": max(int(content.get("exit_status", 0)) for content in contents),
        "gate_exit": int(end),
        "green": end is GateExit.FINE,
        "shard": None,
    }


def _moved(cases: Sequence[dict[str, Any]], by: int) -> Iterator[dict[str, Any]]:
    """Cases whose environments stand behind those of other parts."""
    for case in cases:
        figures = case.get("figures")
        if isinstance(figures, dict) and isinstance(figures.get("environment"), int):
            yield case | {"figures": figures | {"environment": figures["environment"] + by}}
        else:
            yield case
