"""What the engine costs for each case of a large suite, beyond tracing, compiling, calls and samples.

Usage: python ci/scale.py [CASES ...]   (default 200 2000; about six minutes on a 2-core CPU)

Generates suites of tiny cases, each another program, records them, judges them, and prints a Markdown table: the time
of a test beyond JAX's phases and the calls that it makes, over all cases and over the first and the last hundred; the
run's seconds, and the most memory that its process held. Ends with exit code 1 if a limit is exceeded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from statistics import mean, median

CASES = (200, 2000)
LIMIT_MS, LIMIT_BYTES, FLAT = 50.0, 2e9, 1.25
"""At most so many milliseconds for a case, so many bytes for the process, and so much more for the last hundred cases."""
SUITE = """
import jax.numpy as jnp
import pytest

@pytest.mark.parametrize("number", range({cases}))
def test_tiny(gate, number):
    gate(lambda x: jnp.tanh(x * {{}} + number), jnp.ones(8))
""".replace("{{}}", "2.0")
PHASES = ("trace_ns", "lower_ns", "compile_ns")


def run(folder: Path, *options: str) -> tuple[float, float]:
    """Run the suite in a process of its own: seconds, and bytes that it held at most."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "JAXGATE", "CI"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    begin = time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        out = (process.stdout.read() if process.stdout else b"").decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(out[-2000:])
    unit = 1 if sys.platform == "darwin" else 1024
    return time.perf_counter() - begin, usage.ru_maxrss * unit


def engine_ms(folder: Path) -> list[float]:
    """Milliseconds of each test, in order, beyond JAX's phases and the calls."""
    rows = {row["name"]: row for row in json.loads((folder / "rows.json").read_text())["benchmarks"]}
    found = []
    for case in ET.parse(folder / "junit.xml").iter("testcase"):  # noqa: S314 - our own file
        row = rows[case.get("name")]
        extra, stats = row["extra_info"], row["stats"]
        jax_s = sum(extra[phase] or 0 for phase in PHASES) / 1e9
        calls_s = sum(stats["data"]) * stats["iterations"] + (extra["first_call_ns"] or 0) / 1e9
        found.append((float(case.get("time") or 0) - jax_s - calls_s) * 1e3)
    return found


def measure(cases: int) -> tuple[list[str], bool]:
    """One row of the table, and whether it is within the limits."""
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        folder = Path(name)
        (folder / "pyproject.toml").write_text("[tool.pytest]\n")
        (folder / "test_scale.py").write_text(SUITE.replace("{cases}", str(cases)))
        run(folder, "--perf-update")
        seconds, held = run(folder, "--perf-strict", "--benchmark-json=rows.json", "--junit-xml=junit.xml")
        took = engine_ms(folder)
        stored = sum(path.stat().st_size for path in (folder / "baselines").rglob("*") if path.is_file())
    first, last = median(took[:100]), median(took[-100:])
    fine = mean(took) <= LIMIT_MS and held <= LIMIT_BYTES and last <= FLAT * first
    row = [
        str(len(took)), f"{mean(took):.1f} ms", f"{median(took):.1f} ms", f"{first:.1f} ms", f"{last:.1f} ms",
        f"{seconds:.0f} s", f"{held / 1e6:.0f} MB", f"{stored / 1e6:.1f} MB", "yes" if fine else "**no**",
    ]  # fmt: skip
    return row, fine and len(took) == cases


def main(sizes: list[int]) -> int:
    """Measure and print."""
    heads = ["cases", "engine, mean", "median", "first 100", "last 100", "run", "memory", "baselines", "within limits"]
    outcomes = [measure(cases) for cases in sizes]
    for row in [heads, ["---"] * len(heads), *(row for row, _ in outcomes)]:
        print("| " + " | ".join(row) + " |")
    return 0 if all(fine for _, fine in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or list(CASES)))
