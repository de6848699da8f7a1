"""Observe a case of the catalogue, then the same case of the edited file; judge the second by the first."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

from jaxgate.judge.verdict import judge, judge_invalid
from jaxgate.keep.references import ReferenceCache
from jaxgate.model import Baseline, InvalidCaseError, Phases, Record, Status
from jaxgate.observe.measure import observe
from jaxgate.plugin.explaining import judge_with_buffers
from tests.planted.harness import NO_PROGRAM, NO_TIME, NOWHERE, first_line, names
from tests.plants.model import Outcome, Plant

_COUNT = itertools.count(1)
"""Of this process: a worker runs several families, and no two modules may share a name."""

REPOSITORY = Path(__file__).resolve().parents[2]


class Bench:
    """Runs the cases of edited files out of a temporary folder; unedited ones are observed once.

    Args:
        folder: For the edited files.
        cache: Where references are remembered.
    """

    def __init__(self, folder: Path, cache: Path | None = None) -> None:
        self._folder = folder
        self._bases: dict[tuple[str, str], Record] = {}
        self._store = ReferenceCache(cache)

    def plant(self, plant: Plant, family: str) -> Outcome:
        """Run one plant."""
        begin = time.perf_counter()
        source = edited(plant)
        verdict = self._judge(plant, source)
        moved = tuple(
            finding.name.partition(" ")[0]
            for finding in verdict.findings
            if finding.kind in ("fact", "claim") and finding.status is Status.REGRESSED
        )
        line = first_line(verdict)
        name = Path(plant.file).name
        places = tuple(
            f"{name}:{number}"
            for number, text in enumerate(source.splitlines(), 1)
            if any(part in text for part in plant.at)
        )
        right = str(verdict.status) == plant.status
        caught = right and (not plant.moves or bool(plant.moves & set(moved)))
        blamed = caught and names(line, plant.culprit, places)
        wanted = f"{plant.status} by {' or '.join(sorted(plant.moves))}" if plant.moves else plant.status
        why = "" if caught else f"expected {wanted}, found {verdict.status} {', '.join(moved)}"
        if caught and not blamed:
            why = f"expected the culprit to say /{plant.culprit}/ {' or '.join(places)}"
        return Outcome(
            name=plant.name,
            family=family,
            status=str(verdict.status),
            moved=moved,
            line=line,
            caught=caught,
            blamed=blamed,
            why=why,
            seconds=time.perf_counter() - begin,
        )

    def _judge(self, plant: Plant, source: str):
        record = self._base(plant)
        case = self._case(plant, source)
        try:
            observed = self._observe(case)
        except InvalidCaseError as error:
            return judge_invalid(case.name, error)
        return judge_with_buffers(lambda now: _judged(case, now, record), observed)

    def _base(self, plant: Plant) -> Record:
        key = plant.file, plant.case
        if key not in self._bases:
            case = self._case(plant, (REPOSITORY / plant.file).read_text())
            measurement = replace(self._observe(case).measurement, samples=NO_TIME)
            baseline = Baseline.of(measurement, case=case.name, test="", provenance=NOWHERE, program=NO_PROGRAM)
            record = Record(baseline=baseline, path=Path("base.json"), borrowed=False)
            verdict = _judged(case, measurement, record)
            if verdict.fails:
                raise ValueError(f"{case.name} is red before anything is planted: {verdict.worst}")
            self._bases[key] = record
        return self._bases[key]

    def _observe(self, case):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # donation that JAX calls unusable: the facts must say it
            observed = observe(case.build, store=self._store, sampling=False)
        # Phases are those of a busy machine, and no fresh process confirms them here.
        return replace(observed, measurement=replace(observed.measurement, phases=Phases()))

    def _case(self, plant: Plant, source: str):
        """Pick the case out of the text of a file."""
        found = [case for case in self._imported(plant, source).CASES if case.sentence == plant.case]
        if len(found) != 1:
            raise ValueError(f"{plant.name}: expected one case {plant.case!r} in {plant.file}, found {len(found)}")
        return found[0]

    def _imported(self, plant: Plant, source: str):
        """Import a text as a fresh module whose lines are the project's; a module of a package with all of that."""
        count = next(_COUNT)
        original = REPOSITORY / plant.file
        package = original.parent
        in_package = package.name != "workloads"
        name = f"plant_{count}_{original.stem}"
        folder = self._folder / str(count)
        folder.mkdir()
        for part in sorted(package.glob("*.py")) if in_package else [original]:
            text = source if part == original else part.read_text()
            own = re.sub(rf"\bworkloads\.{package.name}\b", name, text) if in_package else text
            (folder / part.name).write_text(own)
        spec = importlib.util.spec_from_file_location(
            name,
            folder / ("__init__.py" if in_package else original.name),
            submodule_search_locations=[str(folder)] if in_package else None,
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module


def _judged(case, now, record):
    # Nothing is timed here: neither phases nor claims about them mean anything.
    claims = tuple(c for c in case.claims if not c.needs_duel and not c.quantity.endswith("_ns"))
    return judge(case.name, claims, now, record, strict=True, tolerances=case.tolerances)


def edited(plant: Plant) -> str:
    """The file with the mistake in it.

    Raises:
        ValueError: If a text to replace does not stand there exactly once.
    """
    source = (REPOSITORY / plant.file).read_text()
    for old, new in plant.edits:
        if source.count(old) != 1:
            raise ValueError(f"{plant.name}: expected {old!r} once in {plant.file}, found {source.count(old)}")
        source = source.replace(old, new)
    return source
