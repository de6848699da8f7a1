"""How the store of programs grows: a case that is refreshed again and again, its program another one each time.

Usage: python ci/growth.py [REFRESHES]   (default 100; about twenty seconds on a 2-core CPU)

Each refresh is a real one: the step of a small perceptron is observed, exported and accepted, once with collection of
what the refresh left behind and once without, and committed. Prints a Markdown table: bytes and files of the store,
and what git holds of the whole history after ``git gc``. Exit status 0.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.engine.record import Candidate
from jaxgate.keep.baselines import BaselineStore
from jaxgate.keep.cache import ReferenceCache
from jaxgate.keep.programs import ProgramStore, collect
from jaxgate.model.baseline import Provenance, StoredBaseline
from jaxgate.model.computation import Computation
from jaxgate.model.decision import Status
from jaxgate.model.verdict import TimeVerdict, Verdict
from jaxgate.observe.measure import observe
from jaxgate.observe.observation import Observation
from jaxgate.report.units import show

MARKS = (1, 10, 50, 100)
CASE = "growth/step"


def step(number: int) -> Any:
    """A training step; another rate is another program."""

    def loss(weights: Any, batch: Any) -> Any:
        hidden = jnp.tanh(batch @ weights["in"])
        return jnp.mean((hidden @ weights["out"]) ** 2)

    def update(weights: Any, batch: Any) -> Any:
        gradients = jax.grad(loss)(weights, batch)
        return jax.tree.map(lambda w, g: w - (0.1 + number / 1000) * g, weights, gradients)

    return jax.jit(update)


def measure(number: int) -> Observation:
    """Observe the step as the gate does."""
    weights = {"in": jnp.ones((32, 64)), "out": jnp.ones((64, 1))}
    computation = Computation(subject=step(number), args=(weights, jnp.ones((16, 32))))
    return observe(lambda: computation, store=ReferenceCache(None))


def refresh(root: Path, observed: Observation, *, collecting: bool) -> None:
    """Accept a measurement, as ``--perf-update=refresh`` does."""
    store = BaselineStore(root, observed.measurement.line)
    record: StoredBaseline | None = store.load(observed.measurement.hardware, CASE)
    where = Provenance(commit=None, dirty=False, date="2026-11-21", jaxgate="")
    found = Candidate.of(observed, record, case=CASE, test="", provenance=where)
    time = TimeVerdict(status=Status.SAME, reason="")
    verdict = Verdict(case=CASE, hardware=None, status=Status.SAME, fails=False, findings=(), time=time)
    replaced = found.accept(store, ProgramStore(root), verdict).replaced
    if collecting and replaced:
        collect(root, {*replaced})


def git(folder: Path, *arguments: str) -> str:
    """Run git in a repository that has no settings but these."""
    identity = ["-c", "user.name=growth", "-c", "user.email=growth@localhost", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def row(root: Path) -> list[str]:
    """Bytes and files of the store, and bytes of git's objects."""
    git(root, "gc", "--quiet")
    files = ProgramStore(root).files()
    counted = dict(line.split(": ") for line in git(root, "count-objects", "-v").splitlines())
    size = sum(path.stat().st_size for path in files)
    return [show("store_bytes", size), str(len(files)), show("git_bytes", int(counted["size-pack"]) * 1024)]


def main(refreshes: int) -> None:
    """Refresh and print."""
    marks = sorted({mark for mark in MARKS if mark < refreshes} | {refreshes})
    print("| refreshes | with collection | files | git | without | files | git |\n|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        roots = {Path(one): True, Path(two): False}
        for root in roots:
            git(root, "init", "--quiet")
        for number in range(refreshes + 1):  # the first one creates
            observed = measure(number)
            for root, collecting in roots.items():
                refresh(root, observed, collecting=collecting)
                git(root, "add", "--all")
                git(root, "commit", "--quiet", "-m", f"refresh {number}")
            if number in marks:
                cells = [cell for root in roots for cell in row(root)]
                print(f"| {number} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MARKS[-1])
