"""Run the plants, each family's in one worker process with 8 devices."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.plants.model import Outcome, Plant

DEVICES = 8
WORKERS = 2
_NOT_FAMILIES = frozenset({"__init__", "__main__", "bench", "model", "runner"})


def families() -> dict[str, tuple[Plant, ...]]:
    """The plants of each family: the modules of this folder that have some."""
    folder = Path(__file__).parent
    found = sorted(file.stem for file in folder.glob("*.py") if file.stem not in _NOT_FAMILIES)
    return {name: importlib.import_module(f"tests.plants.{name}").PLANTS for name in found}


def run(only: str = "", cache: Path | None = None) -> list[Outcome]:
    """Run what ``only`` selects: a word of the family's or the plant's name.

    Args:
        only: Selects; empty for all.
        cache: Where references are remembered.
    """
    jobs = [
        (family, tuple(plant for plant in plants if only in f"{family} {plant.name}"), cache)
        for family, plants in families().items()
    ]
    jobs = sorted((job for job in jobs if job[1]), key=lambda job: -len(job[1]))
    context = multiprocessing.get_context("spawn")  # the devices are chosen before JAX starts
    with ProcessPoolExecutor(WORKERS, mp_context=context, initializer=_begin) as pool:
        return [outcome for outcomes in pool.map(_family, jobs) for outcome in outcomes]


def _begin() -> None:
    """Give this process its devices, and its modules the suite's own folder."""
    import jax

    jax.config.update("jax_num_cpu_devices", DEVICES)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    os.environ.setdefault("JAX_PLATFORMS", "cpu")


def _family(job: tuple[str, tuple[Plant, ...], Path | None]) -> list[Outcome]:
    from tests.plants.bench import Bench

    family, plants, cache = job
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), cache)
        return [_outcome(bench, plant, family) for plant in plants]


def _outcome(bench, plant: Plant, family: str) -> Outcome:
    """One plant; what breaks is an outcome, too, so that the others are still run."""
    try:
        return bench.plant(plant, family)
    except Exception as error:  # noqa: BLE001 - told as its outcome
        return Outcome(name=plant.name, family=family, status="BROKEN", why=f"{type(error).__name__}: {error}")
