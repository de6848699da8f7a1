"""Run ``jaxgate bisect`` on each planted repository: ``python -m tests.bisections [NAME ...]``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bisections.plants import PLANTS, Plant, build, git

MOST_STEPS = 8


def run(plant: Plant, folder: Path) -> bool:
    """Search for one planted commit, and print what came of it."""
    commits = build(folder / "project", plant.files)
    before = git(folder / "project", "status", "--porcelain", "--branch")
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "jaxgate.cli.main", "bisect", "model/step", f"--good={commits[0]}"],
        cwd=folder / "project",
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    took = time.monotonic() - begin
    sys.stdout.write(done.stdout)
    found = re.search(r"^the first bad commit of model/step: (\w+)", done.stdout, re.MULTILINE)
    steps = len(re.findall(r"^step \d+, ", done.stdout, re.MULTILINE))
    untouched = before == git(folder / "project", "status", "--porcelain", "--branch")
    right = found is not None and found[1] == commits[plant.at] and f"  {plant.fact}  " in done.stdout
    passed = right and steps <= MOST_STEPS and untouched
    sys.stdout.write(f"{'RIGHT' if passed else 'WRONG'}  {plant.name}: {steps} steps, {took:.0f} s\n\n")
    sys.stdout.flush()
    return passed


def main(names: list[str]) -> int:
    """Run those that were named, or all; gives the exit code."""
    chosen = [plant for plant in PLANTS if not names or plant.name in names]
    outcomes = []
    for plant in chosen:
        with tempfile.TemporaryDirectory(prefix="bisections-") as folder:
            outcomes.append(run(plant, Path(folder)))
    return 0 if outcomes and all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
