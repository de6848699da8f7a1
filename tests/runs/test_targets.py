"""Runs with ``--perf-target``: cases are compiled for hardware that is not there, and judged by what its compiler decides.

The compiler of these runs is that of CPUs (``support/targets.py``); the way to it is the real one but for the process.
"""

import hashlib
import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import export
from support.targets import CompilerHere

from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.observe.errors import NotOnTargetError
from jaxgate.observe.hlo.diff import program_changes

MODEL = """
import jax, jax.numpy as jnp, jaxgate

def layer(x, w):
    return jnp.tanh(x @ w), None

def loss(ws, x):
    return jnp.sum(jax.lax.scan(jax.checkpoint(layer), x, ws)[0])

def step(ws, x):
    return ws - 0.1 * jax.grad(loss)(ws, x)

def test_step(gate):
    gate(step, jnp.ones((16, 64, 64)), jnp.ones((32, 64)), donate="ws")
"""
WITHOUT_REMAT = ("jax.checkpoint(layer)", "layer")
ON = "--perf-target=tpu:v5e:1x1"
ABOUT = ProgramRecord(digest="0", donated=(), feeds=None, why_not="", options={})


@pytest.fixture
def recorded(project, compilers):
    """A case that was recorded for a target with the usual command."""
    return project.write("test_model.py", MODEL).record(ON)


def test_an_unchanged_program_is_the_same(recorded, lab, compilers):
    """Nothing is called, timed, started or estimated; the compiler is let go of."""
    result = recorded.run(ON)
    assert (result.code, lab.duelled, lab.launched) == (0, [], [])
    assert "estimate" not in result.text
    result.shows(
        "1 case: 1 SAME", "Compiled for cpu:v5e:1x1 and not called: facts and claims gate, no time and no result."
    )
    assert all(compiler.closed for compiler in compilers)
    (baseline,) = recorded.path.glob("baselines/*/model/step.json")
    assert baseline.parts[-3].startswith("cpu-v5e-1x1-1-jax-")


def test_a_step_that_needs_more_memory_is_red_and_names_why(recorded, lab):
    """By the facts of the baseline's program as recorded; the bundle has both programs."""
    recorded.edit("test_model.py", *WITHOUT_REMAT)
    result = recorded.run(ON, "--perf-profile=failing")
    assert (result.code, lab.launched) == (1, [])
    result.shows(
        "REGRESSED  model/step", "on cpu-v5e-1x1-1", "temp_bytes", "remat", "not profiled: compiled for cpu:v5e:1x1"
    )
    files = {file.name for file in (recorded.path / "perf-artifacts/model/step").iterdir()}
    assert {"now.stablehlo.txt", "baseline.stablehlo.txt", "stablehlo.diff", "report.md"} <= files
    page = (recorded.path / "perf-artifacts/model/step/report.md").read_text()
    assert "not known: this compiler does not list its allocations" in page.partition("## Largest buffers")[2]
    least = page.partition("## Least time of a call, estimated")[2]
    assert "| | baseline | now |" in least
    assert "| bound by | memory | memory |" in least


def test_the_least_time_is_shown_where_it_is_asked_for(recorded):
    """With ``-v`` below the line of a case, always for machines."""
    result = recorded.run(ON, "-v")
    result.shows("SAME", "estimate: at least", "bound by memory", "communication none)")
    (case,) = json.loads((recorded.path / "perf-artifacts/results.json").read_text())["cases"]
    # Sixteen layers, forward twice and backward in two products each, at 197 TFLOP/s.
    assert case["roofline"]["compute_ns"] == pytest.approx(16 * 4 * 2 * 32 * 64 * 64 / 197e12 * 1e9, rel=0.1)
    assert case["roofline"]["bound_by"] == "memory"


def test_how_two_programs_for_a_target_differ_is_shown():
    """They are read as text: no platform is asked for."""
    jitted = [jax.jit(function) for function in (jnp.sin, jnp.cos)]
    stored = [StoredProgram(record=ABOUT, content=b"")] * 2
    for place, each in enumerate(jitted):
        content = bytes(export.export(each, platforms=["tpu"])(jax.ShapeDtypeStruct((4,), jnp.float32)).serialize())
        record = replace(ABOUT, digest=hashlib.sha256(content).hexdigest())
        stored[place] = StoredProgram(record=record, content=content)
    lines = program_changes(*stored)
    assert any("stablehlo.cosine" in line for line in lines if line.startswith("+"))


def test_a_donation_that_is_dropped_is_red_and_names_the_argument(recorded):
    recorded.edit("test_model.py", ', donate="ws"', "")
    result = recorded.run(ON)
    assert result.code == 1
    result.shows("REGRESSED  model/step", "no longer donated: ws")
    assert "--perf-target tpu:v5e:1x1" in result.line("  next ")


def test_the_command_of_a_case_that_was_never_compiled_has_the_target_too(recorded):
    """Without it the test would run on the hardware that is attached, and go another way."""
    recorded.edit("test_model.py", "jnp.sum(", "missing(")
    result = recorded.run(ON)
    result.shows("INVALID  model/step", "NameError")
    assert "--perf-target tpu:v5e:1x1" in result.line("  next ")


def test_a_donation_that_is_lost_is_red(project, compilers):
    """By what the compiler reuses, buffer by buffer: without any call."""
    half = ("jax.grad(loss)(ws, x)", "jax.grad(loss)(ws, x).astype(jnp.bfloat16)")
    project.write("test_model.py", MODEL.replace(*half).replace("return ws -", "return ws.astype(jnp.bfloat16) -"))
    result = project.run(ON, "--no-perf-strict")
    assert result.code == 1
    result.shows("lost_bytes", "ws (float32[16,64,64]", "the result of this shape is bfloat16")


def test_another_compiler_is_no_change_of_the_code(recorded, lab):
    """The baseline's program is compiled by the new one, too, and its facts are compared with."""
    made = []

    def open_newer(target):
        made.append(CompilerHere(target, {"backend": "a newer compiler"}))
        return made[-1]

    lab.instruments["open_target"] = open_newer
    recorded.edit("test_model.py", "jnp.tanh(x @ w)", "jnp.tanh(x @ w) * 1.5")
    result = recorded.run(ON)
    result.shows("UNDECIDED")
    assert made[0].compiled == ["subject", "baseline"]


@pytest.mark.parametrize(("limit", "code"), [("9e9", 0), ("9", 1)])
def test_claims_that_no_compiler_decides_are_left_out(project, lab, limit, code):
    """Those about calls, and about what a library does, which is not counted: the line says how many; others are judged."""
    lab.instruments["open_target"] = lambda target: CompilerHere(target, counts=False)
    claims = ("python_calls <= 3", "compile_ns <= 10", "xla_flops <= 10", f"temp_bytes <= {limit}")
    stated = f"claims=[{', '.join(f'jaxgate.claim({one!r})' for one in claims)}], donate='ws'"
    project.write("test_model.py", MODEL.replace('donate="ws"', stated))
    assert project.run(ON, "--perf-update").code == code
    result = project.run(ON, "--no-perf-strict")
    assert result.code == code
    result.shows("2 claims need calls", "1 claim needs a count of what libraries do")


def test_a_count_that_is_gone_is_not_the_same(recorded, lab):
    """The baseline had one: where today's program has none, a change of it is not seen, and the case is not SAME."""
    lab.instruments["open_target"] = lambda target: CompilerHere(target, counts=False)
    recorded.edit("test_model.py", "jnp.tanh(x @ w)", "jnp.tanh(x @ w) * 1.5")
    result = recorded.run(ON)
    assert "SAME  model/step" not in result.text
    result.shows("xla_flops")


def test_what_the_compiler_cannot_decide_without_a_device_is_skipped(project, lab, monkeypatch):
    """It is left out, with the reason; that is no fault of the case."""
    lab.instruments["open_target"] = CompilerHere

    def undecided(self, lowered):
        raise NotOnTargetError("the compiler would have to try it out")

    monkeypatch.setattr(CompilerHere, "compile", undecided)
    project.write("test_model.py", MODEL)
    result = project.run(ON, "-rs", "--no-perf-strict")
    assert result.code == 0
    result.counts(skipped=1)
    result.shows("the compiler would have to try it out", "1 gate has no program there")


def test_what_had_a_program_is_not_left_out(recorded):
    """A case that becomes plain Python loses its gate there: red. One that never had a program there is fine, and counted."""
    recorded.write("test_other.py", MODEL.replace('donate="ws"', "eager=True"))
    result = recorded.run(ON, "--perf-strict", "-rs")
    assert result.code == 0
    result.shows("1 gate has no program there, -rs says why", "1 case: 1 SAME")
    result.shows("plain Python (eager=True) is not one program, so it is not compiled for cpu:v5e:1x1")
    recorded.edit("test_model.py", 'donate="ws"', "eager=True")
    result = recorded.run(ON, "--perf-strict")
    assert result.code == 1
    result.shows("`model/step` has a baseline for", "and no program any more: plain Python (eager=True)")


def test_a_run_here_borrows_the_baseline_of_a_target(recorded):
    """A baseline is a program: this machine's compiler makes the same executable of it, and no clock knows the other one."""
    result = recorded.run("--no-perf-strict")
    assert result.code == 0
    result.shows("1 case: 1 UNDECIDED", "the same executable as the baseline's from another compiler")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--perf-target=v5e"], "--perf-target: expected a target such as tpu:v4:2x2x1"),
        (
            [ON, "--perf-target=tpu:v4:2x2x1"],
            "--perf-target: expected one in a run of pytest, found 'tpu:v5e:1x1' and 'tpu:v4:2x2x1'",
        ),
        ([ON, "--perf-against=jax_enable_x64=1"], "--perf-against calls the cases, --perf-target only compiles them"),
    ],
)
def test_what_does_not_go_together_is_refused(project, compilers, options, said):
    project.write("test_model.py", MODEL)
    result = project.run(*options)
    assert result.code == 4
    result.shows(said)
    assert not compilers
