"""Runs that nobody ran, for looking at their pages: calm and red ones, one of 2,000 cases, one whose names attack the page."""

from __future__ import annotations

import random
from dataclasses import replace

from jaxgate.ext.profile.model import OpRow
from jaxgate.model.computation import Amount
from jaxgate.model.outcome import CaseRecord, FindingRecord, Point, RunRecord, Scaling, TimeRecord
from jaxgate.model.verdict import BaselineName, CallTimes, Figures

ENVIRONMENT = {"backend": "cpu", "jax": "0.10.2", "jaxlib": "0.10.2", "python": "3.11", "system": "Linux x86_64"}
_SHAPES = (
    "scan/{}-over-{}-steps-scan-vs-loop",
    "pmap/{}-psum-of-{}-KiB",
    "pjit/{}-train-step-{}-vs-gathered",
    "remat/{}-remat-that-saves-{}-vs-plain",
)
_LAYOUTS = ("batch-on-8", "fsdp-on-8", "hybrid-on-2x4", "hybrid-on-4x2", "model-on-1x8")
_SAVED = ("dots", "everything", "names", "nothing")
MARKS = (
    "</script><script>document.title='ran'</script>", "<img src=x onerror=\"document.title='ran'\">",
    '"><svg onload="document.title=\'ran\'">', "' onmouseover='document.title=`ran`'",
    "javascript:document.title='ran'", "[a](javascript:document.title='ran')", "<!--<script>",
    "]]>{{ 7*7 }}{% raw %}", "\u202egnirts\u2066", "\x1b[2J\x00\x07", "\u2028document.title='ran'\u2029",
    "../../../etc/passwd", "constructor", "__proto__",
)  # fmt: skip
"""Names that try to run, to lead elsewhere, or to be read otherwise than they are written."""


def names(count: int) -> list[str]:
    """Names of cases: curves, variants, and others."""
    found = []
    for place in range(count):
        shape, model = _SHAPES[place % len(_SHAPES)], f"model{place // 32}-forward"
        turn = place // len(_SHAPES) % 8
        number = (2 ** (2 + turn), 4 ** (1 + turn), _LAYOUTS[turn % 5], _SAVED[turn % 4])[place % len(_SHAPES)]
        found.append(shape.format(model, number))
    unlike = list(dict.fromkeys(found))
    return [*unlike, *(f"steps/other-step-{place}" for place in range(count - len(unlike)))]


def sample_run(count: int = 40, *, red: int = 0, hardware: str = "cpu-amd-epyc-8", seed: int = 1) -> RunRecord:
    """A run of so many cases, of which the first ones failed."""
    chance = random.Random(seed)  # noqa: S311 - numbers to look at
    cases = tuple(_case(name, place, hardware, chance, red=place < red) for place, name in enumerate(names(count)))
    points = tuple(Point(devices=n, per_second=1e5 * n**0.9, efficiency=n**-0.1) for n in (1, 2, 4, 8))
    return RunRecord(
        schema=1,
        jaxgate="0.1.0",
        green=not red,
        gate_exit=int(red > 0),
        cases=cases,
        run="0123456789abcdef",
        moment="2026-11-25T02:30:00+00:00",
        commit="5aa7a3fe294cd31197565ca014860cb587362288",
        problems=("baselines/cpu-amd-epyc-8-jax-0.10/scan/gone.json: its test is gone or has another name",)
        if red
        else (),
        scaling=(Scaling(series="data-parallel, weak", unit="samples", points=points),),
    )


def _case(name: str, place: int, hardware: str, chance: random.Random, *, red: bool) -> CaseRecord:
    """One case: of the red ones every other has more temporaries, the others are slower."""
    temp = 2 ** chance.randint(10, 24)
    slower, run_ns = red and place % 2 == 1, chance.uniform(5e4, 5e7)
    stored = _numbers(temp, run_ns, chance)
    now = _numbers(temp * (2 if red and not slower else 1), run_ns * (1.3 if slower else 1.0), chance) | {
        "stablehlo_ops": stored["stablehlo_ops"] + 2 * red
    }
    duelled = red or place % 7 == 0
    ratio = 1.3 if slower else chance.uniform(0.98, 1.02)
    calls = [[now["run_ns"] * chance.lognormvariate(0, 0.03) for _ in range(20)] for _ in range(2)]
    figures = Figures(
        now=now,
        stored=stored,
        reference=_numbers(temp * 3, run_ns, chance),
        environment=ENVIRONMENT,
        program=f"{place:032x}",
        baseline=BaselineName(
            program=f"{place:032x}", folder=f"{hardware}-jax-0.10", commit="592fcf569b", date="2026-11-22"
        ),
        times=CallTimes(now=tuple(calls[0]), stored=tuple(call / ratio for call in calls[1]), in_turn=duelled),
    )
    status = "SLOWER" if slower else "REGRESSED" if red else "SAME"
    size = 4 ** (1 + place // 4 % 8) * 1024
    return CaseRecord(
        case=name,
        status=status,
        fails=red,
        test=f"perf/test_it.py::test_it[{name}]",
        hardware=hardware,
        run_ns=now["run_ns"],
        time=TimeRecord(
            status="SLOWER" if slower else "SAME",
            reason="" if duelled else "identical program",
            pairs=30 if duelled else None,
            **({"ratio": ratio, "low": ratio - 0.02, "high": ratio + 0.02, "margin": 0.03, "sees": 0.045} if duelled else {}),
            confirmed=(1.29, 1.31) if slower else (),
        ),
        findings=(FindingRecord(kind="fact", name="temp_bytes", status="REGRESSED", now=now["temp_bytes"], against=temp, allowed=temp),)
        if red and not slower
        else (),
        operations=(OpRow(name="attention/softmax/sort", line="model.py:41", now_ns=2.1e6, other_ns=1e5),) if slower else (),
        causes=("argument state (float32[512,512], 1.05 MB): donated, not reused, no output has its shape",) if red else (),
        baseline="592fcf569b of 2026-11-22 (jax 0.10.2, n=20)",
        bundle=f"perf-artifacts/{name}" if red else "",
        text=f"{status}  {name}  on {hardware}\n  culprit   argument state: donated, not reused\n  next      reproduce: pytest" if red else "",
        changes=("@@ -12,3 +12,4 @@", "   %3 = dot_general %1, %2", "-  %4 = add %3, %0", "+  %4 = transpose %3", "+  %5 = add %4, %0") if red else (),
        allocations=("1.05 MB  temp  float32[512,512]  fusion.3  model.py:41",) if red else (),
        amount=Amount(count=size, unit="B", bus_factor=1.75) if "psum" in name else Amount(count=32, unit="samples"),
        figures=figures,
    )  # fmt: skip


def _numbers(temp: int, run_ns: float, chance: random.Random) -> dict[str, float]:
    compile_ns = chance.randint(10**7, 10**9)
    return {
        "traces": 1, "lowerings": 1, "compiles": 1, "sampled_traces": 0, "sampled_compiles": 0, "donated_bytes": 0,
        "constant_bytes": 0, "host_callbacks": 0, "matmul_flops": 3145728, "widened_bytes": 0,
        "stablehlo_ops": chance.randint(10, 2000), "collectives": chance.randint(1, 9), "collective_bytes": chance.randint(10**3, 10**7),
        "aliased_bytes": 0, "lost_bytes": 0, "argument_bytes": 59648, "output_bytes": 2048, "temp_bytes": temp,
        "xla_flops": 99330, "xla_bytes": 44425, "transcendentals": 512, "python_calls": 0, "jax_calls": 0,
        "state_bytes": 61696, "peak_bytes": 61696 + temp, "trace_ns": chance.randint(10**6, 10**8), "trace_wait_ns": 0,
        "lower_ns": chance.randint(10**6, 10**8), "compile_ns": compile_ns, "first_call_ns": chance.randint(10**6, 10**7),
        "yardstick_ns": 926079, "sent_bytes": 0, "sent_arguments": 0, "moved_arrays": 0, "run_ns": run_ns,
    }  # fmt: skip


def hostile_run() -> RunRecord:
    """A run in which every text is one that attacks the page."""
    plain = sample_run(len(MARKS) + 3, red=len(MARKS))
    cases: list[CaseRecord] = []
    hostile: list[Figures] = []
    for case, mark in zip(plain.cases, MARKS, strict=False):
        figures = case.figures
        assert figures is not None
        attacked = {mark: 1.0, f"{mark}_bytes": 2.0}
        hostile.append(
            replace(
                figures,
                now={**figures.now, **attacked},
                stored={**figures.stored, mark: 3.0},
                environment={mark: mark, "jax": mark},
            )
        )
        cases.append(
            replace(
                case,
                case=f"family/{mark}",
                test=mark,
                hardware=mark,
                status=mark,
                baseline=mark,
                text=f"{mark}\n{mark}",
                bundle=mark,
                causes=(mark,),
                changes=(f"+{mark}", mark),
                allocations=(mark,),
                time=replace(case.time, reason=mark),
                findings=(FindingRecord(kind="fact", name=mark, status=mark, detail=mark),),
                operations=(OpRow(name=mark, line=mark, now_ns=2.0, other_ns=1.0),),
                amount=Amount(count=1, unit=mark, series=mark),
                figures=hostile[-1],
            )
        )
    curve = tuple(
        replace(
            plain.cases[-1],
            case=f"family/{MARKS[1]}-over-{number}-steps-vs-{MARKS[0]}",
            figures=replace(hostile[0], now={"temp_bytes": float(number)}, reference={"temp_bytes": 2.0 * number}),
        )
        for number in (2, 4)
    )
    everything = MARKS
    return replace(
        plain,
        cases=(*cases, *curve),
        commit=MARKS[0],
        moment=MARKS[1],
        elsewhere=MARKS[2],
        jaxgate=MARKS[3],
        problems=everything,
        unfit=everything,
        not_judged=everything,
        needs_commit=everything,
        scaling=tuple(replace(one, series=MARKS[0], unit=MARKS[1]) for one in plain.scaling),
    )
