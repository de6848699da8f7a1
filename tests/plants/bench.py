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
from jaxgate.model import Baseline, InvalidCaseError, Phases, Record
from jaxgate.observe.measure import observe
from jaxgate.plugin.explaining import judge_with_buffers
from tests.mistakes import NO_PROGRAM, NO_TIME, NOWHERE, said
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
        places = plant.places(source, Path(plant.file).name)
        fields = said(plant, verdict, places, kinds=("fact", "claim"))
        return Outcome(name=plant.name, family=family, seconds=time.perf_counter() - begin, **fields)

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
    return plant.planted((REPOSITORY / plant.file).read_text(), plant.file)
