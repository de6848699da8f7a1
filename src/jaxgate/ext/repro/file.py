"""The file that reproduces a difference: a program for anybody who has jax and NumPy, put together here."""

from __future__ import annotations

import base64
import inspect
import textwrap
import zlib

from jaxgate.ext.repro import standalone
from jaxgate.ext.repro.model import AnonymousProgram, ArrayOf

WIDTH = 116
_BEGIN = "# -- from here on: the file --\n"
REPRO_MARK = '"""Two versions of a program of JAX, compiled and compared here: python '
"""Stands at the beginning of every file, which may be written over."""
_TITLE = '''{mark}{name}

Needs jax 0.10 or newer, and NumPy. Written by jaxgate: names, paths and numbers of the author are not in the programs;
inputs are drawn from a seed{seeded}."""
'''
_SEEDED = ", and {count} captured arrays: where they are not the same on both sides, results differ"
_DEVICES = """import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count={count}"
"""
_HARD = "\N{NO-BREAK SPACE}"
_WIDE = frozenset({"float64", "int64", "uint64", "complex128"})
"""Types that JAX has only where it is told to."""
_PAYLOAD = 100
"""Characters of a line of it."""


def repro_file(baseline: AnonymousProgram, now: AnonymousProgram, *, name: str) -> str:
    """Put a file together; its name is for the line that says how to run it."""
    count = max(baseline.devices, now.devices)
    arrays = [one for side in (baseline, now) for one in (*side.inputs, *side.outputs)]
    wide = any(one.dtype in _WIDE for one in arrays)
    drawn = baseline.seeded + now.seeded
    parts = [_TITLE.format(mark=REPRO_MARK, name=name, seeded=_SEEDED.format(count=drawn) if drawn else "")]
    parts += [_DEVICES.format(count=count)] if count > 1 else []
    body = inspect.getsource(standalone).partition(_BEGIN)[2]  # without what only our own tools read
    parts += ["\n", body.strip().replace("\n\n\n", "\n\n") + "\n"]
    parts += ['jax.config.update("jax_enable_x64", True)\n'] if wide else []
    parts += [_program("BASELINE", baseline), "NOW = BASELINE\n" if baseline == now else _program("NOW", now)]
    return "".join([*parts, "main(BASELINE, NOW)\n"])


def _program(name: str, side: AnonymousProgram) -> str:
    inputs = ", ".join(_array(one, place) for place, one in zip(side.places, side.inputs, strict=True))
    outputs = ", ".join(map(_array, side.outputs))
    rows = [f"inputs=[{inputs}],", f"outputs=[{outputs}],"]
    rows += [f"donated={side.donated},"] if side.donated else []
    rows += [f"options={dict(sorted(side.options.items()))},"] if side.options else []
    if side.mesh is not None:
        names, sizes = tuple(side.mesh.axes), tuple(side.mesh.axes.values())
        rows += [f"mesh=({names}, {sizes}, {side.mesh.kinds}), devices={side.devices},"]
    rows += [f"convention={side.convention},"]
    text = base64.b85encode(zlib.compress(side.payload, 9)).decode()
    lines = [text[at : at + _PAYLOAD] for at in range(0, len(text), _PAYLOAD)]
    shown = "\n".join(_wrapped(row) for row in rows)
    quoted = "\n".join(lines)
    return f'{name} = Side(\n{shown}\n    payload="""\n{quoted}\n""",\n)\n'


def _array(one: ArrayOf, place: int | None = None) -> str:
    """An array as a tuple, in one piece."""
    return repr((*(() if place is None else (place,)), one.dtype, one.shape, one.spec)).replace(" ", _HARD)


def _wrapped(row: str) -> str:
    """A row that may be broken between arrays."""
    wrapped = textwrap.fill(
        row, WIDTH, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False, break_long_words=False
    )
    return wrapped.replace(_HARD, " ")
