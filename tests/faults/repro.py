"""``python -m tests.faults.repro FOLDER``: reproduction files of twelve planted mistakes, to run in any environment."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import jax

from jaxgate.ext.repro.anonymous import anonymise
from jaxgate.ext.repro.file import repro_file
from jaxgate.observe.observation import Observation
from tests.faults.model import Fault
from tests.faults.programs import FAULTS
from tests.faults.runner import DEVICES, Bench

REPRODUCED = {
    "remat is removed": "temp bytes",
    "the matrix of attention is returned": "output bytes",
    "donation is dropped": "alias bytes",
    "the scan is unrolled": "instructions",
    "a second forward pass for the metric": "flops",
    "the kernel is taken apart into eigenvectors": "instructions",
    "positions are computed by numpy while tracing": "program bytes",
    "a factor of numpy widens bfloat16": "output bytes",
    "the result is left in the type of the accumulator": "output bytes",
    "the gradients are summed a second time": "collectives",
    "the parameters are stored on every device": "argument bytes",
    "the whole cache is rewritten to change one row": "bytes accessed",
}
"""What was planted, and the row of the file that must show it."""


def reproduced() -> list[Fault]:
    """The mistakes, in the order above."""
    return [next(fault for fault in FAULTS if fault.name == name) for name in REPRODUCED]


def files(folder: Path) -> Iterator[tuple[Fault, str, tuple[Observation, Observation]]]:
    """The text of each file, and both observations."""
    bench = Bench(folder)
    for fault in reproduced():
        sides = bench.sides(fault)
        programs = [anonymise(side.export()) for side in sides]
        yield fault, repro_file(*programs, name=f"{fault}.py"), sides


def main(folder: Path) -> None:
    """Write them, each with the facts of both sides that were observed."""
    jax.config.update("jax_num_cpu_devices", DEVICES)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        for fault, text, sides in files(Path(name)):
            (folder / f"{fault}.py").write_text(text)
            facts = [asdict(side.measurement.facts) for side in sides]
            (folder / f"{fault}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
