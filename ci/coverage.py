"""How much of the core the tests run, lines and branches, as a badge that a README can show.

Usage: python -m ci.coverage [--badge FILE] [pytest arguments ...]   (after: make ready VENV=.venv-coverage WITH=coverage)

The core is all of jaxgate but its capabilities (`ext/`). Tests that look at what Python itself calls fail while it is traced;
`make test` judges, this only measures. Ends with 1 below 95 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

LEAST = 95.0
"""Per cent of the core's lines and branches, added up."""
ROOMS = (
    "cli", "distributed", "engine", "explain", "judge", "keep", "model", "observe", "plugin", "processes", "report",
    "runs", "shards", "store",
)  # fmt: skip
TESTS = [f"tests/{room}" for room in ROOMS]
"""Tests of the core; planted mistakes run it again, several times slower while they are traced."""
REPOSITORY = Path(__file__).resolve().parents[1]
_PACKAGE = Path("src/jaxgate")
_SHOWN = 10


def share(files: Iterable[Mapping[str, int]]) -> float:
    """Per cent of lines and branches that were run; of none all."""
    whole = run = 0
    for one in files:
        whole += one["num_statements"] + one["num_branches"]
        run += one["covered_lines"] + one["covered_branches"]
    return 100.0 * run / whole if whole else 100.0


def by_room(
    report: Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]],
) -> dict[str, dict[str, Mapping[str, int]]]:
    """The counts of each file, by its room."""
    rooms: dict[str, dict[str, Mapping[str, int]]] = {}
    for name, found in report["files"].items():
        parts = Path(name).relative_to(_PACKAGE).parts
        rooms.setdefault(parts[0] if len(parts) > 1 else "itself", {})[name] = found["summary"]
    return rooms


def badge(percent: float) -> str:
    """What shields.io reads as an endpoint."""
    colour = "brightgreen" if percent >= LEAST else "red"
    content = {"schemaVersion": 1, "label": "coverage of the core", "message": f"{percent:.1f} %", "color": colour}
    return json.dumps(content, indent=1) + "\n"


def measure(arguments: Sequence[str], into: Path) -> dict[str, dict[str, Mapping[str, int]]]:
    """Run the tests, in several processes as ever, and count.

    Raises:
        SystemExit: If nothing was measured.
    """
    data = f"--data-file={into / 'data'}"
    python = [sys.executable, "-m"]
    tests = ["pytest", "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "-q", *(arguments or TESTS)]
    subprocess.run([*python, "coverage", "run", data, "-m", *tests], cwd=REPOSITORY, check=False)
    for command in (["combine", "-q", data], ["json", "-q", data, "-o", str(into / "report.json")]):
        done = subprocess.run([*python, "coverage", *command], cwd=REPOSITORY, check=False)
        if done.returncode:
            sys.exit(
                "expected files of coverage.py to put together, found none: make ready WITH=coverage, and try again"
            )
    return by_room(json.loads((into / "report.json").read_text(encoding="utf-8")))


def main(arguments: Sequence[str]) -> int:
    """Measure, print each room and the files that lack most, and write the badge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--badge", type=Path, help="write it there")
    asked, rest = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        rooms = measure(rest, Path(name))
    for room, files in sorted(rooms.items()):
        print(f"{room:<12} {share(files.values()):5.1f} %  {len(files):3} files")
    core = {name: one for room, files in rooms.items() if room != "ext" for name, one in files.items()}
    if not sum(one["covered_lines"] for one in core.values()):
        sys.exit("expected lines of the core that a test runs, found none: did the tests begin?")
    lacking = sorted(core, key=lambda name: core[name]["missing_lines"] + core[name]["missing_branches"], reverse=True)
    for name in lacking[:_SHOWN]:
        print(f"  {share([core[name]]):5.1f} %  {name}")
    percent = share(core.values())
    print(f"the core     {percent:5.1f} %")
    if asked.badge:
        asked.badge.write_text(badge(percent), encoding="utf-8")
    return int(percent < LEAST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
