"""A red case leaves a bundle: both sides profiled, read and written down, whatever else goes wrong."""

import json
import shutil
import warnings
from dataclasses import replace
from functools import partial

import jax
import pytest
from support.corpora import nightly
from support.fakes import duel, operation_table
from support.projects import model

from jaxgate.ext.profile import evidence
from jaxgate.ext.profile.capture import Limits, take_profile
from jaxgate.ext.profile.worker import read_table
from jaxgate.keep.artifacts import HISTORY, IGNORED, MARKER

MODEL = model("jnp.ones((256, 64))", step="y.sum(axis=0)").replace("    return", "    y = jnp.tanh(x)\n    return")
SORTED = ("    return y.sum(axis=0)", "    y = jnp.sort(y, axis=0)\n    return y.sum(axis=0)")
BUNDLE = {
    "baseline", "baseline.hlo.txt", "baseline.stablehlo.txt", "hlo.diff", "now", "now.hlo.txt", "now.jaxpr.txt",
    "now.stablehlo.txt", "report.md", "stablehlo.diff", "verdict.json",
}  # fmt: skip


UNHURRIED = Limits(long_step_s=600.0, slow_step_s=600.0, largest_bytes=1_000_000_000)
"""However busy the machine is, and whatever else this process compiled, a side is profiled for ten steps."""


@pytest.fixture
def profiled(project, lab, monkeypatch):
    """A project whose failing cases are profiled, as is usual; its duels find it slow, and no step is called long."""
    monkeypatch.delenv("JAXGATE_PROFILE")
    lab.finds["baseline"] = duel(1.3)
    lab.instruments.update(take_profile=partial(take_profile, limits=UNHURRIED), read_table=operation_table)
    return project


@pytest.fixture
def red(profiled):
    """A recorded case that sorts since."""
    profiled.write("test_model.py", MODEL).record()
    profiled.edit("test_model.py", *SORTED)
    return profiled


def bundle(project, case="model/step"):
    """The folder of a case."""
    return project.path / "perf-artifacts" / case


def events(folder):
    """Names of all events of the one profile in a folder."""
    (file,) = folder.rglob("*.xplane.pb")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planes = jax.profiler.ProfileData.from_file(str(file)).planes
        return [event.name for plane in planes for line in plane.lines for event in line.events]


@pytest.mark.jax_text
def test_a_red_case_is_profiled_and_read(red):
    """For real: both steps add up, row by row; which row is beyond the noise is the machine's business."""
    del red.instruments["read_table"]
    assert red.run().code == 1
    found = json.loads((bundle(red) / "verdict.json").read_text())["evidence"]["capture"]["table"]
    assert found["other"] == "baseline"
    assert found["rows"] or found["folded"]
    for side in ("now", "other"):
        parts = sum(row[f"{side}_ns"] for row in found["rows"]) + found[f"folded_{side}_ns"]
        assert parts == pytest.approx(found[f"{side}_ns"])


def test_a_red_case_names_its_operation_and_leaves_a_bundle(red):
    """The sort leads, and the profile has its share; profiles, programs, differences, verdict and report lie in the bundle.

    A recording, which judges nothing, leaves it there.
    """
    result = red.run()
    assert result.code == 1
    assert "sort 256x64xf32 0 → 1 at test_model.py:6" in result.line("  culprit ")
    assert result.line("  profile ").startswith("  profile   sort  test_model.py:6  0 ns → 700 ns")
    result.shows("  bundle    perf-artifacts/model/step/report.md", "1 bundle in perf-artifacts", "jaxgate tensorboard")
    assert {path.name for path in bundle(red).iterdir()} == BUNDLE
    now, before = events(bundle(red) / "now"), events(bundle(red) / "baseline")
    assert (now.count("jaxgate step"), before.count("jaxgate step")) == (10, 10)
    assert any(name.startswith("sort") for name in now)
    assert not any(name.startswith("sort") for name in before)
    assert (bundle(red) / "now/plugins/profile/model-step-now-p0").is_dir()

    report = (bundle(red) / "report.md").read_text()
    assert report.startswith("# REGRESSED: model/step\n\n```text\nREGRESSED  model/step")
    assert "| `sort` | `test_model.py:6` | 0 ns |" in report
    assert "| **step** | |" in report
    assert "| `temp_bytes` |" in report
    assert "stablehlo.sort" in report
    for name in BUNDLE - {"now", "baseline", "report.md"}:
        assert f"[`{name}`]({name})" in report
    assert "stablehlo.sort" in (bundle(red) / "stablehlo.diff").read_text()
    assert "sort" in (bundle(red) / "hlo.diff").read_text()
    assert str(red.path) not in report

    (case,) = red.results()["cases"]
    assert case["profiled"] == ["now", "baseline"]
    verdict = json.loads((bundle(red) / "verdict.json").read_text())
    assert (verdict["schema"], verdict["case"], verdict["status"]) == (2, "model/step", "REGRESSED")
    assert verdict["evidence"]["capture"]["table"]["other"] == "baseline"

    assert red.run("--perf-update").code == 0
    assert (bundle(red) / "report.md").is_file()


def test_a_green_run_removes_the_last_bundles_and_keeps_the_history(red):
    """What lies there is of this run; the scalars are of all."""
    red.run()
    assert len(list((red.path / "perf-artifacts" / HISTORY).iterdir())) == 1
    red.edit("test_model.py", *reversed(SORTED))
    result = red.run()
    assert result.code == 0
    assert {path.name for path in (red.path / "perf-artifacts").iterdir()} == {
        HISTORY, IGNORED, MARKER,
        "codequality.json", "metrics.txt", "report.html", "results.json", "results.sarif", "summary.md",
    }  # fmt: skip
    assert len(list((red.path / "perf-artifacts" / HISTORY).iterdir())) == 2
    assert "1 bundle" not in result.text


def test_always_profiles_what_is_green_against_its_reference(profiled):
    """The program is the baseline's own: the naive way is the other side."""
    naive = MODEL.replace(
        "gate(step,", "gate(step, reference=lambda x: jnp.stack([jnp.tanh(r) for r in x]).sum(axis=0), *["
    )
    profiled.write("test_model.py", naive.replace("(256, 64)))", "(16, 64))])"))
    profiled.record()
    assert profiled.run("--perf-profile=always").code == 0
    assert json.loads((bundle(profiled) / "verdict.json").read_text())["evidence"]["capture"]["sides"] == [
        "now",
        "reference",
    ]
    assert events(bundle(profiled) / "reference")


def test_never_writes_the_bundle_without_profiles(red):
    result = red.run("--perf-profile=never")
    assert {path.name for path in bundle(red).iterdir()} == {"report.md", "verdict.json"}
    result.shows("(not profiled: --perf-profile=never)")
    result.line("  culprit ").index("a library routine that was not called before: sort")


def test_beyond_the_cap_cases_are_listed(profiled, monkeypatch):
    """A broken machine fails all cases: the first few are profiled, the others named."""
    text = MODEL + MODEL.partition("def test_step")[1] + "_too(gate):\n    gate(step, jnp.ones((128, 64)))\n"
    profiled.write("test_model.py", text).record()
    profiled.edit("test_model.py", *SORTED)
    monkeypatch.setattr(evidence, "MAX_PROFILED", 1)
    result = profiled.run()
    result.counts(failed=2)
    result.shows(
        "2 bundles in perf-artifacts", "NOT PROFILED, 1 of them (--perf-profile=always profiles all): model/step_too"
    )
    assert (bundle(profiled) / "now").is_dir()
    assert not (bundle(profiled, "model/step_too") / "now").exists()
    assert (bundle(profiled, "model/step_too") / "report.md").is_file()


def test_a_folder_of_somebody_else_is_left_alone(red):
    """It is not emptied, the verdict stands, and the run says why there is no bundle."""
    mine = red.path / "perf-artifacts" / "thesis.txt"
    shutil.rmtree(mine.parent, ignore_errors=True)
    mine.parent.mkdir()
    mine.write_text("mine")
    result = red.run()
    assert result.code == 1
    result.shows("perf-artifacts holds files that jaxgate did not write", "--perf-artifacts")
    assert [path.name for path in mine.parent.iterdir()] == ["thesis.txt"]
    assert red.run("--perf-artifacts=elsewhere").code == 1
    assert (red.path / "elsewhere/model/step/report.md").is_file()


@pytest.mark.parametrize(
    "where", ["capture.stop_trace", "programs.program_diff", "programs.read_program", "op_names.read_hlo"]
)
def test_a_capture_that_fails_never_hides_the_verdict(red, monkeypatch, where):
    """Each stage may fail: the case is red for what it is, and the report says what is missing."""

    def fail(*_, **__):
        if where == "capture.stop_trace":
            jax.profiler.stop_trace()  # else it would run under all tests that follow
        raise OSError("no space left on device")

    if where == "op_names.read_hlo":
        del red.instruments["read_table"]  # which names the operations
    name, function = where.split(".")
    monkeypatch.setattr(f"jaxgate.ext.profile.{name}.{function}", fail)
    result = red.run()
    assert result.code == 1
    result.shows("REGRESSED  model/step", "temp_bytes")
    told = (bundle(red) / "report.md").read_text() if (bundle(red) / "report.md").exists() else result.text
    assert "no space left on device" in told


def test_a_profile_that_cannot_be_read_is_told(red):
    red.instruments["read_table"] = partial(read_table, timeout_s=0.01)
    result = red.run()
    assert result.code == 1
    result.shows("the profile could not be read within 0.01 s")
    result.line("  culprit ").index("a library routine that was not called before: sort")


def test_a_trace_that_the_code_left_open_is_closed_and_told(red):
    red.edit("test_model.py", "    gate(step,", "    jax.profiler.start_trace('left-open')\n    gate(step,")
    result = red.run()
    assert result.code == 1
    assert "now: a profile that the code had left open was closed" in (bundle(red) / "report.md").read_text()
    assert events(bundle(red) / "now").count("jaxgate step") == 10
    assert list((red.path / "left-open").rglob("*.xplane.pb"))


def test_donated_arguments_are_made_anew(profiled):
    """Each series has arguments of its own: the profiled steps consume them."""
    profiled.write(
        "test_model.py", MODEL.replace("return y.sum(axis=0)", "return y * 2").replace("64)))", '64)), donate="x")')
    )
    profiled.record()
    profiled.edit("test_model.py", "    return y * 2", "    return jnp.sort(y, axis=0) * 2")
    result = profiled.run()
    assert result.code == 1
    assert events(bundle(profiled) / "now").count("jaxgate step") == 10
    assert "deleted" not in (bundle(profiled) / "report.md").read_text()


def test_a_retrace_is_in_the_profile(profiled):
    """The steps compile again what they compiled when they were measured, and the report says who did it."""
    profiled.write(
        "test_model.py", MODEL.replace("return y.sum(axis=0)", "return y * 2").replace("64)))", '64)), carry="x")')
    )
    profiled.record()
    profiled.edit("test_model.py", "    return y * 2", "    return (y * 2).astype('bfloat16')")
    result = profiled.run()
    assert result.code == 1
    result.shows("step 2 retraced: x: float32[256,64] → bfloat16[256,64]")
    assert "step 2 retraced" in (bundle(profiled) / "retraces.txt").read_text()
    found = events(bundle(profiled) / "now")
    assert any("compile" in name.lower() for name in found)


def test_plain_python_is_profiled_too(profiled):
    """It has no program to store: today's side stands alone."""
    profiled.write("test_model.py", MODEL.replace("64)))", "64)), eager=True)"))
    profiled.record()
    profiled.edit("test_model.py", "    return y.sum(axis=0)", "    return y.sum(axis=0) + float(y[0, 0])")
    result = profiled.run()
    assert result.code == 1
    assert events(bundle(profiled) / "now").count("jaxgate step") == 10
    assert "nothing to compare it with" in (bundle(profiled) / "report.md").read_text()


def test_a_case_that_cannot_be_measured_has_a_report(profiled):
    """There is nothing to profile, and that is what it says."""
    profiled.write("test_model.py", MODEL.replace("    y = jnp.tanh(x)", "    y = jnp.tanh(x @ x)"))
    result = profiled.run()
    assert result.code == 1
    report = (bundle(profiled) / "report.md").read_text()
    assert report.startswith("# INVALID: model/step")
    assert "not profiled: there is no call to repeat" in report


def test_a_slow_down_is_profiled_once_it_is_confirmed(profiled, lab):
    """Not while others are timed: at the end of the run, after the fresh processes; not at all if they disagree.

    The settings of its test are gone by then; without them another program would be profiled.
    """
    lab.processes, asked, repeat = [1.3, 1.3, 1.0], [], lab.instruments["repeat_duel"]
    lab.instruments["repeat_duel"] = lambda again: asked.append(bundle(profiled).exists()) or repeat(again)
    wide = MODEL.replace("def test_step(gate):\n    gate(step, jnp.ones((256, 64)))", WIDE)
    profiled.write("test_model.py", wide).record()
    profiled.edit("test_model.py", "jnp.tanh", "jnp.sin")
    result = profiled.run()
    assert asked == [False, False]
    result.shows("SLOWER  model/step", "in fresh processes", "perf-artifacts/model/step/report.md")
    assert {path.name for path in bundle(profiled).iterdir()} == BUNDLE
    assert "f64" in (bundle(profiled) / "now.stablehlo.txt").read_text()
    assert "compile" not in " ".join(events(bundle(profiled) / "now"))
    assert not jax.config.jax_enable_x64
    assert profiled.run().code == 0
    assert not bundle(profiled).exists()


WIDE = """
import pytest

@pytest.fixture
def wide():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)

def test_step(gate, wide):
    gate(step, jnp.ones((4, 4), "float64"))
"""


def test_a_red_case_does_not_hold_its_arrays(red):
    """The next case has the memory to itself, though pytest keeps the failure's frames."""
    red.edit("test_model.py", "    gate(step, jnp.ones((256, 64)))", HELD)
    red.run().counts(failed=1, passed=1)


HELD = """
    global held
    x = jnp.ones((256, 64))
    held = weakref.ref(x)
    case = Case(family="model", sentence="step", build=Once(x))
    del x
    gate(case)

def test_the_next_one():
    assert held() is None

import weakref
from jaxgate.model.workload import Case; from jaxgate.model.computation import Computation

class Once:
    def __init__(self, x):
        self.x = x

    def __call__(self):
        return Computation(subject=step, args=(self.__dict__.pop("x"),))
"""


def test_only_profiles_that_were_taken_use_up_the_room(profiled):
    """Neither a case that cannot be measured nor a green one keeps a red one from being profiled."""
    text = "def test_a(gate):\n    gate(lambda x: x @ x, jnp.ones((2, 3)))\n\ndef test_b(gate):\n    gate(jnp.tanh, jnp.ones(3))\n"
    profiled.write("test_model.py", MODEL.replace("def test_step", f"{text}\ndef test_step"))
    assert profiled.run("--perf-update", "-k", "not test_a").code == 0
    profiled.edit("test_model.py", *SORTED)
    result = profiled.run("--perf-profile=always")
    result.counts(failed=2, passed=1)
    assert (bundle(profiled) / "now").is_dir()
    assert "NOT PROFILED" not in result.text


def test_other_compiler_options_make_another_program(red):
    """The same StableHLO, compiled otherwise: the baseline's is the other side."""
    red.edit("test_model.py", *reversed(SORTED))
    red.edit("test_model.py", "gate(step,", "gate(jax.jit(step, compiler_options={'xla_cpu_enable_fast_math': True}),")
    red.run("--perf-profile=always")
    assert json.loads((bundle(red) / "verdict.json").read_text())["evidence"]["capture"]["sides"] == ["now", "baseline"]


@pytest.mark.parametrize(("limit", "steps", "says"), [("slow", 3, ""), ("slowest", 0, " s, -1 s may be")])
def test_a_slow_step_is_profiled_less_or_not_at_all(red, limit, steps, says):
    limits = replace(UNHURRIED, **{f"{limit}_step_s": -1.0})
    red.instruments["take_profile"] = partial(take_profile, limits=limits)
    result = red.run()
    assert says in result.text
    found = events(bundle(red) / "now") if steps else []
    assert found.count("jaxgate step") == steps


def test_a_large_profile_leaves_its_programs_out(red):
    """They are beside it as text, and those of other cases are in it, too; the steps and their operations stay."""
    red.run()
    [whole] = (bundle(red) / "now").rglob("*.xplane.pb")
    before = whole.stat().st_size
    red.instruments["take_profile"] = partial(take_profile, limits=replace(UNHURRIED, largest_bytes=1))
    red.run()
    [file] = (bundle(red) / "now").rglob("*.xplane.pb")
    assert file.stat().st_size < before / 2
    found = events(bundle(red) / "now")
    assert found.count("jaxgate step") == 10
    assert any(name.startswith("sort") for name in found)


def test_an_interrupted_capture_does_not_lose_the_verdict(red):
    """Ctrl-C while both sides are profiled: the case was judged."""

    def interrupt(*_, **__):
        raise SystemExit  # as Ctrl-C is no Exception; that one pytester hands on

    red.instruments["take_profile"] = interrupt
    result = red.run()
    assert result.code == 1
    result.shows("1 case: 1 REGRESSED")


MANY = """
import jax, jax.numpy as jnp
import pytest

@pytest.mark.parametrize("size", range(1, 25))
def test_step(gate, size):
    gate(lambda x: jnp.tanh(x) * 2, jnp.ones((8, size)))
"""


@nightly
def test_many_captures_of_one_process_all_survive(profiled):
    """Twenty-four in a row, each with a folder and a name of its own, each readable."""
    read = []
    profiled.instruments["read_table"] = lambda folder, *_, **__: read.append(folder)
    profiled.write("test_model.py", MANY)
    assert profiled.run("--perf-profile=always").code == 0
    folders = sorted((profiled.path / "perf-artifacts").glob("model/*"))
    assert len(folders) == len(read) == 24
    assert [events(folder / "now").count("jaxgate step") for folder in folders] == [10] * 24
