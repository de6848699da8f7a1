"""Texts of optimised programs: stored ones of three compilers and two releases of jax, and programs by hand."""

import gzip

from support.paths import DATA

FILES = sorted((DATA / "hlo").glob("*/*.hlo.gz"))
STORED = {
    f"{file.parent.name}/{file.name.split('.')[0]}": gzip.decompress(file.read_bytes()).decode() for file in FILES
}
"""Such as ``tpu-0.12/layers``."""
TARGETS = [(platform, release) for platform in ("cpu", "tpu", "cuda") for release in ("0.10", "0.12")]
ADD = """%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

"""


def program(*lines, before="", partitions=1):
    """A program of these lines, the last of which is its result, after other computations."""
    *others, last = lines
    body = "\n".join([*(f"  {line}" for line in others), f"  ROOT {last}"])
    head = f"HloModule jit_step, is_scheduled=true, num_partitions={partitions}\n\n"
    return f"{head}{before}ENTRY %main () -> f32[] {{\n{body}\n}}\n"


def loop(array, operation, turns=None, metadata=""):
    """A loop whose body makes ``%y`` of ``%x`` and hands it on, as lines, and the computations before them."""
    state = f"(s32[], {array})"
    computations = f"""%body (s: {state}) -> {state} {{
  %s = {state} parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = {array} get-tuple-element(%s), index=1
  %y = {array} {operation}
  ROOT %t = {state} tuple(%i, %y)
}}

%cond (s: {state}) -> pred[] {{
  %s = {state} parameter(0)
  ROOT %p = pred[] constant(true)
}}

"""
    known = "" if turns is None else f', backend_config={{"known_trip_count":{{"n":"{turns}"}}}}'
    turn = f"%w = {state} while(%s), condition=%cond, body=%body{known}{metadata}"
    return program(f"%s = {state} parameter(0)", turn, before=computations)


def branches(array, operation):
    """A conditional: one branch does an operation on ``%x``, the other one nothing."""
    return f"""%dear (x: {array}) -> {array} {{
  %x = {array} parameter(0)
  ROOT %y = {array} {operation}
}}

%cheap (z: {array}) -> {array} {{
  ROOT %z = {array} parameter(0)
}}

"""
