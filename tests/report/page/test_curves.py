"""Curves, bars and rates: which are drawn, with which numbers, and that each has them as a table, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci.page.samples import sample_run
from jaxgate.ext.page.charts import CONFIG, bars, curve, of_one_case, scale_of
from jaxgate.ext.page.curves import bandwidth_groups, curve_groups, scaling_groups, variant_groups
from jaxgate.model.computation import Amount
from jaxgate.model.outcome import Point, Scaling

PLAIN = sample_run(1).cases[0]


def case(name, now, reference=None, **changes):
    """A case with these figures alone."""
    return replace(
        PLAIN, case=name, figures=replace(PLAIN.figures, now=now, stored={}, reference=reference or {}), **changes
    )


def run_of(*cases, **changes):
    """A run of these cases."""
    return replace(sample_run(1), cases=cases, scaling=(), **changes)


LENGTHS = run_of(
    case("scan/rnn-over-32-steps-scan-vs-loop", {"compile_ns": 88e6, "stablehlo_ops": 12}, {"compile_ns": 654e6, "stablehlo_ops": 288}),
    case("scan/rnn-over-256-steps-scan-vs-loop", {"compile_ns": 90e6, "stablehlo_ops": 12}, {"compile_ns": 6.1e9, "stablehlo_ops": 2304}),
    case("scan/other", {"compile_ns": 1e6}),
)  # fmt: skip


def values(chart):
    """The points of a chart: line, x and y."""
    return [(row["line"], row["x"], row["y"]) for row in chart.spec["data"]["values"]]


def test_compile_time_is_drawn_over_the_length():
    """Of the scan and of the loop, in seconds; in words and in a table, too."""
    (group,) = curve_groups(LENGTHS)
    assert group.title == "scan/rnn-over-N-steps-scan-vs-loop on cpu-amd-epyc-8"
    compile_time, operations = group.charts
    assert [(line, x, pytest.approx(y)) for line, x, y in values(compile_time)] == [
        ("now", 32, 0.088), ("now", 256, 0.09), ("reference: loop", 32, 0.654), ("reference: loop", 256, 6.1),
    ]  # fmt: skip
    assert "reference: loop from 654 ms at 32 steps to 6.1 s at 256 steps" in compile_time.label
    assert operations.title == "Operations of the program"
    assert [column.title for column in group.table.columns][1:3] == ["Compile time", "Compile time, reference: loop"]
    assert [[cell.text for cell in row] for row in group.table.rows] == [
        ["32 steps", "88 ms", "654 ms", "12", "288"], ["256 steps", "90 ms", "6.1 s", "12", "2,304"],
    ]  # fmt: skip


def test_what_is_the_same_everywhere_is_not_drawn():
    """Nor what is known of one case only."""
    flat = [
        case(f"a/step-{n}-deep", {"temp_bytes": 100, "run_ns": n} if n == 2 else {"temp_bytes": 101}) for n in (2, 4)
    ]
    assert curve_groups(run_of(*flat)) == ()


def test_hardware_is_not_mixed():
    """Facts of two kinds of hardware are no curve."""
    one, other = LENGTHS.cases[:2]
    assert curve_groups(run_of(one, replace(other, hardware="gpu-h200-1"))) == ()


def test_layouts_of_a_mesh_are_bars():
    """Collectives and their bytes below each other."""
    layouts = {"batch-on-8": (3, 100_000), "fsdp-on-8": (9, 300_000), "hybrid-on-2x4": (12, 150_000)}
    cases = [
        case(f"pjit/mlp-train-step-{name}-vs-gathered", {"collectives": count, "collective_bytes": size})
        for name, (count, size) in layouts.items()
    ]
    (group,) = variant_groups(run_of(*cases))
    assert [chart.title for chart in group.charts] == ["Collectives", "Bytes of collectives"]
    rows = group.charts[0].spec["data"]["values"]
    assert [(row["name"], row["y"]) for row in rows] == [("batch-on-8", 3), ("fsdp-on-8", 9), ("hybrid-on-2x4", 12)]


def test_bandwidth_is_that_of_the_bus():
    """Bytes times the factor, by the time of a call; the curves of a family in one chart."""
    cases = [
        case(
            f"pmap/psum-of-{size}-KiB-by-{how}",
            {"run_ns": 1e6},
            run_ns=1e6,
            amount=Amount(count=size * 1024, unit="B", bus_factor=1.75),
        )
        for size in (4, 64)
        for how in ("pmap", "jit")
    ]
    (group,) = bandwidth_groups(run_of(*cases))
    (chart,) = group.charts
    assert values(chart) == [
        (f"psum-of-N-by-{how}", size * 1024, pytest.approx(size * 1024 * 1.75 * 1000))
        for how in ("pmap", "jit")
        for size in (4, 64)
    ]
    assert [cell.text for cell in group.table.rows[0][1:]] == ["4.1 kB", "7.17 MB/s"]


def test_what_was_not_timed_has_no_bandwidth():
    """No rate is made up."""
    cases = [
        case(f"pmap/psum-of-{n}-KiB", {}, run_ns=None, amount=Amount(count=n, unit="B", bus_factor=1)) for n in (4, 64)
    ]
    assert bandwidth_groups(run_of(*cases)) == ()


def test_scaling_has_the_line_of_the_fewest_devices():
    """Beside what was measured; the efficiency stands in the table."""
    points = (Point(devices=2, per_second=200.0, efficiency=1.0), Point(devices=8, per_second=600.0, efficiency=0.75))
    run = replace(run_of(), scaling=(Scaling(series="weak", unit="samples", points=points),))
    (group,) = scaling_groups(run)
    assert values(group.charts[0]) == [
        ("measured", 2, 200), ("measured", 8, 600), ("as on the fewest devices", 2, 200), ("as on the fewest devices", 8, 800),
    ]  # fmt: skip
    assert [cell.text for cell in group.table.rows[1]] == ["8", "600 samples/s", "75 %"]


def test_axes_are_logarithmic_where_that_is_needed():
    """Twenty times apart; never with a zero among the values."""
    assert scale_of([1, 19])["type"] == "linear"
    assert scale_of([1, 20])["type"] == "log"
    assert scale_of([0, 1000])["type"] == "linear"


def all_specs():
    """Each kind of chart once, with data."""
    rows = [
        {"name": n, "x": x, "y": y, "line": line, "at": "", "shown": ""}
        for n, x, y in (("a", 1, 1), ("b", 64, 900))
        for line in ("now", "reference: loop")
    ]
    yield "curve", curve(rows, over="bytes", quantity="run_ns", lines=["now", "reference: loop"])
    yield "straight", curve(rows[:2], over="steps", quantity="stablehlo_ops", lines=["now"])
    yield "bars", bars(rows[:2], quantity="temp_bytes", lines=["now", "reference: loop"])
    yield "dots", bars(rows, quantity="temp_bytes", lines=["now", "reference: loop"])
    data = {
        "times": [
            {"side": "now", "x": 0.01, "shown": "10 ms"},
            {"side": "now", "x": 0.01, "shown": "10 ms", "median": True},
        ],
        "ratio": [
            {"kind": "same", "at": 1},
            {"kind": "interval", "at": 1.1, "low": 1.0, "high": 1.2, "shown": ""},
            {"kind": "margin", "low": 0.9, "high": 1.1},
        ],
        "memory": [{"name": "peak", "side": "now", "x": 10, "shown": "10 B"}],
        "phases": [{"side": "now", "phase": "trace", "place": 0, "x": 0.1, "shown": "100 ms"}],
    }
    for name, spec in of_one_case().items():
        height = spec["height"]["step"] if isinstance(spec["height"], dict) else spec["height"]
        yield name, spec | {"data": {"values": data[name]}, "width": 300, "height": height}


@pytest.mark.parametrize(("name", "spec"), [*all_specs()], ids=lambda part: part if isinstance(part, str) else "")
def test_the_library_understands_each_chart(name, spec):
    """It compiles and draws it; what it does not know would be an error or a mark less."""
    vl_convert = pytest.importorskip("vl_convert")
    drawn = vl_convert.vegalite_to_svg(spec | {"width": 300}, config=CONFIG)
    assert 'class="mark-' in drawn
    assert "NaN" not in drawn
